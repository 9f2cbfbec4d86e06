"""Shape raw rows as the configuration says: a view, exploded arrays, conditions and expressions.

Every expression is analysed against the columns of the data before a row is read, and an error names its key. A value
that cannot be converted becomes null, so that its row is quarantined instead of ending the run.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.inputs.settings import PLACEHOLDER, InputSource, RawSource
from schemas.compute_once import add_once
from schemas.conform import CORRUPT
from schemas.errors import AssayError, ConfigurationError, InputError
from schemas.spark_errors import describe_spark_error, hide_spark_log

ITEM, INDEX = "item", "pos"  # an element of the array that `explode` names, and its index from 0
_ANSI = "spark.sql.ansi.enabled"
FIXED = "assay_fixed_"  # begins the names of views whose plans are analysed
_NAME = re.compile(r"[A-Za-z_]\w*")


def run_view(
    spark: SparkSession, name: str, source: InputSource, tables: Mapping[str, DataFrame], date: dt.date
) -> DataFrame:
    """The rows of a view over named tables. A view can only be a query: it is the table of one."""
    sql = PLACEHOLDER.sub(lambda match: date.isoformat() if match[1] == "date" else match[0], str(source.view))
    # Only the names of sources are in single braces; `spark.sql` puts a table in the place of each.
    sql = re.sub(r"\{\{([A-Za-z_]\w*)\}\}", r"{table_\1}", sql.replace("{", "{{").replace("}", "}}"))
    named: dict[str, Any] = {f"table_{part}": table for part, table in tables.items()}
    with _report_sql(f"inputs.{name}.view"), _convert_leniently(spark):
        return _fix_analysis(spark.sql(f"SELECT * FROM (\n{sql}\n)", **named))


def filter_rows(raw: DataFrame, name: str, source: RawSource, date: dt.date) -> DataFrame:
    """One row per element where an array is exploded, then the rows that meet the condition."""
    spark = raw.sparkSession
    if isinstance(source, InputSource) and source.explode is not None:
        taken = [column for column in (ITEM, INDEX) if column in raw.columns]
        if taken:
            raise InputError(
                f"the data has a column {taken[0]!r}, the name of a part of what is exploded",
                where=f"inputs.{name}.explode",
                hint=f"rename it in a view: SELECT {taken[0]} AS other, ...",
            )
        with _report_sql(f"inputs.{name}.explode"), _convert_leniently(spark):
            exploded = F.posexplode(F.expr(source.explode)).alias(INDEX, ITEM)
            raw = _fix_analysis(raw.select("*", exploded))
    if source.where is None:
        return raw
    with _report_sql(f"inputs.{name}.where"), _convert_leniently(spark):
        return _fix_analysis(raw.where(source.where.replace("{date}", date.isoformat())))


def add_expressions(raw: DataFrame, name: str, source: InputSource) -> DataFrame:
    """Add each expression of `columns` as a column whose name is its text, to be renamed as any other column."""
    for contract, text in source.columns.items():
        if text in raw.columns or _NAME.fullmatch(text):  # a name; `conform` reports one that is not in the data
            continue
        with _report_sql(f"inputs.{name}.columns.{contract}"), _convert_leniently(raw.sparkSession):
            raw = _fix_analysis(add_once(raw, {text: F.expr(text)}))
    return raw


def _fix_analysis(table: DataFrame) -> DataFrame:
    """The table with its plan analysed here and now, under the settings of this moment.

    Spark Connect analyses the plan of a DataFrame with every query; that of a view is analysed once.
    """
    if not _is_connect(table):
        return table
    name = f"{FIXED}{uuid.uuid4().hex}"
    table.createTempView(name)
    return table.sparkSession.table(name)


def drop_fixed_views(spark: SparkSession) -> None:
    """Drop the views that fix the analysis of inputs, once nothing reads them any more."""
    if _is_connect(spark):
        for view in spark.catalog.listTables(pattern=f"{FIXED}*"):
            spark.catalog.dropTempView(view.name)


def _is_connect(part: DataFrame | SparkSession) -> bool:
    return type(part).__module__.startswith("pyspark.sql.connect")


@contextmanager
def _convert_leniently(spark: SparkSession) -> Iterator[None]:
    """Analyse what is inside so that a value that cannot be converted is null; the plan keeps it that way."""
    before = spark.conf.get(_ANSI)
    spark.conf.set(_ANSI, "false")
    try:
        yield
    finally:
        spark.conf.set(_ANSI, str(before))


@contextmanager
def _report_sql(key: str) -> Iterator[None]:
    """Report SQL that cannot be used with the key it stands at."""
    try:
        with hide_spark_log():
            yield
    except (AnalysisException, ParseException) as error:
        raise _describe_sql_error(error, key) from error


def _describe_sql_error(error: Exception, key: str) -> AssayError:
    condition, message = describe_spark_error(error)
    message = re.sub(r"\s*SQLSTATE: \w+.*", "", message).replace(f", `{CORRUPT}`", "")
    if isinstance(error, ParseException) or condition.startswith("PARSE"):
        return ConfigurationError(f"the SQL cannot be parsed: {message}", where=key, hint="correct it there")
    return InputError(f"the SQL does not fit the data: {message}", where=key, hint=_suggest_fix(condition))


def _suggest_fix(condition: str) -> str:
    if condition.startswith("FIELD_NOT_FOUND"):
        return "write a field that the data has; `assay inspect` lists them"
    if condition.startswith(("UNRESOLVED_COLUMN", "TABLE_OR_VIEW_NOT_FOUND")):
        return (
            "write a column of the data there, or check `format` if those are none; a constant stands in quotes of its "
            "own, as \"'text'\""
        )
    if condition.startswith("DATATYPE_MISMATCH"):
        return "convert it there, as in bigint(NAME), string(NAME) or from_json(NAME, 'array<string>')"
    if condition.startswith(("UNRESOLVED_ROUTINE", "WRONG_NUM_ARGS")):
        return "look up the functions of Spark SQL"
    return "correct it there; `assay inspect` shows the columns of a file"
