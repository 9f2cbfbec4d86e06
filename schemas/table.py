"""`Column` and `Table`: a data contract, declared once and rendered as a schema, a suite or documentation.

This module imports nothing heavy, so that the contracts can be read without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import types as T

MAX_TEXT = 10_000  # bytes of a text; batches of rows are limited by their number alone
NOT_ONE_OF = "not one of"  # begins the reason to reject a value that is none of the choices

# The types by their names in Great Expectations.
_SPARK_NAMES = {
    "string": "StringType",
    "int": "IntegerType",
    "bigint": "LongType",
    "double": "DoubleType",
    "boolean": "BooleanType",
    "timestamp": "TimestampType",
    "array<string>": "ArrayType",
}


@dataclass(frozen=True)
class Column:
    """One column: its Spark type, its meaning, and the values it may hold."""

    name: str
    type: str
    meaning: str
    optional: bool = False  # may be absent from an input, and null in a row
    nullable: bool = False  # must be present, but may be null in a row
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""  # a regular expression for the whole value

    @property
    def may_be_null(self) -> bool:
        return self.optional or self.nullable

    def reject_reason(self, rule: str) -> str:
        """Why a value of this column is rejected by a rule, as quarantine records it."""
        reasons = {
            "empty": "empty",
            "type": f"not {'an' if self.type[0] in 'aeiou' else 'a'} {self.type}",
            "length": f"longer than {MAX_TEXT:,} bytes",
            "finite": "not a finite number",
            "minimum": f"below {self.minimum:g}" if self.minimum is not None else "",
            "maximum": f"above {self.maximum:g}" if self.maximum is not None else "",
            "choices": f"{NOT_ONE_OF} {', '.join(self.choices)}",
            "pattern": f"does not match {self.pattern}",
        }
        return f"{self.name}: {reasons[rule]}"

    def expectations(self) -> list[dict[str, Any]]:
        """The checks of this column as expectations of Great Expectations."""
        column = {"column": self.name}
        typed = column | {"type_": _SPARK_NAMES[self.type]}
        checks: list[dict[str, Any]] = [{"type": "expect_column_values_to_be_of_type", "kwargs": typed}]
        if not self.may_be_null:
            checks.append({"type": "expect_column_values_to_not_be_null", "kwargs": column})
        if self.minimum is not None or self.maximum is not None:
            bounds = {"min_value": self.minimum, "max_value": self.maximum}
            checks.append({"type": "expect_column_values_to_be_between", "kwargs": column | bounds})
        if self.choices:
            allowed = {"value_set": list(self.choices)}
            checks.append({"type": "expect_column_values_to_be_in_set", "kwargs": column | allowed})
        if self.pattern:
            matching = {"regex": f"^(?:{self.pattern})$"}
            checks.append({"type": "expect_column_values_to_match_regex", "kwargs": column | matching})
        return checks

    def describe_values(self) -> str:
        """The values that this column may hold, in words; empty where there is no limit."""
        if self.choices:
            return ", ".join(self.choices)
        if self.pattern:
            return f"`{self.pattern}`"
        low = "" if self.minimum is None else f"≥ {self.minimum:g}"
        high = "" if self.maximum is None else f"≤ {self.maximum:g}"
        return ", ".join(part for part in (low, high) if part)


@dataclass(frozen=True)
class Table:
    """One table: what a row is, its columns, and the columns that identify a row."""

    name: str
    row: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()  # optional columns of which a row must have at least one
    unfold: dict[str, str] = field(default_factory=dict)  # array column -> column that gets its index
    unread: tuple[str, ...] = ()  # optional columns that are null whatever the data has

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def one_of_reason(self) -> str:
        """Why a row with none of `one_of` is rejected."""
        return f"{' and '.join(self.one_of)}: empty"

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def add_columns(self, columns: Iterable[Column]) -> Table:
        """This table with more columns at its end; a column that it already has stays as it is."""
        names = set(self.names)
        return replace(self, columns=self.columns + tuple(c for c in columns if c.name not in names))

    def struct(self) -> T.StructType:
        """This table as a Spark schema."""
        from pyspark.sql import types as T

        atoms: dict[str, T.DataType] = {
            "string": T.StringType(),
            "int": T.IntegerType(),
            "bigint": T.LongType(),
            "double": T.DoubleType(),
            "boolean": T.BooleanType(),
            "timestamp": T.TimestampType(),
            "array<string>": T.ArrayType(T.StringType()),
        }
        return T.StructType([T.StructField(c.name, atoms[c.type], c.may_be_null) for c in self.columns])

    def arrow_schema(self) -> pa.Schema:
        """This table as an Arrow schema."""
        import pyarrow as pa

        atoms = {
            "string": pa.string(),
            "int": pa.int32(),
            "bigint": pa.int64(),
            "double": pa.float64(),
            "boolean": pa.bool_(),
            "timestamp": pa.timestamp("us", tz="UTC"),
            "array<string>": pa.list_(pa.string()),
        }
        return pa.schema([pa.field(c.name, atoms[c.type], c.may_be_null) for c in self.columns])

    def expectations(self) -> list[dict[str, Any]]:
        """This table as a suite of Great Expectations: its columns, then the values of each."""
        exist = [
            {"type": "expect_column_to_exist", "kwargs": {"column": c.name}} for c in self.columns if not c.optional
        ]
        return exist + [check for column in self.columns for check in column.expectations()]

    def markdown(self) -> str:
        """This table as a section of the table reference."""
        lines = [
            f"### `{self.name}`",
            "",
            f"One row is {self.row}." + (f" Key: {', '.join(f'`{k}`' for k in self.key)}." if self.key else ""),
            "",
            "| column | type | required | allowed | meaning |",
            "|---|---|---|---|---|",
        ]
        for c in self.columns:
            required = "one of " + ", ".join(self.one_of) if c.name in self.one_of else "" if c.optional else "yes"
            lines.append(f"| `{c.name}` | {c.type} | {required} | {c.describe_values()} | {c.meaning} |")
        return "\n".join(lines) + "\n"
