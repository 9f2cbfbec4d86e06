"""Count the rows of one input in a single pass, along with the aggregates and the sample that others request of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.conform import IGNORED, SOURCE_FILE, ConformedTable
from schemas.errors import DataQualityError
from udfs.ragged import Ints
from udfs.spark.file_counts import FileRequest

MAX_IGNORED = 50  # reasons to ignore a row that are recorded
MAX_GROUPS = 1000  # reasons × systems of one input; only their counts reach the driver
_SAMPLE = "sample"  # the struct column that carries the sampled columns
_SPLIT = "split"

Group = dict[str, Any]


@dataclass(frozen=True)
class RowCount:
    """Rows read of one input: each is either kept, or rejected for one reason. Ignored ones are not for the input."""

    read: int
    kept: int
    rejected: Mapping[str, int]
    ignored: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FittingRows:
    """The value of an aggregate over rows that all fit their contract.

    `nothing` counts rows with a value outside of `within`, `none` is one of these values: where there may be such rows,
    Spark counts.
    """

    counts: Literal["rows", "nulls", "nothing", "none", "grades", "choice", "largest"]
    column: str | None = None
    grade: int | None = None
    choice: str | None = None  # of a column with choices
    within: tuple[float, float] | None = None
    per: float = 1  # the unit of `largest`


@dataclass(frozen=True)
class RowAggregate:
    """An aggregate over all rows of an input; null over no rows."""

    value: SparkColumn
    merge: Literal["sum", "min", "max"] = "sum"  # how partial results combine: rows are aggregated in groups
    fitting: FittingRows | None = None  # what it is where all rows fit, if that is known


@dataclass(frozen=True)
class SplitCount:
    """How many rows have one value of the column that a request splits the rows by: a day, or any other day."""

    value: str
    is_other: bool = False
    merge: Literal["sum"] = "sum"


Aggregate = RowAggregate | SplitCount


@dataclass(frozen=True)
class RowSample:
    """Rows to collect: those that meet a condition, with these columns."""

    columns: Mapping[str, SparkColumn]
    where: SparkColumn
    limit: int  # a sample with more rows is dropped as a whole


@dataclass(frozen=True)
class CountRequest:
    """What to compute in the pass that counts the rows of an input.

    `split` is a text column with the values of the split counts, null for other rows. Rows are grouped by it: Spark
    generates, compiles and runs code for each aggregate, and a window of four weeks has one count for each day.
    """

    aggregates: Mapping[Hashable, Aggregate] = field(default_factory=dict)
    sample: RowSample | None = None
    split: SparkColumn | None = None
    of_files: FileRequest = field(default_factory=FileRequest)  # for workers that read the files of an input

    def count_splits(self) -> int:
        """How many groups the split makes of one."""
        return 1 + sum(isinstance(aggregate, SplitCount) for aggregate in self.aggregates.values())


@dataclass(frozen=True)
class CountResult:
    """The counts of one input, and the values requested, under the keys of the request."""

    rows: RowCount
    systems: frozenset[str]  # of the kept rows
    split_systems: frozenset[str]  # those with kept rows in more than one file, where rows know their file
    max_grade: float | None  # of the kept rows
    text_bytes: int  # of all texts of the kept rows
    values: Mapping[Hashable, Any]
    # The sampled columns, `system` where the input has one, and how many `rows` are equal; None without a request, or
    # where the sample exceeded its limit.
    sample: pa.Table | None
    # Where workers counted the files: the rows of sampled units, and by column a sketch of its distinct values.
    unit_samples: Mapping[str, pa.Table] = field(default_factory=dict)
    sketches: Mapping[str, Ints] = field(default_factory=dict)


def count_rows(table: ConformedTable, request: CountRequest) -> CountResult:
    """Count rows by reason and system, and compute what is requested of them, in one Spark job."""
    aggregates = dict(enumerate(request.aggregates.values()))
    counted = _aggregate(table, request)
    sample = request.sample
    if sample is not None and counted.num_rows > limit_groups(request):
        sample = None
        counted = _aggregate(table, replace(request, sample=None))
    groups = _merge_groups(table.table.name, counted, aggregates)
    kept = [group for group in groups if group["reason"] is None]
    rows_by_split = _count_by_split(counted)
    merged = [
        rows_by_split.get(aggregate.value, 0)
        if isinstance(aggregate, SplitCount)
        else merge_values(aggregate, [group[_name(n)] for group in groups])
        for n, aggregate in aggregates.items()
    ]
    split = [group["system"] for group in kept if table.has_files and group["first_file"] != group["last_file"]]
    grades = [float(group["max_grade"]) for group in kept if group["max_grade"] is not None]
    return CountResult(
        rows=_count_by_reason(groups),
        systems=frozenset(group["system"] for group in kept if group.get("system") is not None),
        split_systems=frozenset(split),
        max_grade=max(grades, default=None),
        text_bytes=sum(group["text_bytes"] or 0 for group in kept),
        values=dict(zip(request.aggregates, merged, strict=True)),
        sample=None if sample is None else _select_sample(counted, list(sample.columns)),
    )


def dump_result(result: CountResult) -> dict[str, Any]:
    """The result as JSON, its values by what they count: in another process, a request may have another order."""
    return {
        "rows": asdict(result.rows),
        "systems": sorted(result.systems),
        "text_bytes": result.text_bytes,
        "values": {repr(key): value for key, value in result.values.items()},
    }


def load_result(stored: Mapping[str, Any], request: CountRequest) -> CountResult:
    """The result of a request, as `dump_result` stored it."""
    return CountResult(
        rows=RowCount(**stored["rows"]),
        systems=frozenset(stored["systems"]),
        split_systems=frozenset(),
        max_grade=None,
        text_bytes=stored["text_bytes"],
        values={key: stored["values"][repr(key)] for key in request.aggregates},
        sample=None,
    )


def count_ignored(rows: DataFrame | None) -> dict[str, int]:
    """Count the rows that a preset ignores by reason, the most frequent ones first."""
    if rows is None:
        return {}
    counts = rows.groupBy(IGNORED).count().orderBy(F.desc("count"), IGNORED).limit(MAX_IGNORED).collect()
    return {row[IGNORED]: row["count"] for row in counts}


def _name(number: int) -> str:
    return f"value_{number}"


def limit_groups(request: CountRequest) -> int:
    """How many groups the pass may have; one more means too many systems, or a sample over its limit."""
    return MAX_GROUPS * request.count_splits() + (0 if request.sample is None else request.sample.limit)


def _aggregate(table: ConformedTable, request: CountRequest) -> pa.Table:
    """One row per reason, system and split; each sampled row is a group of its own, so that it comes along."""
    sample = request.sample
    keys = [table.reason.alias("reason")]
    if request.split is not None:
        keys.append(request.split.alias(_SPLIT))
    if "system" in table.table.names:
        keys.append(F.when(table.reason.isNull(), F.col("system")).alias("system"))
    if sample is not None:
        # The inner condition makes each field nullable: Arrow refuses a null struct with fields that are not.
        columns = [F.when(sample.where, value).alias(name) for name, value in sample.columns.items()]
        keys.append(F.when(sample.where, F.struct(*columns)).alias(_SAMPLE))
    max_grade = F.max("grade") if "grade" in table.table.names else F.lit(None).cast("double")
    lengths = [F.octet_length(column.name) for column in table.table.columns if column.type == "string"]
    text_bytes = F.sum(reduce(SparkColumn.__add__, [F.coalesce(length, F.lit(0)) for length in lengths], F.lit(0)))
    values = [
        aggregate.value.alias(_name(n))
        for n, aggregate in enumerate(request.aggregates.values())
        if isinstance(aggregate, RowAggregate)
    ]
    if table.has_files:  # by their hashes: Spark sorts all rows to find the smallest of texts
        file = F.xxhash64(SOURCE_FILE)
        values += [F.min(file).alias("first_file"), F.max(file).alias("last_file")]
    counted = table.marked_rows.groupBy(*keys).agg(
        F.count("*").alias("rows"), max_grade.alias("max_grade"), text_bytes.alias("text_bytes"), *values
    )
    return counted.limit(limit_groups(request) + 1).toArrow()


def _count_by_split(counted: pa.Table) -> dict[str | None, int]:
    if _SPLIT not in counted.column_names:
        return {}
    sums = counted.group_by(_SPLIT).aggregate([("rows", "sum")])
    return dict(zip(sums[_SPLIT].to_pylist(), sums["rows_sum"].to_pylist(), strict=True))


def _merge_groups(name: str, counted: pa.Table, aggregates: Mapping[int, Aggregate]) -> list[Group]:
    """Merge splits and sampled rows into the group of their reason and system."""
    keys = [key for key in ("reason", "system") if key in counted.column_names]
    merges = {"rows": "sum", "max_grade": "max", "text_bytes": "sum", "first_file": "min", "last_file": "max"} | {
        _name(n): aggregate.merge for n, aggregate in aggregates.items()
    }
    merges = {column: how for column, how in merges.items() if column in counted.column_names}
    merged = counted.group_by(keys).aggregate(list(merges.items()))
    if merged.num_rows > MAX_GROUPS:
        raise DataQualityError(
            f"{name} has about {MAX_GROUPS} systems or more",
            hint=f"check which column inputs.{name}.columns gives for system",
        )
    groups: list[Group] = merged.rename_columns({f"{key}_{how}": key for key, how in merges.items()}).to_pylist()
    return groups


def merge_values(aggregate: Aggregate, values: Sequence[Any]) -> Any:
    """The value of an aggregate over all rows, from those over groups of them."""
    parts = [value for value in values if value is not None]
    if aggregate.merge == "sum":
        return sum(parts)
    return max(parts, default=None) if aggregate.merge == "max" else min(parts, default=None)


def _count_by_reason(groups: Sequence[Group]) -> RowCount:
    rejected: dict[str, int] = {}
    for group in groups:
        if group["reason"] is not None:
            rejected[group["reason"]] = rejected.get(group["reason"], 0) + group["rows"]
    read = sum(group["rows"] for group in groups)
    return RowCount(read, read - sum(rejected.values()), dict(sorted(rejected.items())))


def _select_sample(counted: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The sampled rows, with the fields of the struct as columns; equal ones are one row, whatever their split."""
    rows = counted.filter(pc.field(_SAMPLE).is_valid())
    fields = {name: pc.struct_field(rows[_SAMPLE], name) for name in columns}
    sampled = pa.table(fields | {name: rows[name] for name in ("system", "rows") if name in rows.column_names})
    if _SPLIT not in rows.column_names:
        return sampled
    keys = [name for name in sampled.column_names if name != "rows"]
    return sampled.group_by(keys).aggregate([("rows", "sum")]).rename_columns([*keys, "rows"])
