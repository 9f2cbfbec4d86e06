"""The stages of a run, logged as they begin and end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipelines.warehouse.runs import TableRecord

logger = logging.getLogger(__name__)


@dataclass
class Stages:
    """The seconds of each stage; `tables` are those of the run, to log the rows that a stage wrote."""

    seconds: dict[str, float] = field(default_factory=dict)
    tables: Mapping[str, TableRecord] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage; its log records have `stage`, `state`, `seconds` and, where it wrote any, `rows`."""
        start, before = time.monotonic(), set(self.tables)
        logger.info("stage=%s begins", name, extra={"stage": name, "state": "begin"})
        yield
        self.seconds[name] = round(time.monotonic() - start, 3)
        written = {table: record.rows for table, record in self.tables.items() if table not in before}
        logger.debug(
            "stage=%s wrote %s", name, ", ".join(f"{t} ({rows:,})" for t, rows in written.items()) or "nothing"
        )
        facts = {"stage": name, "state": "end", "seconds": self.seconds[name]}
        line = f"stage={name} seconds={self.seconds[name]:.1f}"
        if written:
            facts["rows"] = sum(written.values())
            line += f" rows={facts['rows']}"
        logger.info(line, extra=facts)
