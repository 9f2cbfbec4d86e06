"""The stages of a run, told through the log as they begin and end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipelines.runs import TableRecord

logger = logging.getLogger(__name__)


@dataclass
class Stages:
    """The stages that ran, with their seconds; `tables` are those of the run, for the rows that a stage wrote."""

    seconds: dict[str, float] = field(default_factory=dict)
    tables: Mapping[str, TableRecord] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One stage. Whoever shows progress hears of it by the log records' `stage`, `state`, `seconds` and `rows`."""
        start, before = time.monotonic(), set(self.tables)
        logger.info("stage=%s begins", name, extra={"stage": name, "state": "begin"})
        yield
        self.seconds[name] = round(time.monotonic() - start, 3)
        written = {table: record.rows for table, record in self.tables.items() if table not in before}
        logger.debug(
            "stage=%s wrote %s", name, ", ".join(f"{t} ({rows:,})" for t, rows in written.items()) or "nothing"
        )
        told = {"stage": name, "state": "end", "seconds": self.seconds[name], "rows": sum(written.values())}
        logger.info("stage=%s seconds=%.1f rows=%d", name, self.seconds[name], told["rows"], extra=told)
