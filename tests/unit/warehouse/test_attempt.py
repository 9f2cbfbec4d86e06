"""Rows of the driver become a table of the run, without Spark."""

import datetime as dt
from pathlib import Path

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.storage import Storage
from schemas.table import Column, Table

CHECKED = Table(
    "checked",
    "a check",
    (
        Column("check", "string", "its name"),
        Column("passed", "boolean", "whether it passed"),
        Column("rows", "bigint", "rows", nullable=True),
        Column("share", "double", "share", nullable=True),
        Column("sample", "array<string>", "values"),
    ),
)


def test_rows_of_the_driver_are_written_in_the_order_and_types_of_the_contract(tmp_path: Path) -> None:
    rows = [
        {"sample": ["a", "b"], "check": "one", "passed": True, "rows": 3, "share": 0.5, "more": 1},
        {"sample": (), "check": "two", "passed": False, "rows": None, "share": None},
    ]
    storage = Storage(str(tmp_path))
    with Attempt(storage, dt.date(2026, 11, 1), "key") as attempt:
        attempt.write_rows(CHECKED, rows)
        record, written = attempt.tables["checked"], storage.dataset(f"_attempts/{attempt.run}/tables/checked")
        table = written.to_table()
    assert (record.rows, record.files) == (2, 1) and (record.bytes or 0) > 0
    assert [str(kind) for kind in table.schema.types] == ["string", "bool", "int64", "double", "list<element: string>"]
    assert table.to_pylist() == [
        {"check": "one", "passed": True, "rows": 3, "share": 0.5, "sample": ["a", "b"]},
        {"check": "two", "passed": False, "rows": None, "share": None, "sample": []},
    ]


def test_half_of_a_surrogate_pair_from_a_log_is_replaced(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    with Attempt(storage, dt.date(2026, 11, 1), "key") as attempt:
        row = {"check": "a\ud800b", "passed": True, "rows": 1, "share": None, "sample": ["x\udfff"]}
        attempt.write_rows(CHECKED, [row])
        (read,) = storage.dataset(f"_attempts/{attempt.run}/tables/checked").to_table().to_pylist()
    assert read["check"] == "a?b" and read["sample"] == ["x?"]
