"""Conform an input to its contract: a row that does not fit goes to quarantine with the reason."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from schemas.compute_once import add_once
from schemas.errors import InputError, did_you_mean
from schemas.outputs import QUARANTINE
from schemas.table import MAX_TEXT, Column, Table
from schemas.usual_names import USUAL_NAMES, split_words

CORRUPT = "_corrupt_record"  # where a reader puts the text of a line that it could not parse
IGNORED = "_ignored"  # where a preset puts the reason why a row is not for this table
SOURCE_FILE = "_file"  # where a reader puts the file of a row, if a system may be in one file only
READER_COLUMNS = (CORRUPT, SOURCE_FILE)  # what readers add to the data
_REASON = "_reason"
_ROW = "_row"
_CAST = "_cast_"  # begins the name of a column with a value that is parsed from text
_NUMBERS = (T.NumericType, T.StringType, T.BooleanType, T.NullType)
_TIMES = (T.NumericType, T.StringType, T.TimestampType, T.TimestampNTZType, T.DateType, T.NullType)
_LONGEST_NAME, _MOST_NAMES = 60, 40  # of columns in a message
_SEPARATORS = (";", "\t", "|")  # of text files whose header was read as one column
# The types that Spark can cast to a type of the contract.
_CASTABLE = {"int": _NUMBERS, "bigint": _NUMBERS, "double": _NUMBERS, "boolean": _NUMBERS, "timestamp": _TIMES}


@dataclass(frozen=True)
class ConformedTable:
    """An input after `conform`; `reason` is null where the row fits its contract."""

    table: Table
    marked_rows: DataFrame  # contract columns, then `_reason`, `_row`, and `_file` where the reader gives it
    source_columns: frozenset[str] = frozenset()  # the contract's columns that the data has
    known_rows: int | None = None  # how many rows are read, where its files say so

    @property
    def cast_rows(self) -> DataFrame:
        """All rows after the cast, with the columns of the contract."""
        return self.marked_rows.select(*self.table.names)

    @property
    def rows(self) -> DataFrame:
        """The rows that fit, with the columns of the contract."""
        return self.marked_rows.where(F.col(_REASON).isNull()).select(*self.table.names)

    def rows_where(self, condition: SparkColumn) -> DataFrame:
        """The rows that fit and meet a condition, which is evaluated first because it is cheaper."""
        return ConformedTable(self.table, self.marked_rows.where(condition)).rows

    @property
    def rejected_rows(self) -> DataFrame:
        """The rows that do not fit, in the columns of `quarantine`."""
        return (
            self.marked_rows.where(F.col(_REASON).isNotNull())
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

    @property
    def has_files(self) -> bool:
        """Whether rows know their file, and each system may be in one file only."""
        return SOURCE_FILE in self.marked_rows.columns


def conform(raw: DataFrame, table: Table, *, columns: Mapping[str, str] | None = None) -> ConformedTable:
    """Cast `raw` to the contract of `table`.

    `columns` maps a contract's name to the name in the data. Values are cast with `try_cast`; an array
    of documents is exploded to one row each; absent optional columns are null.
    """
    source = {name: _quote(there) for name, there in map_names(raw.columns, table, columns or {}).items()}
    lines = raw.withColumn(_ROW, F.to_json(F.struct(*[_quote(name) for name in raw.columns])))
    lines, source = _unfold_array(lines, table, source)
    require_columns(_list_unused(raw.columns, columns or {}), table, source)
    corrupt = [F.when(F.col(CORRUPT).isNotNull(), F.lit("line cannot be parsed"))] if CORRUPT in raw.columns else []
    types = _read_types(lines, source)
    present = [c for c in table.columns if c.name in source]
    castable = {c.name: _make_castable(source[c.name], types[c.name], c) for c in present}
    cast = {
        c.name: _cast_value(castable[c.name], types[c.name], c) if c in present else _null_value(c)
        for c in table.columns
    }
    parsed = [c.name for c in present if c.type != "string" and isinstance(types[c.name], T.StringType)]
    if parsed:
        lines = add_once(lines, {_CAST + name: cast[name] for name in parsed})
        cast |= {name: F.col(_CAST + name) for name in parsed}
    blank = {c.name: _is_blank(castable[c.name], types[c.name]) for c in present}
    checks = [check for c in present for check in _build_checks(blank[c.name], cast[c.name], c)]
    reason = F.coalesce(*corrupt, *checks, *_check_one_of(table, cast), F.lit(None).cast("string"))
    origin = [_ROW, SOURCE_FILE] if SOURCE_FILE in raw.columns else [_ROW]
    values = [value.alias(name) for name, value in cast.items()]
    marked = lines.select(*values, reason.alias(_REASON), *origin)
    return ConformedTable(table, marked, frozenset(source))


def map_names(present: Sequence[str], table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of the contract that the data has and that are read, with their names there."""
    names = [*table.names, *table.unfold]
    for name in columns:
        if name not in names:
            raise InputError(
                f"{table.name} has no column {name!r} to rename to",
                where=f"inputs.{table.name}.columns.{name}",
                hint=did_you_mean(name, names),
            )
    source = {}
    for name in names:
        if name in table.unread:
            continue
        source_name = columns.get(name, name)
        if source_name in present:
            source[name] = source_name
        elif name in columns:
            other = f"a constant is written {name}: \"'{source_name}'\""
            if not source_name.isidentifier():  # on Spark, an expression is a column by now
                other = "an expression needs Spark: give spark=, or add the column to the table"
            raise InputError(
                f"{table.name} has no column {source_name!r}, which the configuration names for {name!r}",
                where=f"inputs.{table.name}.columns.{name}",
                hint=f"{did_you_mean(source_name, _list_unused(present, columns))}; {other}",
            )
    return source


def _list_unused(present: Iterable[str], columns: Mapping[str, str]) -> list[str]:
    """The columns of the data, without expressions, which are columns by now whose names are their text."""
    expressions = {text for text in columns.values() if not text.isidentifier()}
    return [name for name in present if name not in expressions and name not in READER_COLUMNS]


def _unfold_array(
    lines: DataFrame, table: Table, source: dict[str, SparkColumn]
) -> tuple[DataFrame, dict[str, SparkColumn]]:
    """Explode an array of documents to one row each; the index in the array gives the rank."""
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
    # A null array keeps its row, so that it is counted in quarantine; an empty array has no row to keep.
    exploded = F.posexplode(F.coalesce(items, F.array(F.lit(None).cast(kind.elementType))))
    lines = lines.select("*", exploded.alias("_index", "_item"))
    source = {name: value for name, value in source.items() if name not in table.unfold}
    if isinstance(kind.elementType, T.StructType):
        for part in kind.elementType.names:
            source[{"id": "doc_id", "key": "doc_id"}.get(part, part)] = F.col("_item").getField(part)
    else:
        source["doc_id"] = F.col("_item")
    source[table.unfold[array]] = F.col("_index") + 1
    return lines, source


def require_columns(names: Sequence[str], table: Table, source: Iterable[str]) -> None:
    """Refuse data with these columns where `source`, those of the contract among them, are too few."""
    present = set(source)
    missing = [c.name for c in table.columns if not c.optional and c.name not in present]
    if table.one_of and not set(table.one_of) & {*present, *missing}:
        missing.append(" or ".join(table.one_of))
    if missing:
        columns = [name for name in names if name not in READER_COLUMNS]
        raise InputError(
            f"{table.name} lacks {', '.join(missing)}",
            where=f"inputs.{table.name}",
            hint=f"found {_list_columns(columns)}. {_suggest_fix(columns, missing, present)}",
        )


def _list_columns(columns: Sequence[str]) -> str:
    """The names of columns, bounded: in a binary file anything may be a header."""
    short = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…" for name in columns[:_MOST_NAMES]]
    more = [f"{len(columns) - len(short)} more"] if len(columns) > len(short) else []
    return ", ".join([*short, *more]) or "no columns"


def _suggest_fix(columns: Sequence[str], missing: Sequence[str], present: Collection[str]) -> str:
    """What to do about missing columns, by the names of those that are there and are not others of the contract."""
    odd = explain_odd_columns(columns, missing[:1])
    if odd is not None:
        return odd
    wanted = missing[0].partition(" ")[0]
    usual = USUAL_NAMES.get(wanted, ())
    like = _find_like([name for name in columns if name not in present or name in usual], wanted) or "NAME"
    name = json.dumps(like) if like != like.strip() else like
    return f"Say which it is with columns: {{{wanted}: {name}}}"


def explain_odd_columns(columns: Sequence[str], wanted: Collection[str]) -> str | None:
    """What to do where the columns are those of a file that was read in the wrong way; None where they are not."""
    if not columns:
        return "Nothing in it could be parsed; a JSON file has one object per line"
    if any("\0" in name for name in columns):
        return "The file seems to be UTF-16: convert it to UTF-8"
    fields = {separator: columns[0].split(separator) for separator in _SEPARATORS if len(columns) == 1}
    separator = next((separator for separator, names in fields.items() if {*names} & {*wanted}), None)
    if separator is not None:
        return f"Say what separates the fields with options: {{sep: {json.dumps(separator)}}}"
    return None


def _find_like(columns: Sequence[str], wanted: str) -> str | None:
    """The column that is written nearly like the wanted one, or has a usual name of it."""
    by_letters = {name.strip().lower(): name for name in columns}
    close = difflib.get_close_matches(wanted, by_letters, n=1, cutoff=0.7)
    if close:
        return by_letters[close[0]]
    by_words = {split_words(name.strip()): name for name in columns}
    return next((by_words[usual] for usual in USUAL_NAMES.get(wanted, ()) if usual in by_words), None)


def _read_types(lines: DataFrame, source: dict[str, SparkColumn]) -> dict[str, T.DataType]:
    fields = lines.select(*[value.alias(name) for name, value in source.items()]).schema
    return {field.name: field.dataType for field in fields}


def _make_castable(value: SparkColumn, kind: T.DataType, column: Column) -> SparkColumn:
    """The value as text where Spark has no cast from its type to the contract's, so that each row is rejected."""
    return value if isinstance(kind, _CASTABLE.get(column.type, (T.DataType,))) else value.try_cast("string")


def _null_value(column: Column) -> SparkColumn:
    return F.lit(None).cast(column.type)


def _cast_value(value: SparkColumn, kind: T.DataType, column: Column) -> SparkColumn:
    if column.type == "int":  # "3.0" is what pandas writes for an integer in a column with gaps
        number = value.try_cast("double")
        return F.coalesce(value.try_cast("int"), F.when(number == F.floor(number), number.try_cast("int")))
    if column.type == "timestamp" and isinstance(kind, T.StringType):  # text of a number is seconds, as a number is
        number = F.when(value.rlike(r"^\s*\d+(\.\d+)?\s*$"), value.try_cast("double").try_cast("timestamp"))
        return F.coalesce(value.try_cast("timestamp"), number)
    if column.type == "array<string>":
        texts = value if isinstance(kind, T.ArrayType) else F.when(value.isNotNull(), F.array(value.try_cast("string")))
        return F.filter(texts.try_cast(column.type), lambda text: F.trim(text) != "")
    return value.try_cast(column.type)


def _is_blank(value: SparkColumn, kind: T.DataType) -> SparkColumn:
    """Whether the value is null or empty text. Only text is trimmed: converting numbers to text is slow."""
    empty = value.isNull()
    return empty | (F.trim(value) == "") if isinstance(kind, T.StringType) else empty


def _build_checks(blank: SparkColumn, cast: SparkColumn, column: Column) -> Iterable[SparkColumn]:
    """The reasons to reject a value of this column, each null where it does not apply."""

    def reject(condition: SparkColumn, rule: str) -> SparkColumn:
        return F.when(condition, F.lit(column.reject_reason(rule)))

    if not column.may_be_null:
        yield reject(blank, "empty")
    if column.type == "array<string>":
        yield reject(F.exists(cast, lambda text: F.octet_length(text) > MAX_TEXT), "length")
    elif column.type != "string":
        yield reject(~blank & cast.isNull(), "type")
    else:
        yield reject(F.octet_length(cast) > MAX_TEXT, "length")
    if column.type == "double":
        yield reject(F.isnan(cast) | (F.abs(cast) == float("inf")), "finite")
    if column.minimum is not None:
        yield reject(cast < column.minimum, "minimum")
    if column.maximum is not None:
        yield reject(cast > column.maximum, "maximum")
    if column.choices:
        yield reject(~cast.isin(*column.choices), "choices")
    if column.pattern:
        yield reject(~cast.rlike(f"^(?:{column.pattern})$"), "pattern")


def _check_one_of(table: Table, cast: Mapping[str, SparkColumn]) -> Iterable[SparkColumn]:
    if table.one_of:
        missing = reduce(SparkColumn.__and__, [cast[name].isNull() for name in table.one_of])
        yield F.when(missing, F.lit(table.one_of_reason))


def _quote(name: str) -> SparkColumn:
    return F.col("`" + name.replace("`", "``") + "`")
