"""Bring an input to its contract: every row fits, or goes to quarantine with the reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from schemas.errors import InputError, did_you_mean
from schemas.outputs import QUARANTINE
from schemas.table import Column, Table

CORRUPT = "_corrupt_record"  # where a reader puts the text of a line that it could not parse
_REASON = "_reason"
_ROW = "_row"
_NUMBERS = (T.NumericType, T.StringType, T.BooleanType, T.NullType)
_TIMES = (T.NumericType, T.StringType, T.TimestampType, T.TimestampNTZType, T.DateType, T.NullType)
_WAYS = {"int": _NUMBERS, "bigint": _NUMBERS, "double": _NUMBERS, "boolean": _NUMBERS, "timestamp": _TIMES}


@dataclass(frozen=True)
class Conformed:
    """An input after `conform`: with `reason` null where the row fits its contract."""

    table: Table
    marked: DataFrame  # contract columns, then `_reason` and `_row`
    given: frozenset[str] = frozenset()  # those of the contract's columns that the data has

    @property
    def cast(self) -> DataFrame:
        """All rows, as they were cast, with just the columns of the contract."""
        return self.marked.select(*self.table.names)

    @property
    def rows(self) -> DataFrame:
        """The rows that fit, with just the columns of the contract."""
        return self.marked.where(F.col(_REASON).isNull()).select(*self.table.names)

    def rows_where(self, condition: SparkColumn) -> DataFrame:
        """Those of them that meet a condition. It is looked at first: whether a row fits costs more to find out."""
        return Conformed(self.table, self.marked.where(condition)).rows

    @property
    def rejected(self) -> DataFrame:
        """The rows that do not, as quarantine keeps them."""
        return (
            self.marked.where(F.col(_REASON).isNotNull())
            .select(
                F.lit(self.table.name).alias("table"),
                F.col(_REASON).alias("reason"),
                F.col(_ROW).alias("row"),
            )
            .select(*QUARANTINE.names)
        )

    @property
    def reason(self) -> SparkColumn:
        return F.col(_REASON)


def conform(raw: DataFrame, table: Table, *, columns: Mapping[str, str] | None = None) -> Conformed:
    """`raw` as `table` wants it.

    `columns` maps a contract's name to the name in the data. Values are cast with `try_cast`; an array
    of documents is unfolded to one row each; optional columns that are absent are null.
    """
    source = _located(raw, table, columns or {})
    lines = raw.withColumn(_ROW, F.to_json(F.struct(*[_quoted(name) for name in raw.columns])))
    lines, source = _unfolded(lines, table, source)
    _require(raw, table, source)
    corrupt = [F.when(F.col(CORRUPT).isNotNull(), F.lit("line cannot be parsed"))] if CORRUPT in raw.columns else []
    kinds = _typed(lines, source)
    given = [c for c in table.columns if c.name in source]
    castable = {c.name: _castable(source[c.name], kinds[c.name], c) for c in given}
    cast = {c.name: _cast(castable[c.name], c) if c in given else _absent(c) for c in table.columns}
    blank = {c.name: _blank(castable[c.name], kinds[c.name]) for c in given}
    checks = [check for c in given for check in _checks(blank[c.name], cast[c.name], c)]
    reason = F.coalesce(*corrupt, *checks, *_one_of(table, cast), F.lit(None).cast("string"))
    marked = lines.select(*[value.alias(name) for name, value in cast.items()], reason.alias(_REASON), F.col(_ROW))
    return Conformed(table, marked, frozenset(source))


def _located(raw: DataFrame, table: Table, columns: Mapping[str, str]) -> dict[str, SparkColumn]:
    """The columns of the contract that the data has, under whichever name."""
    for name in columns:
        if name not in table.names and name not in table.unfold:
            known = [*table.names, *table.unfold]
            raise InputError(f"{table.name} has no column {name!r} to rename to", hint=did_you_mean(name, known))
    found = {}
    for name in (*table.names, *table.unfold):
        given = columns.get(name, name)
        if given in raw.columns:
            found[name] = _quoted(given)
        elif name in columns:
            raise InputError(
                f"{table.name} has no column {given!r}, which the configuration names for {name!r}",
                where=f"inputs.{table.name}.columns.{name}",
                hint=did_you_mean(given, raw.columns),
            )
    return found


def _unfolded(
    lines: DataFrame, table: Table, source: dict[str, SparkColumn]
) -> tuple[DataFrame, dict[str, SparkColumn]]:
    """One row per document where the data has an array of them; the place in the array is the rank."""
    array = next((name for name in table.unfold if name in source and "doc_id" not in source), None)
    if array is None:
        return lines, source
    kind = lines.select(source[array].alias("items")).schema["items"].dataType
    items = source[array]
    if isinstance(kind, T.StringType):  # CSV has no arrays: they come as JSON text
        items = F.from_json(items, T.ArrayType(T.StringType()))
        kind = T.ArrayType(T.StringType())
    if not isinstance(kind, T.ArrayType):
        raise InputError(
            f"{table.name}.{array} is {kind.simpleString()}, not an array", hint="give an array of doc_ids"
        )
    # A null array keeps its row, so that it is counted in quarantine; an empty one has nothing to keep.
    placed = F.posexplode(F.coalesce(items, F.array(F.lit(None).cast(kind.elementType))))
    lines = lines.select("*", placed.alias("_place", "_item"))
    source = {name: value for name, value in source.items() if name not in table.unfold}
    source[table.unfold[array]] = F.col("_place") + 1
    if isinstance(kind.elementType, T.StructType):
        for part in kind.elementType.names:
            source[{"id": "doc_id", "key": "doc_id"}.get(part, part)] = F.col("_item").getField(part)
        source[table.unfold[array]] = F.col("_place") + 1
    else:
        source["doc_id"] = F.col("_item")
    return lines, source


def _require(raw: DataFrame, table: Table, source: Iterable[str]) -> None:
    have = set(source)
    missing = [c.name for c in table.columns if not c.optional and c.name not in have]
    if table.one_of and not have.intersection(table.one_of):
        missing.append(" or ".join(table.one_of))
    if missing:
        found = ", ".join(name for name in raw.columns if name != CORRUPT)
        raise InputError(
            f"{table.name} lacks {', '.join(missing)}",
            hint=f"found {found or 'no columns'}. "
            f"Rename with inputs.{table.name}.columns (contract name: name in the data)",
        )


def _typed(lines: DataFrame, source: dict[str, SparkColumn]) -> dict[str, T.DataType]:
    fields = lines.select(*[value.alias(name) for name, value in source.items()]).schema
    return {field.name: field.dataType for field in fields}


def _castable(value: SparkColumn, kind: T.DataType, column: Column) -> SparkColumn:
    """The value, as text where Spark knows no way from its type to the contract's, so that it is refused row by row."""
    ways = _WAYS.get(column.type, (T.DataType,))
    return value if isinstance(kind, ways) else value.try_cast("string")


def _absent(column: Column) -> SparkColumn:
    return F.lit(None).cast(column.type)


def _cast(value: SparkColumn, column: Column) -> SparkColumn:
    if column.type == "int":  # "3.0" is what pandas writes for an integer in a column with gaps
        number = value.try_cast("double")
        return F.coalesce(value.try_cast("int"), F.when(number == F.floor(number), number.try_cast("int")))
    if column.type == "string":
        return value.try_cast("string")
    return value.try_cast(column.type)


def _blank(value: SparkColumn, kind: T.DataType) -> SparkColumn:
    """Whether there is nothing in it. Only text can be empty, and writing numbers as text takes as long as all else."""
    empty = value.isNull()
    return empty | (F.trim(value) == "") if isinstance(kind, T.StringType) else empty


def _checks(blank: SparkColumn, cast: SparkColumn, column: Column) -> Iterable[SparkColumn]:
    """What can be wrong with a value of this column, each null where it is not."""

    def wrong(condition: SparkColumn, what: str) -> SparkColumn:
        return F.when(condition, F.lit(f"{column.name}: {what}"))

    if not column.may_be_null:
        yield wrong(blank, "empty")
    if column.type != "string":
        yield wrong(~blank & cast.isNull(), f"not {'an' if column.type == 'int' else 'a'} {column.type}")
    if column.type == "double":
        yield wrong(F.isnan(cast) | (F.abs(cast) == float("inf")), "not a finite number")
    if column.minimum is not None:
        yield wrong(cast < column.minimum, f"below {column.minimum:g}")
    if column.maximum is not None:
        yield wrong(cast > column.maximum, f"above {column.maximum:g}")
    if column.choices:
        yield wrong(~cast.isin(*column.choices), f"not one of {', '.join(column.choices)}")
    if column.pattern:
        yield wrong(~cast.rlike(f"^(?:{column.pattern})$"), f"does not match {column.pattern}")


def _one_of(table: Table, cast: Mapping[str, SparkColumn]) -> Iterable[SparkColumn]:
    if table.one_of:
        nothing = F.coalesce(*[cast[name].try_cast("string") for name in table.one_of]).isNull()
        yield F.when(nothing, F.lit(f"{' and '.join(table.one_of)}: empty"))


def _quoted(name: str) -> SparkColumn:
    return F.col("`" + name.replace("`", "``") + "`")
