"""A sheet on which a suite notes what it wants to have counted, and finds the counts later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

Key = tuple[str, str, str]  # a metric of Great Expectations, its column, and what else it depends on


@dataclass
class Sheet:
    """What is to be counted over all rows of a table, and, once that is done, how many there were."""

    asked: dict[Key, Column] = field(default_factory=dict)
    counted: dict[Key, int] = field(default_factory=dict)

    def count(self, key: Key, column: Column) -> int:
        """The count where it is known; until then it is noted, and 0 lets the asking go on."""
        self.asked.setdefault(key, column)
        return self.counted.get(key, 0)
