"""An estimator is one function from evidence to a curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipelines.labels.history import History, Outcome
from pipelines.labels.propensity.evidence import Cells, Floats, Ints, PositionEvidence
from pipelines.labels.propensity.information import Measurement
from schemas.registry import Registry


@dataclass(frozen=True)
class Curve:
    """P(examined) relative to position 1, and the clicks that come without relevance."""

    propensity: Floats  # [position, history]; one column where history does not matter
    offset: Floats  # [position]: P(click) at zero relevance, 0 for all but trust bias

    def by_position(self, evidence: PositionEvidence) -> Floats:
        """The curve over positions alone, averaged over histories, relative to position 1."""
        weights = evidence.shown.sum(axis=0)[:, : self.propensity.shape[1]]
        total = weights.sum(axis=1)
        mean = np.divide(
            (weights * self.propensity).sum(axis=1), total, out=self.propensity[:, 0].copy(), where=total > 0
        )
        return np.asarray(mean / (mean[0] or 1.0))

    def index_states(self, cells: Cells) -> Ints:
        """The flat index of each cell into `propensity`."""
        width = self.propensity.shape[1]
        return np.asarray(cells.position * width + (cells.history if width > 1 else 0))


FitFunction = Callable[[PositionEvidence, Floats], Curve]
MeasureFunction = Callable[[PositionEvidence, Curve], Measurement]


@dataclass(frozen=True)
class Estimator:
    """Its name, the function that fits the curve, and the evidence it needs beyond the sums.

    `measure` gives the information of the fitted curve; without it, a jackknife over buckets of queries does. A curve
    that is `fixed` follows from the clicks of each page or from an assumption, so no prior moves it.
    """

    name: str
    fit: FitFunction
    measure: MeasureFunction | None = None
    history: History | None = None  # what it needs of the clicks on the page of a result
    outcome: Outcome = "click"  # which clicks labels count
    cells: bool = False  # needs the counts of single pairs
    graph: bool = False  # needs documents that moved between positions
    fixed: bool = False

    def __post_init__(self) -> None:
        if self.outcome == "last_click" and self.history != "read":
            raise ValueError(f"estimator {self.name}: only the history `read` marks the last click of a page")


ESTIMATORS: Registry[Estimator] = Registry("estimator", "pipelines.labels.propensity.estimators")


def estimator(
    name: str,
    *,
    measure: MeasureFunction | None = None,
    history: History | None = None,
    outcome: Outcome = "click",
    cells: bool = False,
    graph: bool = False,
    fixed: bool = False,
) -> Callable[[FitFunction], FitFunction]:
    """Register an estimator: a function of the evidence and of the curve to assume where the log has no evidence."""

    def register(fit: FitFunction) -> FitFunction:
        entry = Estimator(
            name=name, fit=fit, measure=measure, history=history, outcome=outcome, cells=cells, graph=graph, fixed=fixed
        )
        ESTIMATORS.register(name, entry)
        return fit

    return register


def build_flat_curve(positions: Floats, offset: Floats | None = None) -> Curve:
    """A curve over positions, without history."""
    return Curve(positions[:, None], np.zeros(positions.size) if offset is None else offset)
