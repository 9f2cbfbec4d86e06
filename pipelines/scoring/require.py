"""What scoring requires of the inputs and of the lists that were scored, and the conventions that follow from them.

Nothing of the labels is imported here: evaluations in memory use it too.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config.model import Config
from pipelines.inputs.validate import ValidatedInputs
from schemas.errors import DataQualityError, InputError
from udfs.compute import WITHOUT_GRADES, require_small_grades
from udfs.conventions import Conventions
from udfs.registry import MetricSpec

if TYPE_CHECKING:
    from pipelines.scoring.score import Scorer

logger = logging.getLogger(__name__)

_FLOATS = ", or whole numbers as floats, which pandas makes of a column with gaps ('7.0' is not '7')"
# What metrics read of documents, by its name in a `Block`, and the columns that it can come from.
_SOURCES = {
    "category": (("documents", "category"),),
    "popularity": (("documents", "popularity"),),
    "subtopics": (("documents", "category"), ("judgments", "subtopics")),
}


def require_systems(inputs: ValidatedInputs) -> None:
    """Stop where no input names a system."""
    if not inputs.systems:
        hint = (
            "set inputs.rankings, name the column that has them as columns: {system: NAME}, or write "
            "columns: {system: \"'production'\"} where one system served all pages; `assay label` needs none"
        )
        where = "inputs.impressions.columns.system"
        raise InputError("there are no systems to evaluate: the log does not name them", where=where, hint=hint)


def require_metric_columns(config: Config, present: Mapping[str, Collection[str]], *, from_behaviour: bool) -> None:
    """Stop where the inputs lack a column that a metric reads; `present` has the columns of each input."""
    for spec in config.specs:
        for name in spec.metric.reads:
            sources = [source for source in _SOURCES.get(name, ()) if not (from_behaviour and source[0] == "judgments")]
            if sources and not any(column in present.get(table, ()) for table, column in sources):
                missing = " and ".join(f"{table} has no {column}" for table, column in sources if table in present)
                keys = " or ".join(f"inputs.{table}.columns.{column}" for table, column in sources)
                raise InputError(f"{spec.name} needs {name}, but {missing}", hint=f"name the column in {keys}")


def resolve_conventions(config: Config, inputs: ValidatedInputs) -> Conventions:
    """Replace the conventions that depend on the data by their values, as they are stored with the numbers."""
    max_grade = config.conventions.max_grade or (inputs.max_grade if inputs.max_grade > 0 else None)
    require_small_grades(inputs.max_grade, config.specs)
    source = "behaviour" if inputs.from_behaviour else "judgments"
    logger.debug("labels from %s; unjudged documents: %s; highest grade: %s", source, config.unjudged, max_grade)
    return config.conventions.model_copy(update={"unjudged": config.unjudged, "max_grade": max_grade})


def require_clean_lists(query_metrics: DataFrame, conventions: Conventions) -> None:
    """Stop where lists have ties or duplicates that the conventions forbid."""
    for column, convention in {"tied": "ties", "duplicates": "duplicates"}.items():
        if getattr(conventions, convention) != "error":
            continue
        lists = query_metrics.where(F.col(column) > 0).select("system", "query_id", column)
        first = lists.orderBy("system", "query_id").first()
        if first is not None:
            raise build_unclean_error(column, convention, lists.count(), first["system"], first["query_id"])


def build_unclean_error(column: str, convention: str, lists: int, system: str, query: str) -> DataQualityError:
    """The error about lists with documents that a convention forbids, and the first of them."""
    return DataQualityError(
        f"{lists:,} lists have {column} documents, first system {system!r}, query {query!r}",
        hint=f"fix the rankings, or choose another conventions.{convention}",
    )


def require_common_queries(query_metrics: DataFrame, scorer: Scorer) -> None:
    """Stop where no list of a system belongs to a query with labels: its metrics would all be 0, or undefined."""
    if all(spec.metric.defined == "always" for spec in scorer.specs):
        return
    # With a posterior, the documents of every list have one: what counts is a document that was shown or judged.
    posterior = scorer.conventions.unjudged == "posterior"
    matched = F.col("judged") > 0 if posterior else (F.col("labelled") > 0) & (F.col("retrieved") > 0)
    systems = query_metrics.groupBy("system").agg(
        F.max(matched).alias("matched"),
        F.min(F.when(F.col("retrieved") > 0, F.col("query_id"))).alias("ranked"),
        F.min(F.when(F.col("labelled") > 0, F.col("query_id"))).alias("labelled"),
        F.max("judged").alias("judged"),
    )
    rows = sorted(systems.collect(), key=lambda row: str(row["system"]))
    unmatched = [row for row in rows if not row["matched"]]
    if unmatched:
        example = unmatched[0]
        raise build_unmatched_error([row["system"] for row in unmatched], example["ranked"], example["labelled"])
    if depends_on_grades(scorer.specs) and not any(row["judged"] for row in rows):
        examples = [each.agg(F.min("doc_id")).first() for each in (scorer.rankings, scorer.tables.labels)]
        raise build_unjudged_error(*[None if row is None else row[0] for row in examples])


def depends_on_grades(specs: Sequence[MetricSpec]) -> bool:
    """Whether a metric depends on the grades of the ranked documents."""
    return any(spec.metric.scope == "list" and spec.metric.defined not in WITHOUT_GRADES for spec in specs)


def build_unmatched_error(systems: Sequence[str], ranked: str | None, labelled: str | None) -> DataQualityError:
    """The error about systems that ranked no query with labels; a query that was ranked, and one with labels."""
    return DataQualityError(
        f"no query that {', '.join(map(repr, systems))} ranked has labels, such as {ranked!r}; {labelled!r} has some",
        hint=f"compare query_id of the rankings and the labels: case, spaces, prefixes, another date{_FLOATS}",
    )


def build_unjudged_error(ranked: str | None, labelled: str | None) -> DataQualityError:
    """The error about lists without a single labelled document; a document that was ranked, and one with a label."""
    return DataQualityError(
        f"none of the ranked documents has a label, such as {ranked!r}; {labelled!r} has one",
        hint=f"compare doc_id of the rankings and the labels: case, spaces, prefixes{_FLOATS}",
    )
