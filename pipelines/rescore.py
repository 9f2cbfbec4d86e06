"""Scoring the lists of a run again: by other labels, other metrics or other conventions than its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from pipelines.score import Evidence, score
from udfs.conventions import Conventions
from udfs.registry import Spec


@dataclass(frozen=True)
class Scorer:
    """The function from labels to query metrics; `dataclasses.replace` makes one with other metrics or conventions."""

    rankings: DataFrame
    evidence: Evidence
    systems: Sequence[str]
    segments: Sequence[str]
    specs: Sequence[Spec]
    conventions: Conventions
    rows: int = 0

    def __call__(self, labels: DataFrame) -> DataFrame:
        return score(
            self.rankings,
            replace(self.evidence, labels=labels),
            systems=self.systems,
            segments=self.segments,
            specs=self.specs,
            conventions=self.conventions,
            rows=self.rows,
        )
