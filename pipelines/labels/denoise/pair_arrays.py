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
from pipelines.labels.denoise.hashes import MIXER, find_repeated, mix_numbers
from pipelines.labels.denoise.kinds import DRAWS
from pipelines.labels.denoise.settings import DenoiseSettings
from udfs.ragged import Ints, Ragged
from udfs.sorting import sort_in_groups

_WIDEST = 1 << 62


@dataclass(frozen=True)
class PairOutcomes:
    """Per kept row: the rules on pairs that drop it, and 1 where it is the first of its user on the pair."""

    bits: Ints
    users: Ints


@dataclass(frozen=True)
class UserRows:
    """Per row, its number among those of its user on its pair, how many these are, and the sum of their clicks."""

    number: Ints
    rows: Ints
    clicks: Ints


def apply_pair_rules(
    pair: Ints, person: Ints, page: Ints, position: Ints, clicks: Ints, pair_clicks: Ints, settings: DenoiseSettings
) -> PairOutcomes:
    """Apply the rules on pairs to all rows of users; `pair_clicks` are those of all users, per row."""
    users = number_user_rows(pair, person, page, position, clicks)
    bits = combine_pair_rules(users, pair_clicks, settings)
    return PairOutcomes(bits=bits, users=((bits == 0) & (users.number == 1)).astype(np.int64))


def number_user_rows(pair: Ints, person: Ints, page: Ints, position: Ints, clicks: Ints) -> UserRows:
    """Number every user's rows on a pair by page, which is in the order of a hash, and position.

    Most users have one row, which needs no order.
    """
    number, rows, user_clicks = np.ones_like(pair), np.ones_like(pair), clicks.copy()
    several = find_repeated(mix_numbers(person, pair))
    user, _ = group_rows([pair[several], person[several]])
    order = several[sort_in_groups(user, page[several], (position[several],))]
    users = Ragged.of_sorted(pair[order], person[order])
    number[order], rows[order] = users.place, users.lengths[users.owner]
    user_clicks[order] = users.reduce(np.add, clicks[order])[users.owner]
    return UserRows(number, rows, user_clicks)


def combine_pair_rules(users: UserRows, pair_clicks: Ints, settings: DenoiseSettings) -> Ints:
    """The bits of the rules on pairs that drop each row."""
    features = {
        "user_row": users.number,
        "user_rows": users.rows,
        "user_clicks": users.clicks,
        "pair_clicks": pair_clicks,
    }
    return combine_arrays("pair", settings, features, len(pair_clicks))


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


def draw_numbers(pair: Ints, day: Ints) -> Ints:
    """A number for each pair and day, which is below `limit_draws` for a share of them."""
    mixed = (pair ^ (day * MIXER)) * MIXER
    return (mixed >> 32) & (DRAWS - 1)
