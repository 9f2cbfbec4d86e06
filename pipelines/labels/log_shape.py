"""Recognise logs from which less can be concluded: the shape of the log as figures, and what follows in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipelines.labels.denoise.cells import COUNTS
from pipelines.labels.denoise.nameless import SharedUser
from pipelines.labels.denoise.page_arrays import PageMark
from pipelines.labels.propensity.diagnostics import CurveDiagnostic

KEPT, DROPPED, STEP = "kept", "dropped", "step"
CLICKED_SHARE, CLICKED_PAGES = 0.98, 100  # share of pages with a click, and fewest pages, to report a missing rest
_NOTABLE = 0.01  # share of pages from which a deviation is a warning
_DEEPEST = 50
_FALL = 0.98  # a position shown less often than this share of the one above it has thinned out
_FALLING, _STEPS, _LEFT = 2 / 3, 3, 0.7  # share of such steps, fewest steps, and what is left after all of them
_EVIDENCE = 20  # impressions of a step


@dataclass(frozen=True)
class PositionStep:
    """Impressions at a position and at the next one, over the queries that show both."""

    position: int
    shown: int
    shown_next: int


@dataclass(frozen=True)
class LogShape:
    """Counts of kept impressions and pages, and what else the sentences need."""

    pages: Mapping[int, int]  # by their marks, see `PageMark`
    impressions: int
    without_system: int
    systems: tuple[str, ...]  # the first and the last by name
    steps: Sequence[PositionStep]
    shared_user: SharedUser | None = None
    no_user_events: int = 0  # events without a page, of nameless users

    def count_pages(self, mark: PageMark = PageMark.PAGE) -> int:
        """The pages with a mark."""
        return sum(pages for marks, pages in self.pages.items() if marks & mark)


def measure_log_shape(tallied: DataFrame) -> DataFrame:
    """The rows that are kept and dropped, and the figures of `LogShape` that the tally has, as a small table."""
    is_kept = F.col("bits") == 0
    totals = tallied.groupBy(
        F.when(is_kept, F.lit(KEPT)).otherwise(F.lit(DROPPED)).alias("figure"), F.col("page_mark").alias("key")
    ).agg(
        *[F.sum(name).alias(name) for name in COUNTS],
        F.sum(F.when(F.col("system").isNull(), F.col("impressions")).otherwise(0)).alias("other"),
        F.min("system").alias("first_system"),
        F.max("system").alias("last_system"),
    )
    below = Window.partitionBy("query_id").orderBy("position")
    steps = (
        tallied.where(is_kept & (F.col("position") <= _DEEPEST))
        .groupBy("query_id", "position")
        .agg(F.sum("impressions").alias("shown"))
        .withColumns({"next": F.lead("position").over(below), "shown_next": F.lead("shown").over(below)})
        .where(F.col("next") == F.col("position") + 1)
        .groupBy(F.col("position").alias("key"))
        .agg(F.sum("shown").alias("impressions"), F.sum("shown_next").alias("other"))
        .withColumn("figure", F.lit(STEP))
    )
    return totals.unionByName(steps, allowMissingColumns=True)


def sum_rows(rows: Iterable[Any], figure: str) -> dict[str, int]:
    """Rows by kind, of those that are `KEPT` or `DROPPED`, from the collected rows of `measure_log_shape`."""
    chosen = [row for row in rows if row["figure"] == figure]
    return {name: sum(row[name] for row in chosen) for name in COUNTS}


def read_log_shape(rows: Iterable[Any], *, shared_user: SharedUser | None, no_user_events: int) -> LogShape:
    """The collected rows of `measure_log_shape`, with what is known beside them."""
    rows = list(rows)
    marks = [row for row in rows if row["figure"] == KEPT]
    steps = (PositionStep(row["key"], row["impressions"], row["other"]) for row in rows if row["figure"] == STEP)
    names = {row[end] for row in marks for end in ("first_system", "last_system") if row[end] is not None}
    return LogShape(
        pages={row["key"]: row["impressions"] for row in marks if row["key"]},
        impressions=sum(row["impressions"] for row in marks),
        without_system=sum(row["other"] for row in marks),
        systems=tuple(sorted({min(names), max(names)})) if names else (),
        steps=sorted(steps, key=lambda step: step.position),
        shared_user=shared_user,
        no_user_events=no_user_events,
    )


def diagnose_log(shape: LogShape) -> list[CurveDiagnostic]:
    """What is unusual about a log, and what can still be concluded from it; nothing of an ordinary one."""
    checks = (diagnose_systems, diagnose_users, diagnose_clicked_pages, diagnose_thinning, diagnose_blocks)
    return [diagnostic for check in checks if (diagnostic := check(shape)) is not None]


def diagnose_systems(shape: LogShape) -> CurveDiagnostic | None:
    """Whether the log names its systems, and more than one."""
    named = 1 - shape.without_system / shape.impressions
    if not shape.systems:
        sentence = (
            "The log does not name its systems: a personalised ranker cannot be detected, and the systems that served "
            "the log cannot be evaluated. Labels do not need the names."
        )
        return CurveDiagnostic("systems", 0.0, True, sentence)
    if shape.without_system:
        sentence = f"{1 - named:.1%} of impressions name no system; the others are checked for a personalised ranker."
        return CurveDiagnostic("systems", named, 1 - named >= _NOTABLE, sentence)
    if len(shape.systems) > 1:
        return None
    sentence = (
        f"One system, {shape.systems[0]}, served all pages: documents change position only when its ranking changes, "
        "and documents that it does not show get no label."
    )
    return CurveDiagnostic("systems", 1.0, False, sentence)


def diagnose_users(shape: LogShape) -> CurveDiagnostic | None:
    """Whether pages name their users."""
    pages, nameless = shape.count_pages(), shape.count_pages(PageMark.NAMELESS)
    sentences = []
    if nameless:
        shared = shape.shared_user
        of_shared = f", or {shared.user_id!r}, which has {shared.share:.0%} of all pages" if shared else ""
        sentences.append(
            f"{nameless:,} of {pages:,} pages name no user (the id is missing or a placeholder{of_shared}): each "
            "counts as one person, rules on users do not apply to them, and known crawlers are dropped page by page."
        )
        if shared:
            sentences.append("If that user is a program, list it in labels.denoise.internal_user.users.")
    if shape.no_user_events:
        sentences.append(f"{shape.no_user_events:,} events name neither page nor user and cannot be attributed.")
    if not sentences:
        return None
    warning = nameless >= _NOTABLE * pages or shape.no_user_events > 0
    return CurveDiagnostic("users", nameless / max(pages, 1), warning, " ".join(sentences))


def diagnose_clicked_pages(shape: LogShape) -> CurveDiagnostic | None:
    """Whether pages are logged only when something on them is clicked."""
    pages, clicked = shape.count_pages(), shape.count_pages(PageMark.CLICKED)
    if pages < CLICKED_PAGES or clicked < CLICKED_SHARE * pages:
        return None
    sentence = (
        f"{clicked:,} of {pages:,} pages have a click, as happens when pages without one are not logged: click rates "
        "hold for searches with a click only and are too high. Documents of one query can still be compared with each "
        "other, queries and click rates cannot."
    )
    return CurveDiagnostic("clicked_pages", clicked / pages, True, sentence)


def diagnose_thinning(shape: LogShape) -> CurveDiagnostic | None:
    """Whether impressions thin out with the position, as where results are logged when scrolled into view."""
    steps = [step for step in shape.steps if step.shown >= _EVIDENCE]
    if len(steps) < _STEPS:
        return None
    ratios = [step.shown_next / step.shown for step in steps]
    left = reduce(lambda product, ratio: product * ratio, ratios)
    if sum(ratio < _FALL for ratio in ratios) < _FALLING * len(ratios) or left > _LEFT:
        return None
    last = steps[-1].position + 1
    sentence = (
        f"Pages of the same query end at different positions: position {last} is shown on {left:.0%} of the pages that "
        f"show position {steps[0].position}, as happens when results are logged only once scrolled into view. If so, "
        "measured propensities hold, but assumed ones correct for position twice: set labels.propensity.assumed_eta "
        "to 0."
    )
    return CurveDiagnostic("thinning", left, True, sentence)


def diagnose_blocks(shape: LogShape) -> CurveDiagnostic | None:
    """Whether several documents of a page have the same position."""
    pages, stacked = shape.count_pages(), shape.count_pages(PageMark.STACKED)
    if not stacked:
        return None
    share = stacked / max(pages, 1)
    sentence = (
        f"On {stacked:,} of {pages:,} pages several documents have the same position, as happens when blocks or "
        "carousels count from 1 each: they share its propensity, which is an average over the blocks. Number the "
        "positions down the page, or make the block one of labels.contexts."
    )
    return CurveDiagnostic("blocks", share, share >= _NOTABLE, sentence)
