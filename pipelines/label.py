"""From logs to labels: denoise, attribute, correct position bias, grade."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.attribute import attribute, count_attributions
from pipelines.denoise.funnel import count_funnel, count_kept, count_read, quarantine_of
from pipelines.denoise.pages import judge_pages, last_pages, together
from pipelines.denoise.pairs import cells_of, tally
from pipelines.denoise.users import mark_users, suspect_users
from pipelines.grade import grade
from pipelines.hold import Keep
from pipelines.human import measure_agreement, merge_judgments
from pipelines.label_config import LabelConfig
from pipelines.propensity.estimate import estimate_propensities, published, verdicts_of
from pipelines.propensity.estimators import estimator_named
from schemas.inputs import IMPRESSIONS, INTERACTIONS
from schemas.table import Table


@dataclass(frozen=True)
class Labels:
    """What a log becomes."""

    labels: DataFrame
    propensities: DataFrame
    denoise_funnel: DataFrame
    quarantine: DataFrame
    verdicts: DataFrame  # check, value, warning, sentence
    read: DataFrame  # kind, read
    kept: DataFrame  # kind, kept, dropped
    attributions: DataFrame  # kind, attribution, events
    agreement: DataFrame | None  # one row, see measure_agreement; where judgments are given
    logged_rankings: DataFrame  # the lists that the logged systems served last


def build_labels(
    impressions: DataFrame,
    interactions: DataFrame,
    config: LabelConfig,
    *,
    judgments: DataFrame | None = None,
    keep: Keep = lambda table: table,
) -> Labels:
    """Labels, and the account of how they came about.

    `keep` is handed the tables that several results are made from, and may hold them (`pipelines.hold`) so that the
    log is read once; without it, each result reads the log again.
    """
    shown, done = complete(impressions, IMPRESSIONS), complete(interactions, INTERACTIONS)
    estimator = estimator_named(config.propensity.estimator)
    attributed = attribute(done, window_days=config.attribution.window_days)
    rows = together(shown, attributed, contexts=config.contexts)
    marked = mark_users(rows, suspect_users(shown, config.denoise), config.denoise)
    judged = judge_pages(marked, config.denoise)
    tallied = keep(
        tally(
            judged,
            config.denoise,
            history=estimator.history,
            shuffled_systems=config.propensity.shuffled_systems,
        )
    )
    cells = cells_of(tallied, max_position=config.propensity.max_position)
    records = keep(estimate_propensities(cells, tallied, config.propensity))
    labels = grade(cells, records, config.grade)
    return Labels(
        labels=labels if judgments is None else merge_judgments(labels, judgments, config.human),
        propensities=published(records),
        denoise_funnel=count_funnel(tallied),
        quarantine=quarantine_of(tallied),
        verdicts=verdicts_of(records),
        read=count_read(shown, done),
        kept=count_kept(tallied),
        attributions=count_attributions(attributed),
        agreement=None if judgments is None else measure_agreement(labels, judgments, config.human),
        logged_rankings=last_pages(judged),
    )


def complete(table: DataFrame, contract: Table) -> DataFrame:
    """The table with every optional column of its contract, null where the input has none."""
    absent = {c.name: F.lit(None).cast(c.type) for c in contract.columns if c.name not in table.columns}
    return table.withColumns(absent) if absent else table
