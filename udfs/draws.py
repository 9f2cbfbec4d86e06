"""Labels drawn several times from what is known of them: clicks and a prior, or a grade with a standard deviation.

A label carries its evidence as a row of numbers. Draws depend on the hashes of query and document, the number of the
draw and the seed, and on nothing else, so that neither the order of rows nor partitions matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from udfs.ragged import Bools, Floats, Ints, Ragged

if TYPE_CHECKING:
    from udfs.posterior.fit import Prior

Grades = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]

POSTERIOR = "posterior"  # the set of draws that metrics are the mean of
EVIDENCE = ("clicks", "examinations", "depth", "rate", "floor", "fixed", "shown")  # and then the codes of the factors


@dataclass(frozen=True)
class PosteriorDraws:
    """Grades drawn from the posterior of every document's relevance (`udfs.posterior`).

    Evidence is `EVIDENCE` and one code per factor of the prior. A metric is its mean over the draws.
    """

    prior: Prior
    cuts: tuple[float, float, float]

    column = "evidence"
    replace_values = True

    @property
    def width(self) -> int:
        """How many numbers the evidence of a label has."""
        return len(EVIDENCE) + len(self.prior.plan.factors)

    @property
    def sets(self) -> tuple[tuple[str, int], ...]:
        """The sets of draws and the size of each, in order."""
        return self.prior.draw_sets

    def find_shown(self, evidence: Floats) -> Bools:
        """Per label, whether the document was shown, or judged by a person."""
        return evidence[:, EVIDENCE.index("shown")] > 0

    def draw(self, queries: Ragged, query_hash: Hashes, doc: Ints, grade: Floats, evidence: Floats) -> Grades:
        """Grades, one row per draw of all sets and one column per label; `grade` plays no part."""
        from udfs.posterior.draw import PoolEvidence, draw_grades  # needs SciPy, which other scoring does not load

        clicks, examinations, depth, rate, floor, fixed = np.ascontiguousarray(evidence.T[: len(EVIDENCE) - 1])
        pool = PoolEvidence(
            queries=queries,
            query_hash=query_hash,
            doc_hash=doc.view(np.uint64),
            clicks=clicks,
            examinations=examinations,
            depth=depth,
            rate=rate,
            codes=evidence[:, len(EVIDENCE) :].astype(np.int8),
            floor=floor,
            fixed=fixed,
        )
        return np.concatenate([draw_grades(self.prior, name, pool, self.cuts) for name, _ in self.sets])


@dataclass(frozen=True)
class NormalDraws:
    """Grades of people, each drawn from a normal around it with its standard deviation, within the scale.

    Evidence is the standard deviation. A metric stays that of the grades as they are: draws say how far to trust it.
    """

    draws: int
    seed: int
    max_grade: float | None = None

    column = "grade_sd"
    replace_values = False
    width = 1

    @property
    def sets(self) -> tuple[tuple[str, int], ...]:
        return ((POSTERIOR, self.draws),)

    def find_shown(self, evidence: Floats) -> Bools:
        return np.ones(len(evidence), dtype=np.bool_)

    def draw(self, queries: Ragged, query_hash: Hashes, doc: Ints, grade: Floats, evidence: Floats) -> Grades:
        """Grades, one row per draw and one column per label; those without a standard deviation stay."""
        from udfs.posterior.gamma import draw_normal_steps

        spread = np.nan_to_num(evidence[:, 0])
        normals = draw_normal_steps(np.repeat(query_hash, queries.lengths), doc.view(np.uint64), self.draws, self.seed)
        drawn = np.clip(grade + spread * normals.T, 0.0, np.inf if self.max_grade is None else self.max_grade)
        return np.where(spread > 0, drawn, grade)


LabelDraws = PosteriorDraws | NormalDraws


def find_posterior(draws: LabelDraws) -> slice:
    """The rows of the posterior set among all draws."""
    start = 0
    for name, size in draws.sets:
        if name == POSTERIOR:
            return slice(start, start + size)
        start += size
    raise ValueError("the draws have no posterior set")
