"""Label a log inside a run: build, check the account, publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.check import Checked
from pipelines.denoise.funnel import assert_nothing_is_lost
from pipelines.grade import by_cuts
from pipelines.label import Labels, build_labels
from pipelines.label_config import LabelConfig
from pipelines.publish import Attempt


@dataclass(frozen=True)
class Labelled:
    """The published labels as scoring wants them, the lists of the logged systems, and what to tell people."""

    labels: DataFrame
    judgments: DataFrame  # query_id, doc_id, grade
    rankings: DataFrame | None
    quarantine: DataFrame | None
    facts: dict[str, Any]


def labelled(attempt: Attempt, checked: Checked, config: LabelConfig) -> Labelled:
    """Build and publish the labels of a run."""
    human = checked.rows("judgments") if "judgments" in checked.tables else None
    built = build_labels(
        checked.rows("impressions"), checked.rows("interactions"), config, judgments=human, keep=attempt.hold
    )
    labels = attempt.write("labels", built.labels)
    attempt.write("propensities", built.propensities.coalesce(1))
    attempt.write("denoise_funnel", built.denoise_funnel.coalesce(1))
    return Labelled(labels, scorable(labels, config), built.logged_rankings, built.quarantine, _facts(built))


def earlier_labels(labels: DataFrame, config: LabelConfig, run: str) -> Labelled:
    """The labels of a run that is already published."""
    return Labelled(labels, scorable(labels, config), None, None, {"from_run": run})


def scorable(labels: DataFrame, config: LabelConfig) -> DataFrame:
    """The labels that score: graded pairs only, with the lift itself where real-valued labels are asked for."""
    value = F.col(f"lift_{config.grade.objective}") if config.grade.scale == "lift" else F.col("grade")
    judged = F.when(F.col("source") == "human", F.col("grade")).otherwise(value)
    return labels.where("grade IS NOT NULL").select("query_id", "doc_id", judged.cast("double").alias("grade"))


def by_goal(labels: DataFrame, goal: str, config: LabelConfig) -> DataFrame:
    """The same pairs graded by the lift of one outcome alone."""
    lift = F.col(f"lift_{goal}")
    known = labels.where(F.col("grade").isNotNull() & lift.isNotNull())
    return known.select("query_id", "doc_id", by_cuts(lift, config.grade.cuts).cast("double").alias("grade"))


def _facts(built: Labels) -> dict[str, Any]:
    """Small tables for the manifest; here the account is closed."""
    read = {row.kind: row.read for row in built.read.collect()}
    fates = {row.kind: row for row in built.kept.collect()}
    kept = {kind: row.kept for kind, row in fates.items()}
    dropped = {kind: row.dropped for kind, row in fates.items()}
    assert_nothing_is_lost(read, kept, dropped)
    agreement = None if built.agreement is None else built.agreement.first()
    return {
        "read": read,
        "kept": kept,
        "dropped": dropped,
        "attributions": {f"{row.kind}/{row.attribution}": row.events for row in built.attributions.collect()},
        "verdicts": [row.asDict() for row in built.verdicts.collect()],
        "agreement": None if agreement is None else agreement.asDict(),
    }
