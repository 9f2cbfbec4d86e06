"""Everything that the report of one run shows, read from its published tables; every part is bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.compute as pc

from pipelines.comparison.answers import CandidateAnswer, answer_comparisons, find_baseline, order_systems
from pipelines.comparison.counting import read_min_judged
from pipelines.comparison.headline import read_shown_metrics, select_headline_metrics
from pipelines.report.histograms import Counts, DeltaCounts, count_distributions
from pipelines.report.pairs import find_judged_columns, pair_queries
from pipelines.report.settings import ReportSettings, read_report_settings
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.tables import Row, RunTables
from udfs.registry import MetricSpec, parse_metric, parse_metrics
from udfs.shown_metrics import list_shown_metrics
from udfs.statistics.counting import JUDGED
from udfs.statistics.plan import EVERYTHING

# How much of a table of any size is shown; the report says where it stops.
ROWS, SYSTEMS, METRICS, PAIRS, MOVERS, HEADLINES = 1000, 40, 12, 6, 120, 3

_OF_ONE_SOURCE = pc.field("kind").isin(["main", "opinion"])  # factors of the prior


@dataclass(frozen=True)
class ReportData:
    """Everything that is shown of one run."""

    manifest: Manifest
    settings: ReportSettings
    answers: tuple[CandidateAnswer, ...]  # the verdict on each candidate, the largest effect first
    baseline: str | None
    metrics: tuple[MetricSpec, ...]  # those that are shown: what was asked for
    headline: tuple[str, ...]  # keys of the metrics that the run is judged by, and of those shown beside them
    systems: tuple[str, ...]  # the baseline, candidates by their effect, the others
    pairs: tuple[tuple[str, str], ...]  # by effect
    overall: Sequence[Row]  # segment_metrics over all queries
    segments: Sequence[Row]
    comparisons: Sequence[Row]  # over all queries first
    sensitivity: Sequence[Row]  # headline comparisons by every way to count unjudged documents
    changes: Sequence[Row]
    histograms: dict[tuple[str, str], Counts]  # by system and metric
    deltas: dict[tuple[str, str, str], DeltaCounts]  # by baseline, candidate and metric
    prior: Sequence[Row] = ()  # effects of single systems and opinions
    propensities: Sequence[Row] = ()
    funnel: Sequence[Row] = ()
    grades: Counter[tuple[str, Any]] = field(default_factory=Counter)  # by source and grade
    judged: dict[str, float] = field(default_factory=dict)  # by system, the share of its top k that has a label
    sizes: dict[str, int] = field(default_factory=dict)  # rows of long tables before they were shortened

    def shorten(self, rows: int) -> ReportData:
        """The same with at most `rows` rows of every long table."""
        changes = self.changes[: max(10, rows // 8)]
        return replace(self, segments=self.segments[:rows], comparisons=self.comparisons[:rows], changes=changes)

    def name(self, key: str) -> str:
        """A metric's name as it is written, from its key."""
        return next((spec.name for spec in self.metrics if spec.key == key), key)


def gather_report_data(run: RunTables, settings: ReportSettings | None = None) -> ReportData:
    """Read what the report shows; its title and links are those of the run where no settings are passed."""
    manifest = run.manifest
    specs = parse_metrics(read_shown_metrics(manifest))
    headline = select_headline_keys(manifest, specs)
    order = {spec.key: place for place, spec in enumerate(specs)}
    everything, shown = pc.field("segment") == EVERYTHING, pc.field("metric").isin([spec.key for spec in specs])
    overall = run.rows("comparisons", most=ROWS, first=lambda row: order[row["metric"]], where=everything & shown)
    answers = answer_comparisons(manifest, overall)
    systems = tuple(order_systems(manifest, overall)[:SYSTEMS])
    compared = dict.fromkeys([(a.baseline, a.candidate) for a in answers])
    pairs = tuple(compared | dict.fromkeys((r["baseline"], r["candidate"]) for r in overall))
    place = {pair: number for number, pair in enumerate(pairs)}

    def rank(row: Row) -> tuple[Any, ...]:
        """All queries before segments, headline metrics before others, large segments before small ones."""
        metric, pair = row["metric"], (row.get("baseline"), row.get("candidate"))
        return row["segment"] != EVERYTHING, metric not in headline, -row["queries"], order[metric], place.get(pair, 0)

    # Histograms have buckets from 0 to 1: metrics that are only shown beside others have none.
    configured = parse_metrics(manifest.config.get("metrics", ()))
    per_query = [spec for spec in configured if spec.metric.scope != "system"][:METRICS]
    return ReportData(
        manifest=manifest,
        settings=read_report_settings(manifest.config) if settings is None else settings,
        answers=answers,
        baseline=find_baseline(manifest, overall),
        metrics=specs,
        headline=headline,
        systems=systems,
        pairs=pairs[:PAIRS],
        overall=run.rows("segment_metrics", most=ROWS, first=lambda r: order[r["metric"]], where=everything & shown),
        segments=run.rows("segment_metrics", most=ROWS, first=rank, where=~everything & shown),
        comparisons=run.rows("comparisons", most=ROWS, first=rank, where=shown),
        sensitivity=run.rows("sensitivity", most=ROWS, first=lambda row: order.get(row["metric"], 0)),
        changes=run.rows("query_changes", most=MOVERS, first=lambda row: (row["place"], row["metric"])),
        histograms=count_distributions(run, systems, [s.key for s in per_query]) if run.has("query_metrics") else {},
        deltas=_count_deltas(run, pairs[:PAIRS], [spec for spec in per_query if spec.key in headline]),
        prior=run.rows("label_prior", most=ROWS, first=lambda r: r["kind"], where=_OF_ONE_SOURCE),
        propensities=run.rows("propensities", most=ROWS, first=lambda r: (r["context"] != "all", r["position"])),
        funnel=run.rows("denoise_funnel", most=ROWS, first=lambda row: row["rule"]),
        grades=_count_grades(run),
        judged=_read_judged_shares(run, specs, headline),
        sizes={
            "segment_metrics": run.count("segment_metrics", ~everything & shown),
            "comparisons": run.count("comparisons", shown),
        },
    )


def _read_judged_shares(run: RunTables, specs: Sequence[MetricSpec], headline: Sequence[str]) -> dict[str, float]:
    """By system, the mean share of the headline metric's top k that has a label; empty where it was not computed."""
    spec = next((spec for spec in specs if spec.key in headline), None)
    if spec is None or spec.k is None:
        return {}
    where = (pc.field("segment") == EVERYTHING) & (pc.field("metric") == parse_metric(f"{JUDGED}@{spec.k}").key)
    rows = run.rows("segment_metrics", most=ROWS, first=lambda row: row["system"], where=where)
    return {row["system"]: row["macro"] for row in rows if row["macro"] is not None}


def select_headline_keys(manifest: Manifest, specs: Sequence[MetricSpec]) -> tuple[str, ...]:
    """Keys of the headline metrics, at most `HEADLINES`, each followed by the one that is shown beside it."""
    gated = {condition["metric"] for condition in manifest.config.get("gate", ())}
    judged_by = [spec.name for spec in select_headline_metrics(specs, gated)[:HEADLINES]]
    shown = parse_metrics(list_shown_metrics(judged_by, manifest.conventions.get("unjudged")))
    return tuple(spec.key for spec in shown)


def _count_deltas(
    run: RunTables, pairs: Sequence[tuple[str, str]], specs: Sequence[MetricSpec]
) -> dict[tuple[str, str, str], DeltaCounts]:
    """The histograms of differences, over the queries that count in the comparisons."""
    deltas = {(*pair, spec.key): DeltaCounts() for pair in pairs for spec in specs}
    if not deltas:
        return {}
    metrics, min_judged = [spec.key for spec in specs], read_min_judged(run.manifest)
    judged = {} if min_judged is None else find_judged_columns(run, specs)
    for baseline, candidate in pairs:
        sides = (run, baseline), (run, candidate)
        for batch in pair_queries(*sides, metrics, judged=judged, min_judged=min_judged or 0.0):
            for metric in metrics:
                deltas[baseline, candidate, metric].add(*batch.values(metric))
    return deltas


def _count_grades(run: RunTables) -> Counter[tuple[str, Any]]:
    grades: Counter[tuple[str, Any]] = Counter()
    for batch in run.batches("labels", ["source", "grade"]):
        counts = batch.to_pandas().groupby(["source", "grade"], dropna=False).size()
        grades.update({key: int(rows) for key, rows in counts.items()})
    return grades
