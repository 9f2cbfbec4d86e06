"""Counts sampled from a click model with known parameters, without Spark."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipelines.labels.propensity.evidence import Cells, Floats, PositionEvidence, gather_evidence

GRADES, SHARES, ATTRACTION = 4, (0.55, 0.22, 0.14, 0.09), np.array([0.04, 0.12, 0.30, 0.55])
ONE_IN_K = 1 / np.arange(1.0, 11.0)
BUCKETS = 50


@dataclass(frozen=True)
class ClickLog:
    """Impressions and clicks by pair and position, and the queries of the pairs."""

    shown: Floats  # [pair, position]
    clicks: Floats
    query: NDArray[np.int64]

    def cells(self) -> Cells:
        return self.evidence().cells

    def evidence(self) -> PositionEvidence:
        return gather_evidence(self.statistics(), positions=self.shown.shape[1], buckets=BUCKETS)

    def statistics(self) -> pd.DataFrame:
        """The rows that `gather_statistics` computes of a log in Spark."""
        bucket = self.query % BUCKETS
        pair, place = np.nonzero(self.shown)
        counts = {"shown": self.shown[pair, place], "clicks": self.clicks[pair, place]}
        cells = pd.DataFrame({"bucket": bucket[pair], "pair": pair, "position": place + 1, "other": 0, **counts})
        places = cells.groupby(["bucket", "position", "other"], as_index=False)[["shown", "clicks"]].sum()
        tables = {"cell": cells, "place": places, "shuffled": places, "edge": self._sum_edges(bucket)}
        rows = pd.concat([table.assign(statistic=name) for name, table in tables.items()], ignore_index=True)
        return rows.assign(context="all")

    def _sum_edges(self, bucket: NDArray[np.int64]) -> pd.DataFrame:
        size = self.shown.shape[1]
        sums = np.zeros((3, BUCKETS, size, size))
        for k, j in itertools.permutations(range(size), 2):
            both = (self.shown[:, k] > 0) & (self.shown[:, j] > 0)
            here, there = self.shown[both, k], self.shown[both, j]
            weight = here * there / (here + there)
            for part, values in enumerate((weight, weight * self.clicks[both, k] / here, np.ones(here.size))):
                sums[part, :, k, j] = np.bincount(bucket[both], values, BUCKETS)
        which = np.nonzero(sums[2])
        shown, clicks, documents = (part[which] for part in sums)
        place = {"bucket": which[0], "position": which[1] + 1, "other": which[2] + 1}
        return pd.DataFrame({**place, "shown": shown, "clicks": clicks, "weight": documents})


def draw_log(
    seed: int,
    pages: int,
    traffic: list[float],
    *,
    queries: int = 1000,
    documents: int = 20,
    examination: Floats = ONE_IN_K,
    attraction: Floats = ATTRACTION,
) -> ClickLog:
    """Sample a position-based log: ten results a page, η = 1 by default, Zipf traffic, rankers of several qualities."""
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
            chance = attraction[grade[every, doc]] * examination[k]
            shown[every, doc, k] += pages_of[:, arm]
            clicks[every, doc, k] += random.binomial(pages_of[:, arm], chance)
    return ClickLog(shown.reshape(-1, 10), clicks.reshape(-1, 10), np.repeat(every, documents))
