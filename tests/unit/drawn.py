"""Counts drawn from click models whose parameters are known, without Spark."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.propensity.evidence import Cells, Floats

GRADES, SHARES, ATTRACTION = 4, (0.55, 0.22, 0.14, 0.09), np.array([0.04, 0.12, 0.30, 0.55])
ONE_IN_K = 1 / np.arange(1.0, 11.0)


@dataclass(frozen=True)
class Log:
    """Impressions and clicks by pair and position, and the queries of the pairs."""

    shown: Floats  # [pair, position]
    clicks: Floats
    query: NDArray[np.int64]

    def edges(self, keep: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """c[k, j] and n[k, j] of the all-pairs estimator, for the pairs that are kept."""
        shown = self.shown if keep is None else self.shown[keep]
        clicks = self.clicks if keep is None else self.clicks[keep]
        size = shown.shape[1]
        c, n = np.zeros((size, size)), np.zeros((size, size))
        for k in range(size):
            for j in range(size):
                both = (shown[:, k] > 0) & (shown[:, j] > 0) & (k != j)
                here, there = shown[both, k], shown[both, j]
                weight = here * there / (here + there)
                c[k, j] = np.sum(weight * clicks[both, k] / here)
                n[k, j] = np.sum(weight) - c[k, j]
        return c, n

    def cells(self) -> Cells:
        pair, position = np.nonzero(self.shown)
        none = np.zeros(pair.size, dtype=np.int64)
        _, dense = np.unique(pair, return_inverse=True)
        shown, clicks = self.shown[pair, position], self.clicks[pair, position]
        return Cells(dense.astype(np.int64), position, none, none - 1, shown, clicks, self.query[pair] % 50)


def draw_log(
    seed: int, pages: int, traffic: list[float], *, queries: int = 1000, documents: int = 20, looks: Floats = ONE_IN_K
) -> Log:
    """A position-based log with ten results a page, η = 1 unless told: Zipf traffic, rankers of several qualities."""
    random = np.random.default_rng(seed)
    grade = random.choice(GRADES, size=(queries, documents), p=SHARES)
    weight = 1 / np.arange(1, queries + 1)
    pages_of = random.multinomial(pages, np.outer(weight / weight.sum(), traffic).ravel()).reshape(queries, -1)
    shown, clicks = np.zeros((2, queries, documents, 10))
    every = np.arange(queries)
    for arm, quality in enumerate((0.7, 0.3, 1.1, 0.0)[: len(traffic)]):
        order = np.argsort(-(quality * grade + random.normal(size=grade.shape)), axis=1)
        for k in range(10):
            doc = order[:, k]
            chance = ATTRACTION[grade[every, doc]] * looks[k]
            shown[every, doc, k] += pages_of[:, arm]
            clicks[every, doc, k] += random.binomial(pages_of[:, arm], chance)
    return Log(shown.reshape(-1, 10), clicks.reshape(-1, 10), np.repeat(every, documents))
