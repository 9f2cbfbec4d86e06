"""An estimator is one function from evidence to a curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipelines.propensity.evidence import Evidence, Floats

ESTIMATORS: dict[str, Estimator] = {}


@dataclass(frozen=True)
class Curve:
    """The chance of being looked at, relative to position 1, and the clicks that come without relevance."""

    propensity: Floats  # [position, last click]; one column where history does not matter
    offset: Floats  # [position]: P(click) at zero relevance, 0 for all but trust bias

    def by_position(self, evidence: Evidence) -> Floats:
        """The curve over positions alone, averaged over histories, relative to position 1."""
        weights = evidence.shown.sum(axis=0)[:, : self.propensity.shape[1]]
        total = weights.sum(axis=1)
        mean = np.divide(
            (weights * self.propensity).sum(axis=1), total, out=self.propensity[:, 0].copy(), where=total > 0
        )
        return np.asarray(mean / mean[0])


@dataclass(frozen=True)
class Estimator:
    """Its name, what evidence it needs beyond the sums, and how it finds the curve."""

    name: str
    fit: Callable[[Evidence, Floats], Curve]
    history: bool = False  # needs the clicks above each result
    cells: bool = False  # needs the counts of single pairs
    graph: bool = False  # needs documents that moved between positions

    @property
    def source(self) -> str:
        return (self.fit.__doc__ or "").strip()


def estimator(
    name: str, *, history: bool = False, cells: bool = False, graph: bool = False
) -> Callable[[Callable[[Evidence, Floats], Curve]], Callable[[Evidence, Floats], Curve]]:
    """Register an estimator: a function of the evidence and of the curve to assume where the log cannot say."""

    def register(fit: Callable[[Evidence, Floats], Curve]) -> Callable[[Evidence, Floats], Curve]:
        ESTIMATORS[name] = Estimator(name, fit, history=history, cells=cells, graph=graph)
        return fit

    return register


def flat(positions: Floats, offset: Floats | None = None) -> Curve:
    """A curve over positions, without history."""
    return Curve(positions[:, None], np.zeros(positions.size) if offset is None else offset)
