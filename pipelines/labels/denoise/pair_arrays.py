"""The rules on query-document pairs, and the groups that their rows are counted in, as NumPy arrays.

Runs inside Spark workers, on all rows of a set of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pipelines.labels.denoise.apply import combine_arrays
from pipelines.labels.denoise.kinds import DRAWS
from pipelines.labels.denoise.settings import DenoiseSettings
from udfs.ragged import Ints, Ragged

_WIDEST = 1 << 62
_MIXER = np.int64(-7046029254386353131)  # 2^64 over the golden ratio: spreads small numbers over all bits


@dataclass(frozen=True)
class PairOutcomes:
    """Per kept row: the rules on pairs that drop it, and 1 where it is the first of its user on the pair."""

    bits: Ints
    users: Ints


def apply_pair_rules(
    pair: Ints, person: Ints, page: Ints, position: Ints, clicks: Ints, settings: DenoiseSettings
) -> PairOutcomes:
    """Number every user's rows on a pair in the order of a hash, and apply the rules on pairs."""
    user_row, user_rows, user_clicks = np.ones_like(pair), np.ones_like(pair), clicks.copy()
    several = _find_several(pair, person)
    order = several[np.lexsort((position[several], page[several], person[several], pair[several]))]
    users = Ragged.of_sorted(pair[order], person[order])
    user_row[order], user_rows[order] = users.place, users.lengths[users.owner]
    user_clicks[order] = users.reduce(np.add, clicks[order])[users.owner]
    features = {
        "user_row": user_row,
        "user_rows": user_rows,
        "user_clicks": user_clicks,
        "pair_clicks": np.bincount(pair, weights=clicks).astype(np.int64)[pair],
    }
    bits = combine_arrays("pair", settings, features, len(pair))
    return PairOutcomes(bits=bits, users=((bits == 0) & (user_row == 1)).astype(np.int64))


def _find_several(pair: Ints, person: Ints) -> Ints:
    """The rows of users with several rows on a pair, and few others: most users have one, which needs no order."""
    mixed = (pair * _MIXER) ^ person
    order = np.argsort(mixed)
    differs = np.ones(len(order) + 1, dtype=np.bool_)
    differs[1:-1] = np.diff(mixed[order]) != 0
    return order[~(differs[1:] & differs[:-1])]


def group_rows(keys: Sequence[npt.NDArray[Any]]) -> tuple[Ints, Ints]:
    """Per row the number of its group of equal keys, and per group one of its rows."""
    codes, distinct = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        if key.dtype.kind != "i":
            key, _ = _number(key)
        least = int(key.min(initial=0))
        width = int(key.max(initial=0)) - least + 1
        if width >= _WIDEST // max(distinct, 1):
            key, width = _number(key)
            least = 0
        if width >= _WIDEST // max(distinct, 1):
            codes, distinct = _number(codes)
        if width > 1:
            codes, distinct = codes * width + (key - least), distinct * width
    group, seen = pd.factorize(codes)
    example = np.empty(len(seen), dtype=np.int64)
    example[group[::-1]] = np.arange(len(group))[::-1]
    return group.astype(np.int64, copy=False), example


def _number(key: npt.NDArray[Any]) -> tuple[Ints, int]:
    codes, values = pd.factorize(key)
    return codes.astype(np.int64), max(len(values), 1)


def number_densely(groups: Ints) -> tuple[Ints, Ints]:
    """The numbers of groups without gaps, and per group one of its rows."""
    present = np.bincount(groups) > 0
    numbers = (np.cumsum(present) - 1)[groups]
    example = np.empty(int(present.sum()), dtype=np.int64)
    example[numbers[::-1]] = np.arange(len(groups))[::-1]
    return numbers, example


def draw_numbers(pair: Ints, day: Ints) -> Ints:
    """A number for each pair and day, which is below `limit_draws` for a share of them."""
    mixed = (pair ^ (day * _MIXER)) * _MIXER
    return (mixed >> 32) & (DRAWS - 1)
