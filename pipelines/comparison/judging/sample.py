"""Draw the queries to judge: a sample of fixed size with known and unequal chances, by hash."""

from __future__ import annotations

import numpy as np

from udfs.ragged import Floats, Ints
from udfs.statistics.resample import Hashes, draw_words

FLOOR = 0.25  # of the mean spread: a query counts as at least this uncertain, since the model may be wrong about it
_JUDGING = 0x4A554447  # separates these draws from others under one seed


def compute_chances(spread: Floats, queries: int) -> Floats:
    """The chance of every query to be drawn: proportional to its spread with a floor, at most 1, `queries` in sum.

    The variance of the difference estimator is least for chances proportional to the size of the model's errors, which
    the spread of a query's difference over draws predicts. Where the spread is undefined, the chance is 0.
    """
    defined = ~np.isnan(spread)
    if queries >= np.count_nonzero(defined):
        return defined.astype(np.float64)
    size = np.where(defined, np.maximum(spread, FLOOR * spread[defined].mean()), 0.0)
    if not size.any():
        size = defined.astype(np.float64)
    largest = np.sort(size)[::-1]
    rest = np.cumsum(largest[::-1])[::-1]
    certain = int(np.argmax((queries - np.arange(queries)) * largest[:queries] <= rest[:queries]))
    return np.asarray(np.minimum(size * (queries - certain) / rest[certain], 1.0))


def sample_queries(chance: Floats, hashes: Hashes, queries: int, seed: int) -> Ints:
    """The rows of the queries that are drawn, in random order.

    Pareto sampling (Rosén, Journal of Statistical Planning and Inference 1997): the smallest of
    u/(1 − u) · (1 − π)/π, with u from the hash of the query and the seed. Its size is fixed, its chances are π to a
    very good approximation, and neither other queries nor their order move a query's number.
    """
    words = draw_words(hashes, 2, seed ^ _JUDGING)
    u = ((words[:, 0] >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    with np.errstate(divide="ignore"):
        key = np.where(chance > 0, u / (1.0 - u) * (1.0 - chance) / chance, np.inf)
    drawn = np.argsort(key, kind="stable")[: min(queries, np.count_nonzero(chance))]
    return np.asarray(drawn[np.argsort(words[drawn, 1], kind="stable")])
