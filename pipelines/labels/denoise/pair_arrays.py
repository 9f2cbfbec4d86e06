"""The rules on query-document pairs, and the counts of rows by pair and place, as NumPy arrays.

Runs inside Spark workers, on all rows of a set of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from pipelines.labels.denoise.apply import combine_arrays
from pipelines.labels.denoise.settings import DenoiseSettings
from udfs.ragged import Ints, Ragged

_WIDEST = 1 << 62


@dataclass(frozen=True)
class PairOutcomes:
    """Per kept row: the rules on pairs that drop it, and 1 where it is the first of its user on the pair."""

    bits: Ints
    users: Ints


def apply_pair_rules(
    pair: Ints, person: Ints, page: Ints, position: Ints, clicks: Ints, settings: DenoiseSettings
) -> PairOutcomes:
    """Number every user's rows on a pair in the order of a hash, and apply the rules on pairs."""
    order = np.lexsort((position, page, person, pair))
    users, pairs = Ragged.of_sorted(pair[order], person[order]), Ragged.of_sorted(pair[order])
    in_order = clicks[order]
    features = {
        "user_row": users.place,
        "user_rows": users.lengths[users.owner],
        "user_clicks": users.reduce(np.add, in_order)[users.owner],
        "pair_clicks": pairs.reduce(np.add, in_order)[pairs.owner],
    }
    sorted_bits = combine_arrays("pair", settings, features, len(order))
    bits, first = np.empty_like(sorted_bits), np.empty_like(sorted_bits)
    bits[order] = sorted_bits
    first[order] = (sorted_bits == 0) & (users.place == 1)
    return PairOutcomes(bits=bits, users=first)


def group_rows(keys: Sequence[npt.NDArray[np.generic]]) -> tuple[Ints, Ints]:
    """Per row the number of its group of equal keys, and per group one of its rows."""
    codes, distinct = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        numbers, values = pd.factorize(key, use_na_sentinel=False)
        if distinct * max(len(values), 1) >= _WIDEST:
            codes, seen = pd.factorize(codes)
            distinct = len(seen)
        codes, distinct = codes * len(values) + numbers, distinct * max(len(values), 1)
    groups, seen = pd.factorize(codes)
    example = np.empty(len(seen), dtype=np.int64)
    example[groups[::-1]] = np.arange(len(groups))[::-1]
    return groups, example
