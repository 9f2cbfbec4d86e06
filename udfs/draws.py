"""Labels drawn several times from what is known of them: clicks and a prior, or a grade with a standard deviation.

A label carries its evidence as bytes, or as one number. Draws depend on the hashes of query and document, the number of
the draw and the seed, and on nothing else, so that neither the order of rows nor partitions matter.
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
Evidence = npt.NDArray[np.void]  # one record per label

POSTERIOR = "posterior"  # the set of draws that metrics are the mean of
EVIDENCE = ("clicks", "examinations", "depth", "rate", "floor", "fixed")  # the numbers of a posterior


def lay_out_evidence(factors: int) -> np.dtype[np.void]:
    """The record of a label's evidence: whether the document was shown or judged, codes of the factors, and numbers.

    `shown` is the first byte, 0 or 1, so that it can be read in SQL.
    """
    return np.dtype([("shown", "u1"), ("codes", "i1", (factors,)), *((name, "<f8") for name in EVIDENCE)])


@dataclass(frozen=True)
class PosteriorDraws:
    """Grades drawn from the posterior of every document's relevance (`udfs.posterior`).

    Evidence is a record of `lay_out_evidence`. A metric is its mean over the draws.
    """

    prior: Prior
    cuts: tuple[float, float, float]

    column = "evidence"
    tie = "clicks"  # of two labels with the same grade, the one with fewer counts
    replace_values = True

    @property
    def layout(self) -> np.dtype[np.void]:
        """The record of a label's evidence."""
        return lay_out_evidence(len(self.prior.plan.factors))

    @property
    def sets(self) -> tuple[tuple[str, int], ...]:
        """The sets of draws and the size of each, in order."""
        return self.prior.draw_sets

    def find_shown(self, evidence: Evidence) -> Bools:
        """Per label, whether the document was shown, or judged by a person."""
        return np.asarray(evidence["shown"] > 0)

    def draw(self, queries: Ragged, query_hash: Hashes, doc: Ints, grade: Floats, evidence: Evidence) -> Grades:
        """Grades, one row per draw of all sets and one column per label; `grade` plays no part."""
        from udfs.posterior.draw import PoolEvidence, draw_grades  # needs SciPy, which other scoring does not load

        pool = PoolEvidence(
            queries=queries,
            query_hash=query_hash,
            doc_hash=doc.view(np.uint64),
            codes=np.ascontiguousarray(evidence["codes"]),
            **{name: np.array(evidence[name]) for name in EVIDENCE},
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
    tie = "deviation"
    replace_values = False
    layout = np.dtype([("deviation", "<f8")])

    @property
    def sets(self) -> tuple[tuple[str, int], ...]:
        return ((POSTERIOR, self.draws),)

    def find_shown(self, evidence: Evidence) -> Bools:
        return np.ones(len(evidence), dtype=np.bool_)

    def draw(self, queries: Ragged, query_hash: Hashes, doc: Ints, grade: Floats, evidence: Evidence) -> Grades:
        """Grades, one row per draw and one column per label; those without a standard deviation stay."""
        from udfs.posterior.gamma import draw_normal_steps

        spread = np.nan_to_num(evidence["deviation"])
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
