"""Publish the labels of a run: build them, check that every row is counted, write them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.inputs.validate import ValidatedInputs
from pipelines.labels.build import LabelTables, build_labels, grade_log
from pipelines.labels.denoise.funnel import check_row_counts
from pipelines.labels.denoise.nameless import choose_share
from pipelines.labels.grade import grade_by_cuts
from pipelines.labels.judgments import select_label_judgments
from pipelines.labels.log_days import publish_days
from pipelines.labels.log_shape import DROPPED, KEPT, diagnose_log, read_log_shape, sum_rows
from pipelines.labels.pool import LogEvidence
from pipelines.labels.settings import LabelSettings
from pipelines.labels.window import tally_days
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.concurrent import run_concurrently


@dataclass(frozen=True)
class PublishedLabels:
    """The published labels, the same as judgments for scoring, the lists of the logged systems, and the facts."""

    labels: DataFrame
    judgments: DataFrame  # query_id, doc_id, grade
    rankings: DataFrame | None
    quarantine: DataFrame | None
    facts: dict[str, Any]  # for the manifest
    evidence: LogEvidence | None = None  # of the log that this run labelled


def publish_labels(
    attempt: Attempt,
    inputs: ValidatedInputs,
    settings: LabelSettings,
    learned_days: Sequence[tuple[dt.date, dt.date]] = (),
) -> PublishedLabels:
    """Build and publish the labels of a run; `learned_days` are those that a compared system learned from."""
    impressions_read = inputs.counts["impressions"].kept
    if inputs.days:
        built, used = _build_from_days(attempt, inputs, settings, learned_days)
    else:
        built, used = _build_from_scratch(attempt, inputs, settings, learned_days), {}
    labels, _, _, facts = run_concurrently(
        [
            lambda: attempt.write("labels", built.labels),
            lambda: attempt.write("propensities", built.propensities.coalesce(1)),
            lambda: attempt.write("denoise_funnel", built.denoise_funnel.coalesce(1)),
            lambda: _collect_facts(built, impressions_read),
        ]
    )
    return PublishedLabels(
        labels=labels,
        judgments=select_scorable(labels, settings),
        rankings=built.logged_rankings,
        quarantine=built.quarantine,
        facts=facts | used,
        evidence=built.evidence,
    )


def _build_from_scratch(
    attempt: Attempt, inputs: ValidatedInputs, settings: LabelSettings, learned_days: Sequence[tuple[dt.date, dt.date]]
) -> LabelTables:
    return build_labels(
        inputs.log_rows("impressions"),
        inputs.log_rows("interactions"),
        settings,
        judgments=_select_judgments(inputs),
        checkpoint=attempt.checkpoint,
        impressions_read=inputs.counts["impressions"].kept,
        learned_days=learned_days,
        folder=attempt.bundle_folder,
    )


def _build_from_days(
    attempt: Attempt, inputs: ValidatedInputs, settings: LabelSettings, learned_days: Sequence[tuple[dt.date, dt.date]]
) -> tuple[LabelTables, dict[str, Any]]:
    """The same labels from the days of the log, and the days for the manifest; those that are missing are committed."""
    impressions_read = inputs.counts["impressions"].kept
    share = choose_share(impressions_read)
    days = publish_days(attempt, inputs.days, settings, inspected_share=share)
    log = tally_days(
        days,
        settings,
        checkpoint=attempt.checkpoint,
        inspected_share=share,
        impressions_read=impressions_read,
        learned_days=learned_days,
    )
    judgments = _select_judgments(inputs)
    built = grade_log(log, settings, judgments=judgments, checkpoint=attempt.checkpoint, learned=bool(learned_days))
    used = {"days": [record.path for record in days.records], "computed_days": days.computed}
    return replace(built, quarantine=built.quarantine.unionByName(days.read_rows("rejected"))), used


def _select_judgments(inputs: ValidatedInputs) -> DataFrame | None:
    return select_label_judgments(inputs.rows("judgments")) if "judgments" in inputs.tables else None


def reuse_labels(labels: DataFrame, settings: LabelSettings, run: str) -> PublishedLabels:
    """The labels that an earlier run published."""
    return PublishedLabels(
        labels=labels,
        judgments=select_scorable(labels, settings),
        rankings=None,
        quarantine=None,
        facts={"from_run": run},
    )


def select_scorable(labels: DataFrame, settings: LabelSettings) -> DataFrame:
    """The graded pairs as judgments; with `scale: lift`, the lift itself is the grade of behaviour."""
    lift = F.col(f"lift_{settings.grade.objective}")
    by_behaviour = lift if settings.grade.scale == "lift" else F.col("grade")
    grade = F.when(F.col("source") == "human", F.col("grade")).otherwise(by_behaviour)
    return labels.where("grade IS NOT NULL").select("query_id", "doc_id", grade.cast("double").alias("grade"))


def grade_by_goal(labels: DataFrame, goal: str, settings: LabelSettings) -> DataFrame:
    """The same pairs graded by the lift of one outcome alone."""
    lift = F.col(f"lift_{goal}")
    graded = labels.where(F.col("grade").isNotNull() & lift.isNotNull())
    return graded.select("query_id", "doc_id", grade_by_cuts(lift, settings.grade.cuts).cast("double").alias("grade"))


def _collect_facts(built: LabelTables, impressions_read: int) -> dict[str, Any]:
    """Small tables for the manifest; raises unless every row is kept or dropped."""
    attributions = built.attributions.collect()
    read = {"impressions": impressions_read}
    for row in attributions:
        read[f"{row.kind}s"] = read.get(f"{row.kind}s", 0) + row.events
    figures = built.log_shape.collect()
    kept, dropped = sum_rows(figures, KEPT), sum_rows(figures, DROPPED)
    check_row_counts(read, kept, dropped)
    shape = read_log_shape(
        figures,
        shared_user=built.shared_user,
        no_user_events=sum(row.events for row in attributions if row.attribution == "no_user"),
    )
    curve_verdicts = [row.asDict() for row in built.diagnostics.collect()]
    agreement = None if built.agreement is None else built.agreement.first()
    return {
        "read": read,
        "kept": kept,
        "dropped": dropped,
        "attributions": {f"{row.kind}/{row.attribution}": row.events for row in attributions},
        "verdicts": [asdict(diagnostic) for diagnostic in diagnose_log(shape)] + curve_verdicts,
        "agreement": None if agreement is None else agreement.asDict(),
        "learned_share": built.evidence.learned_share,
    }
