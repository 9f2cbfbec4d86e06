"""From logs to labels: attribute, denoise, correct position bias, grade."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.inputs.log_rows import LogRows
from pipelines.labels.denoise.funnel import count_funnel, require_kept_rows, select_quarantine
from pipelines.labels.denoise.nameless import SharedUser, choose_share, find_shared_user
from pipelines.labels.denoise.pack import choose_partitions, pack_events, pack_impressions
from pipelines.labels.denoise.pages import judge_pages, read_names, select_last_pages
from pipelines.labels.denoise.pairs import Origin, select_cells, tally_pairs
from pipelines.labels.denoise.users import count_attributions, judge_users
from pipelines.labels.grade import count_examinations, grade_pairs
from pipelines.labels.judgments import measure_agreement, merge_judgments
from pipelines.labels.log_shape import measure_log_shape
from pipelines.labels.pool import LogEvidence, measure_positions, measure_traffic
from pipelines.labels.propensity.estimate import (
    estimate_propensities,
    select_diagnostics,
    select_exponent,
    select_propensities,
)
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.settings import LabelSettings
from pipelines.warehouse.checkpoint import Checkpointer, keep_lazy


@dataclass(frozen=True)
class TalliedLog:
    """The counts of a log after attribution and denoising."""

    tallied: DataFrame  # see `tally_pairs`
    interactions: DataFrame  # at least those that may be in the quarantine
    attributions: DataFrame  # kind, attribution, events
    logged_rankings: DataFrame  # the lists that the logged systems served last
    shared_user: SharedUser | None  # an id that stands for many people


@dataclass(frozen=True)
class LabelTables:
    """The labels of a log, and the tables that explain them."""

    labels: DataFrame
    propensities: DataFrame
    denoise_funnel: DataFrame
    quarantine: DataFrame
    diagnostics: DataFrame  # check, value, warning, sentence
    attributions: DataFrame  # kind, attribution, events
    agreement: DataFrame | None  # one row, see measure_agreement; with judgments only
    logged_rankings: DataFrame  # the lists that the logged systems served last
    log_shape: DataFrame  # see measure_log_shape
    shared_user: SharedUser | None  # an id that stands for many people
    evidence: LogEvidence  # for the posterior


def build_labels(
    impressions: LogRows,
    interactions: LogRows,
    settings: LabelSettings,
    *,
    judgments: DataFrame | None = None,
    checkpoint: Checkpointer = keep_lazy,
    impressions_read: int | None = None,
    learned_days: Sequence[tuple[dt.date, dt.date]] = (),
    folder: str | None = None,
) -> LabelTables:
    """Build labels from a log, and from judgments where there are any; raises if the rules leave no impression.

    `checkpoint` stores the tables that several results are computed from (see `pipelines.warehouse.checkpoint`), so
    that the log is read once; without it, each result reads the log again. With `impressions_read`, diagnostics that
    need single days sample a log of more than a million impressions. `learned_days` are those that a compared system
    learned from: the evidence for posteriors is from the other days, where there are any; labels are from all. Workers
    put what they leave for each other into files of the `folder`, where one is given that all of them can open.
    """
    log = tally_log(
        impressions,
        interactions,
        settings,
        checkpoint=checkpoint,
        impressions_read=impressions_read,
        learned_days=learned_days,
        folder=folder,
    )
    return grade_log(log, settings, judgments=judgments, checkpoint=checkpoint, learned=bool(learned_days))


def tally_log(
    impressions: LogRows,
    interactions: LogRows,
    settings: LabelSettings,
    *,
    checkpoint: Checkpointer,
    impressions_read: int | None,
    learned_days: Sequence[tuple[dt.date, dt.date]],
    folder: str | None = None,
) -> TalliedLog:
    """Attribute and denoise a log, and count its rows; see `build_labels` for the parameters."""
    share = choose_share(impressions_read)
    buckets = choose_partitions(impressions.table.sparkSession, impressions_read)

    def pack(shared_user: SharedUser | None) -> DataFrame:
        return checkpoint(
            pack_log(impressions, interactions, settings, shared_user, buckets=buckets, folder=folder),
            partition_by="kind",
        )

    bundles = pack(None)
    shared_user = find_shared_user(bundles, buckets=buckets, share=share)
    if shared_user is not None:
        bundles = pack(shared_user)
    judged = checkpoint(
        judge_users(
            bundles, settings.denoise, window_days=settings.attribution.window_days, buckets=buckets, folder=folder
        ),
        partition_by="kind",
    )
    both = bundles.unionByName(judged)
    history = ESTIMATORS.require(settings.propensity.estimator).history
    pages = judge_pages(both, settings.denoise, history=history, buckets=buckets, folder=folder)
    origin = Origin(settings.propensity.shuffled_systems, share, learned_days)
    return TalliedLog(
        tallied=checkpoint(tally_pairs(pages.unionByName(both), settings.denoise, origin, buckets=buckets)),
        interactions=interactions.table,
        attributions=count_attributions(judged),
        logged_rankings=select_last_pages(both, read_names(bundles), settings.denoise, buckets=buckets),
        shared_user=shared_user,
    )


def grade_log(
    log: TalliedLog,
    settings: LabelSettings,
    *,
    judgments: DataFrame | None,
    checkpoint: Checkpointer,
    learned: bool,
) -> LabelTables:
    """Correct the counts of a log for position bias, and grade them; `learned` as in `_gather_evidence`."""
    tallied = log.tallied
    require_kept_rows(tallied, settings.denoise)
    cells = _select_cells(tallied, settings)
    records = checkpoint(estimate_propensities(cells, tallied, settings.propensity))
    labels = grade_pairs(cells, records, settings.grade)
    return LabelTables(
        labels=labels if judgments is None else merge_judgments(labels, judgments, settings.human),
        propensities=select_propensities(records),
        denoise_funnel=count_funnel(tallied),
        quarantine=select_quarantine(tallied, log.interactions),
        diagnostics=select_diagnostics(records),
        attributions=log.attributions,
        agreement=None if judgments is None else measure_agreement(labels, judgments, settings.human),
        logged_rankings=log.logged_rankings,
        log_shape=measure_log_shape(tallied),
        shared_user=log.shared_user,
        evidence=_gather_evidence(tallied, records, settings, learned=learned),
    )


def pack_log(
    impressions: LogRows,
    interactions: LogRows,
    settings: LabelSettings,
    shared_user: SharedUser | None,
    *,
    buckets: int,
    folder: str | None = None,
) -> DataFrame:
    """A log as bundles, which workers put into files of the `folder`, where one is given."""
    pack = partial(pack_impressions, impressions, contexts=settings.contexts), partial(pack_events, interactions)
    places, events = (
        each(settings=settings.denoise, shared_user=shared_user, buckets=buckets, folder=folder) for each in pack
    )
    return places.unionByName(events)


def _select_cells(tallied: DataFrame, settings: LabelSettings) -> DataFrame:
    estimator = ESTIMATORS.require(settings.propensity.estimator)
    deepest = settings.propensity.max_position
    return select_cells(tallied, max_position=deepest, history=estimator.history, outcome=estimator.outcome)


def _gather_evidence(tallied: DataFrame, records: DataFrame, settings: LabelSettings, *, learned: bool) -> LogEvidence:
    """The evidence for posteriors; with `learned` days, that of the other days, where there are any."""
    learned_share = _measure_learned_share(tallied) if learned else 0.0
    left_out = 0.0 < learned_share < 1.0
    rest = tallied.where(~F.col("learned")) if left_out else tallied
    cells = _select_cells(rest, settings)
    return LogEvidence(
        pairs=count_examinations(cells, records),
        positions=measure_positions(rest),
        traffic=measure_traffic(rest),
        exponent=select_exponent(records),
        promoted=grade_pairs(cells, records, settings.grade) if left_out else None,
        learned_share=learned_share,
    )


def _measure_learned_share(tallied: DataFrame) -> float:
    """The share of the kept impressions that are of days that a compared system learned from."""
    learned = F.sum(F.when(F.col("learned"), F.col("impressions")).otherwise(0))
    row = tallied.where("bits = 0").agg((learned / F.sum("impressions")).alias("share")).first()
    return 0.0 if row is None or row["share"] is None else float(row["share"])
