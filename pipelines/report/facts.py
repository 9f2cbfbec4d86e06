"""What a report tells, gathered from the published tables of one run; every part has a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.compute as pc

from pipelines.report.published import Published, Row
from pipelines.report.spread import Counts, Deltas, paired, spreads
from pipelines.runs import Manifest
from udfs.registry import Spec, parse
from udfs.statistics.plan import EVERYTHING

# How much of a table of any size is shown; the report says where it stops.
ROWS, SYSTEMS, METRICS, PAIRS, MOVERS, HEADLINES = 1000, 40, 12, 6, 120, 3


@dataclass(frozen=True)
class Facts:
    """All that is shown of one run."""

    manifest: Manifest
    metrics: tuple[Spec, ...]
    headline: tuple[str, ...]  # keys of the metrics that the run is judged by
    systems: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    overall: Sequence[Row]  # segment_metrics over everything
    segments: Sequence[Row]
    compared: Sequence[Row]  # comparisons, over everything first
    sensitivity: Sequence[Row]  # headline comparisons by every way to count unjudged documents
    changes: Sequence[Row]
    spreads: dict[tuple[str, str], Counts]
    deltas: dict[tuple[str, str, str], Deltas]
    propensities: Sequence[Row] = ()
    funnel: Sequence[Row] = ()
    grades: Counter[tuple[str, Any]] = field(default_factory=Counter)  # by source and grade
    sizes: dict[str, int] = field(default_factory=dict)  # rows of each table, shown or not

    def shorter(self, rows: int) -> Facts:
        """The same with at most so many rows of every long table."""
        few = max(10, rows // 8)
        return replace(self, segments=self.segments[:rows], compared=self.compared[:rows], changes=self.changes[:few])

    def spec(self, key: str) -> Spec | None:
        return next((spec for spec in self.metrics if spec.key == key), None)

    def name(self, key: str) -> str:
        """A metric's name as it is written, from its key."""
        spec = self.spec(key)
        return key if spec is None else spec.name


def gather(run: Published) -> Facts:
    """Read what the report shows."""
    manifest = run.manifest
    specs = tuple(parse(name) for name in manifest.config.get("metrics", ()))
    headline = headlines(manifest)
    systems = tuple(manifest.systems[:SYSTEMS])
    order = {spec.key: place for place, spec in enumerate(specs)}

    def first(row: Row) -> tuple[Any, ...]:
        """Everything before segments, headline metrics before others, large segments before small ones."""
        metric = row["metric"]
        return row["segment"] != EVERYTHING, metric not in headline, -row["queries"], order.get(metric, 0)

    compared = run.rows("comparisons", most=ROWS, first=first)
    shown = [spec.key for spec in specs if spec.metric.scope != "system"][:METRICS]
    pairs = tuple(dict.fromkeys((r["baseline"], r["candidate"]) for r in compared))[:PAIRS]
    everything = pc.field("segment") == EVERYTHING
    return Facts(
        manifest=manifest,
        metrics=specs,
        headline=headline,
        systems=systems,
        pairs=pairs,
        overall=run.rows("segment_metrics", most=ROWS, first=lambda row: order.get(row["metric"], 0), where=everything),
        segments=run.rows("segment_metrics", most=ROWS, first=first, where=~everything),
        compared=compared,
        sensitivity=run.rows("sensitivity", most=ROWS, first=lambda row: order.get(row["metric"], 0)),
        changes=run.rows("query_changes", most=MOVERS, first=lambda row: (row["place"], row["metric"])),
        spreads=spreads(run, systems, shown) if run.has("query_metrics") else {},
        deltas=_deltas(run, pairs, [key for key in headline if key in shown]),
        propensities=run.rows("propensities", most=ROWS, first=lambda r: (r["context"] != "all", r["position"])),
        funnel=run.rows("denoise_funnel", most=ROWS, first=lambda row: row["rule"]),
        grades=_grades(run),
        sizes={name: record.rows for name, record in manifest.tables.items()},
    )


def headlines(manifest: Manifest) -> tuple[str, ...]:
    """Keys of the metrics that a run is judged by: the gate's, or the first where there is no gate."""
    config = manifest.config
    gated = dict.fromkeys(condition["metric"] for condition in config.get("gate", ()))
    return tuple(parse(name).key for name in (list(gated) or list(config.get("metrics", ()))[:1])[:HEADLINES])


def _deltas(
    run: Published, pairs: Sequence[tuple[str, str]], metrics: Sequence[str]
) -> dict[tuple[str, str, str], Deltas]:
    found = {(*pair, metric): Deltas() for pair in pairs for metric in metrics}
    for baseline, candidate in pairs if metrics else ():
        for both in paired((run, baseline), (run, candidate), metrics):
            for metric in metrics:
                found[baseline, candidate, metric].add(
                    both[f"{metric}_x"].to_numpy(float), both[f"{metric}_y"].to_numpy(float)
                )
    return found


def _grades(run: Published) -> Counter[tuple[str, Any]]:
    found: Counter[tuple[str, Any]] = Counter()
    for batch in run.batches("labels", ["source", "grade"]):
        counted = batch.to_pandas().groupby(["source", "grade"], dropna=False).size()
        found.update({key: int(rows) for key, rows in counted.items()})
    return found
