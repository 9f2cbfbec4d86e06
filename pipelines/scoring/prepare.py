"""Prepare scoring from the validated inputs and the labels of a run."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config.model import Config
from pipelines.inputs.count import CountResult
from pipelines.inputs.validate import ValidatedInputs
from pipelines.labels.judgments import select_label_judgments
from pipelines.labels.pool import LogEvidence
from pipelines.labels.prior import LabelPosterior, publish_posterior
from pipelines.labels.publish import PublishedLabels
from pipelines.scoring.from_files import ListFiles
from pipelines.scoring.page_traffic import KEY, PageLists, build_page_lists
from pipelines.scoring.score import Scorer, ScoringTables
from pipelines.scoring.systems import score_systems
from pipelines.warehouse.attempt import Attempt
from udfs.conventions import Conventions
from udfs.draws import LabelDraws, NormalDraws, PosteriorDraws
from udfs.spark.pool import LIST

if TYPE_CHECKING:
    from udfs.posterior.fit import Prior

TEXT_PER_ROW = 100  # bytes; a table with longer texts is partitioned like one with more rows
MIN_POOL_DEPTH = 10  # documents of every list that belong to the pool, at least


def fit_posterior(
    attempt: Attempt,
    inputs: ValidatedInputs,
    labels: PublishedLabels | None,
    config: Config,
    conventions: Conventions,
) -> LabelPosterior | None:
    """Fit and publish the posterior of every document of the pool; None unless `unjudged` is `posterior`."""
    if conventions.unjudged != "posterior" or labels is None or labels.evidence is None:
        return None
    lists = _select_lists(inputs, labels).where(F.col("system").isin(*inputs.systems))
    pages = build_page_lists(inputs, lists, config)
    return publish_posterior(
        attempt,
        labels.evidence,
        labels.labels,
        lists if pages is None else _split_lists(pages),
        config.labels.grade,
        conventions=conventions,
        systems=inputs.systems,
        not_vouched=[system for system in inputs.systems if not config.vouches_for(system)],
        other_days=_list_other_days(inputs, labels.evidence, config),
        top=max([MIN_POOL_DEPTH, *(spec.k for spec in config.specs if spec.k is not None)]),
        draws=config.label_draws,
        seed=config.statistics.seed,
        opinions=inputs.rows("opinions") if "opinions" in inputs.tables else None,
    )


def _split_lists(pages: PageLists) -> DataFrame:
    """All lists of a query, each under a name of its own."""
    lists, keys = pages.split_lists()
    return lists.withColumnRenamed("query_id", KEY).join(keys, KEY).withColumnRenamed(KEY, LIST)


def _list_other_days(inputs: ValidatedInputs, evidence: LogEvidence, config: Config) -> list[str]:
    """The systems whose training days are declared and are no part of the evidence."""
    if evidence.learned_share >= 1.0:  # no other days are there
        return []
    return [system for system in inputs.systems if config.list_learned_days([system])]


def build_scorer(
    inputs: ValidatedInputs,
    labels: PublishedLabels | None,
    config: Config,
    conventions: Conventions,
    *,
    posterior: LabelPosterior | None = None,
    bundle_folder: str | None = None,
) -> Scorer:
    """Build the function from labels to query metrics for the lists of this run.

    With `posterior`, grades are drawn from it. Human grades are drawn by their column `grade_sd` where
    `statistics.label_draws` is set. `bundle_folder` is that of the attempt.
    """
    lists = _select_lists(inputs, labels)
    pages = build_page_lists(inputs, lists, config)
    optional = {name: inputs.rows(name) for name in ("queries", "documents", "decisions") if name in inputs.tables}
    graded = select_label_judgments(inputs.rows("judgments")) if labels is None else labels.judgments
    tables = ScoringTables(
        labels=graded if posterior is None else posterior.labels,
        **optional,
        earlier=config.earlier_system,
    )
    return Scorer(
        rankings=lists if pages is None else pages.select_lists(),
        tables=tables,
        systems=inputs.systems,
        segments=config.query_columns,
        specs=[spec for spec in config.specs if spec.metric.scope != "system"],
        conventions=conventions,
        rows=sum(_weigh_rows(result) for result in inputs.results.values()),
        draws=_choose_draws(labels, config, conventions, None if posterior is None else posterior.prior),
        baseline=config.compare.baseline,
        counting=config.counting,
        pages=pages,
        files=_find_files(inputs, bundle_folder) if labels is None and pages is None else None,
    )


def _find_files(inputs: ValidatedInputs, bundle_folder: str | None) -> ListFiles | None:
    """The files of the judged lists, where workers can read all of them."""
    rankings, judgments, queries = (inputs.files.get(name) for name in ("rankings", "judgments", "queries"))
    if rankings is None or judgments is None or "chance" in inputs.tables["judgments"].source_columns:
        return None
    return (
        None
        if queries is None and "queries" in inputs.tables
        else ListFiles(rankings, judgments, queries, bundle_folder)
    )


def _choose_draws(
    labels: PublishedLabels | None, config: Config, conventions: Conventions, prior: Prior | None
) -> LabelDraws | None:
    if prior is not None:
        return PosteriorDraws(prior, cuts=config.labels.grade.cuts)
    if labels is None and config.statistics.label_draws:
        return NormalDraws(config.statistics.label_draws, config.statistics.seed, conventions.max_grade)
    return None


def score_whole_systems(
    rankings: DataFrame, inputs: ValidatedInputs, config: Config, conventions: Conventions
) -> DataFrame | None:
    """Compute the metrics with one value per system; None where there are none."""
    specs = [spec for spec in config.specs if spec.metric.scope == "system"]
    if not specs:
        return None
    return score_systems(rankings, inputs.rows("documents"), specs=specs, conventions=conventions)


def _weigh_rows(result: CountResult) -> int:
    """The number of rows for the size of partitions: more where texts are long."""
    return max(result.rows.kept, ceil(result.text_bytes / TEXT_PER_ROW))


def _select_lists(inputs: ValidatedInputs, labels: PublishedLabels | None) -> DataFrame:
    """Select the ranked lists to evaluate: the rankings, or the pages of the log."""
    logged = None if labels is None else labels.rankings
    return inputs.rows("rankings") if "rankings" in inputs.tables or logged is None else logged
