"""TREC run and qrels files: white space between fields, no header, `#` begins a comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pipelines.inputs.format_registry import register_preset, source_format

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# `system` says what names a system: its file, or its tag even where several files have it. Without it, the tag is the
# system and may be in one file only. The others are options of Spark's reader of text.
OPTIONS = {
    "system": "file|tag",
    "recursiveFileLookup": "true|false",
    "pathGlobFilter": ".+",
    "lineSep": r"[\s\S]+",
}
WHITE_SPACE = "\t\v\f\r"  # what isspace of C accepts beside a blank and the end of a line
_ENDINGS = r"(\.(txt|run|trec|res|tsv|csv|input))?(\.(gz|bz2|zst|lz4|snappy|deflate))?$"


@source_format("trec_run", OPTIONS)
def read_run(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query Q0 document rank score tag`; trec_eval ignores what follows the tag, and so do we."""
    from pyspark.sql import functions as F

    from schemas.conform import SOURCE_FILE

    reader = {name: value for name, value in options.items() if name != "system"}
    files = {SOURCE_FILE: F.col("_metadata.file_path")}
    if "system" in options:
        files = {} if options["system"] == "tag" else files | {"system": name_by_file(F.col("_metadata.file_name"))}
    names = ("query_id", "", "doc_id", "rank", "score", "system")
    return _read_fields(spark, paths, reader, names, files=files, rest_ignored=True)


@source_format("trec_qrels")
def read_qrels(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query iteration document grade`."""
    return _read_fields(spark, paths, options, ("query_id", "", "doc_id", "grade"), files={})


def read_diversity_qrels(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Read `query subtopic document judgment`: of each document the highest judgment, and the subtopics above 0."""
    from pyspark.sql import functions as F

    from schemas.conform import CORRUPT

    lines = _read_fields(spark, paths, options, ("query_id", "subtopic", "doc_id", "grade"), files={})
    judgment = F.col("grade").try_cast("double")
    usable = F.col(CORRUPT).isNull() & F.coalesce(F.abs(judgment) < float("inf"), F.lit(False))
    judged = (
        lines.where(usable)
        .groupBy("query_id", "doc_id")
        .agg(
            F.max(judgment).cast("string").alias("grade"),
            F.array_sort(F.collect_set(F.when(judgment > 0, F.col("subtopic")))).alias("subtopics"),
        )
    )
    return judged.unionByName(lines.where(~usable).drop("subtopic"), allowMissingColumns=True)


register_preset(
    "trec_diversity_qrels",
    {"judgments": read_diversity_qrels},
    {name: pattern for name, pattern in OPTIONS.items() if name != "system"},
)


def name_by_file(name: Column) -> Column:
    """The system of a run that is named by its file: the file's name, which Spark encodes, without its ending."""
    from pyspark.sql import functions as F

    decoded = F.url_decode(F.replace(name, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(decoded, _ENDINGS, "")


def _read_fields(
    spark: SparkSession,
    paths: Sequence[str],
    options: Mapping[str, str],
    names: Sequence[str],
    *,
    files: Mapping[str, Column],
    rest_ignored: bool = False,
) -> DataFrame:
    """Read the fields of each line, without those that have no name, and the columns that describe its file.

    Lines with too few fields are corrupt, and those with too many unless the rest of a line is ignored.
    """
    from pyspark.sql import functions as F

    from schemas.compute_once import select_once
    from schemas.conform import CORRUPT

    # A single blank is split without a regular expression, which takes less than half of the time.
    line = reduce(lambda text, white: F.replace(text, F.lit(white), F.lit(" ")), WHITE_SPACE, F.col("value"))
    fields = F.array_remove(F.split(line, " "), "")
    lines = spark.read.options(**options).text(list(paths))
    rows = lines.select("value", fields.alias("fields"), *[column.alias(name) for name, column in files.items()])
    number = F.size("fields")
    whole = number >= len(names) if rest_ignored else number == len(names)
    columns = {name: F.when(whole, F.get("fields", F.lit(at))) for at, name in enumerate(names) if name}
    columns |= {CORRUPT: F.when(~whole, F.col("value"))} | {name: F.col(name) for name in files}
    content = (number > 0) & ~F.get("fields", F.lit(0)).startswith("#")
    return select_once(rows, columns, where=content)
