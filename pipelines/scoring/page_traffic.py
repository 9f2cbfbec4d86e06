"""The traffic of a query by columns of the log, and lists that differ by them (device, locale, surface)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.config.model import Config
from pipelines.inputs.validate import ValidatedInputs

PAGES = "pages"
KEY = "_key"
_ORDER = "_order"
_BETWEEN = "\x1f"  # between a query and a value that it is scored in


@dataclass(frozen=True)
class PageLists:
    """The pages of the log, and the lists; `columns` are those of the log by which a query has several lists."""

    impressions: DataFrame  # query_id, serp_id and the columns that segments use
    rankings: DataFrame
    columns: tuple[str, ...] = ()

    def count_pages(self, columns: Sequence[str]) -> DataFrame:
        """The pages of every query by these columns, in `pages`."""
        return self.impressions.groupBy("query_id", *columns).agg(F.count_distinct("serp_id").alias(PAGES))

    def select_lists(self, by: Sequence[str] = ()) -> DataFrame:
        """One list per system and query, or per value of `by`: that of the most pages, where there are several."""
        if not self.columns:
            return self.rankings
        lists = self.rankings.select("query_id", *self.columns).distinct()
        traffic = join_by(lists, self.count_pages(self.columns), ["query_id", *self.columns], "left")
        largest = Window.partitionBy("query_id", *by).orderBy(F.desc(F.coalesce(PAGES, F.lit(0))), *self.columns)
        chosen = traffic.withColumn(_ORDER, F.row_number().over(largest)).where(F.col(_ORDER) == 1)
        kept = join_by(self.rankings, chosen.select("query_id", *self.columns), ["query_id", *self.columns])
        return kept.drop(*[column for column in self.columns if column not in by])

    def split_lists(self) -> tuple[DataFrame, DataFrame]:
        """All lists, each under a query of its own, and the `key` of each with its `query_id`."""
        keyed = self.rankings.withColumn(KEY, write_key("query_id", self.columns))
        keys = keyed.select(KEY, "query_id").distinct()
        return keyed.drop("query_id", *self.columns).withColumnRenamed(KEY, "query_id"), keys


def write_key(query: str, columns: Sequence[str]) -> Column:
    """A query and its values of some columns as one text; null is no empty text."""
    values = [F.coalesce(F.concat(F.lit("="), column), F.lit("")) for column in columns]
    return F.concat_ws(_BETWEEN, query, *values)


def build_page_lists(inputs: ValidatedInputs, lists: DataFrame, config: Config) -> PageLists | None:
    """The pages and lists of a run with segments of the log; None without."""
    if not config.page_columns:
        return None
    pages = inputs.rows("impressions").select("query_id", "serp_id", *config.page_columns)
    ranked = inputs.tables.get("rankings")
    by = () if ranked is None else tuple(name for name in config.page_columns if name in ranked.source_columns)
    return PageLists(pages, lists, by)


def join_by(left: DataFrame, right: DataFrame, columns: Sequence[str], how: str = "inner") -> DataFrame:
    """Join by columns that may be null, and keep those of the left side."""
    renamed = right.withColumnsRenamed({column: f"_{column}" for column in columns})
    equal = reduce(Column.__and__, [F.col(column).eqNullSafe(F.col(f"_{column}")) for column in columns])
    return left.join(renamed, equal, how).drop(*[f"_{column}" for column in columns])
