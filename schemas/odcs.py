"""Contracts as documents of the Open Data Contract Standard, version 3.1.

Reference: Bitol, Open Data Contract Standard v3.1.0, Linux Foundation AI & Data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas.table import Column, Table

API_VERSION = "v3.1.0"
# The types of the standard, with their size where it has one.
_LOGICAL_TYPES: dict[str, tuple[str, str]] = {
    "string": ("string", ""),
    "int": ("integer", "i32"),
    "bigint": ("integer", "i64"),
    "double": ("number", "f64"),
    "boolean": ("boolean", ""),
    "timestamp": ("timestamp", ""),
    "array<string>": ("array", ""),
}
# Every published table has these, from the names of its folders.
PARTITIONS = (
    Column("dt", "string", "the date of the run", pattern=r"\d{4}-\d{2}-\d{2}"),
    Column("run", "string", "the run"),
)


def build_odcs_contract(name: str, tables: Iterable[Table], *, version: str, published: bool) -> dict[str, Any]:
    """A contract of tables as a document of the standard; `published` ones have partition columns."""
    purpose = "The tables that Assay publishes." if published else "The tables that Assay reads."
    usage = (
        "A run exists when its manifest does: read the paths of its tables from there, or through `assay tables`."
        if published
        else "Rows that break a rule are rejected, counted and published in quarantine; too many refuse the run."
    )
    return {
        "version": version,
        "kind": "DataContract",
        "apiVersion": API_VERSION,
        "id": f"assay-{name}",
        "name": f"Assay: {name}",
        "status": "active",
        "domain": "search",
        "description": {"purpose": purpose, "usage": usage},
        "schema": [_build_object(table, PARTITIONS if published else ()) for table in tables],
    }


def _build_object(table: Table, partitions: tuple[Column, ...]) -> dict[str, Any]:
    unique = [*[column.name for column in partitions], *table.key] if table.key else []
    properties = [_build_property(column, table.key) for column in table.columns]
    for place, column in enumerate(partitions, 1):
        properties.append(_build_property(column, ()) | {"partitioned": True, "partitionKeyPosition": place})
    checks = []
    if unique:
        rule = {"metric": "duplicateValues", "arguments": {"properties": unique}, "mustBe": 0}
        checks.append(_describe_check("key", "the key identifies a row", "uniqueness") | rule)
    if table.one_of:
        text = f"a row has at least one of {', '.join(table.one_of)}"
        checks.append({"name": "one_of", "type": "text", "description": text, "dimension": "completeness"})
    return {
        "name": table.name,
        "physicalName": table.name,
        "logicalType": "object",
        "physicalType": "table",
        "description": f"One row is {table.row}.",
        "dataGranularityDescription": table.row,
        "properties": properties,
    } | ({"quality": checks} if checks else {})


def _build_property(column: Column, key: tuple[str, ...]) -> dict[str, Any]:
    logical, size = _LOGICAL_TYPES[column.type]
    limits = {"minimum": column.minimum, "maximum": column.maximum, "format": size or None}
    options = {name: value for name, value in limits.items() if value is not None}
    if column.pattern:
        options["pattern"] = f"^(?:{column.pattern})$"
    fields: dict[str, Any] = {
        "name": column.name,
        "logicalType": logical,
        "physicalType": column.type,
        "description": column.meaning,
        "required": not column.may_be_null,
    }
    if options:
        fields["logicalTypeOptions"] = options
    if logical == "array":
        fields["items"] = {"logicalType": "string"}
    if column.name in key:
        fields |= {"primaryKey": True, "primaryKeyPosition": key.index(column.name) + 1}
    if column.choices:
        rule = {"metric": "invalidValues", "arguments": {"validValues": list(column.choices)}, "mustBe": 0}
        fields["quality"] = [_describe_check("choices", "the value is one of these", "conformity") | rule]
    if column.optional:
        fields["customProperties"] = [{"property": "mayBeAbsent", "value": True}]
    return fields


def _describe_check(name: str, text: str, dimension: str) -> dict[str, Any]:
    return {"name": name, "type": "library", "description": text, "dimension": dimension}
