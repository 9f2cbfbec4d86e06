"""Records of `label_days`: statistics of single days of a log, shared by the runs of all windows.

A day has a folder `label_days/dt=DAY/key=NAME` with one folder per part (see `schemas.label_days`), and a record
`label_days/dt=DAY/NAME.json`, which is written last: a day exists when its record does. The key says what the day was
computed from, so a day is never changed, only replaced by one with another key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.warehouse.runs import LABEL_DAYS, TableRecord
from pipelines.warehouse.storage import Storage


class DayRecord(BaseModel):
    """The record of one day; writing it commits the day."""

    model_config = ConfigDict(frozen=True)

    dt: str
    key: str
    name: str  # of its folder: the key, and what tells apart two attempts at the same work
    tables: Mapping[str, TableRecord]
    facts: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The record in the warehouse."""
        return f"{LABEL_DAYS}/dt={self.dt}/{self.name}.json"


def day_folder(date: str, name: str) -> str:
    """Return the folder of a day in the warehouse."""
    return f"{LABEL_DAYS}/dt={date}/key={name}"


def find_day(storage: Storage, date: str, key: str) -> DayRecord | None:
    """Find a committed day with this key."""
    return next((record for record in list_days(storage, date) if record.key == key), None)


def list_days(storage: Storage, date: str) -> Iterator[DayRecord]:
    """List the committed records of a day."""
    records = (read_record(storage, name) for name in storage.list(f"{LABEL_DAYS}/dt={date}", suffix=".json"))
    return (record for record in records if record is not None)


def list_day_records(storage: Storage) -> Iterator[DayRecord]:
    """List all committed days."""
    for name in storage.list(LABEL_DAYS, suffix=".json", recursive=True):
        record = read_record(storage, name)
        if record is not None:
            yield record


def read_record(storage: Storage, name: str) -> DayRecord | None:
    """Read the record of a day; None where it is damaged, or not the one of its place: the day is computed again."""
    try:
        record = DayRecord.model_validate_json(storage.get(name))
    except (OSError, ValidationError, UnicodeDecodeError):
        return None
    places = {part: f"{day_folder(record.dt, record.name)}/{part}" for part in record.tables}
    return record if record.path == name and {p: t.path for p, t in record.tables.items()} == places else None
