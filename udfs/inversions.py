"""Count concordant and discordant pairs over many lists at once."""

from __future__ import annotations

import numpy as np

from udfs.ragged import Floats, Ints, Ragged


def count_pair_orders(lists: Ragged, values: Floats | Ints) -> tuple[Ints, Ints]:
    """Per list, the number of pairs of rows with rising values, and with falling values.

    Pairs of equal values are neither. The time is O(n log d) for n rows with at most d different values in
    a list: each value becomes its place among the list's own, and one pass for each bit of those places,
    highest first, counts the pairs that first differ in that bit. All sums are of integers, hence exact.
    """
    place = _places(lists, values)
    rising = np.zeros(lists.size, dtype=np.int64)
    falling = np.zeros(lists.size, dtype=np.int64)
    owner, groups = lists.owner, lists  # groups: rows of one list whose higher bits are equal
    for bit in reversed(range(int(place.max(initial=0)).bit_length())):
        one = (place >> bit) & 1 == 1
        ones = groups.running_counts(one)
        zeros = groups.place - ones
        rising += _whole_sums(owner[one], zeros[one], lists.size)
        falling += _whole_sums(owner[~one], ones[~one], lists.size)
        # Split each group in two, its zeros before its ones, both in their old order.
        zeros_in = groups.lengths - groups.counts(one)
        start = groups.offsets[groups.owner]
        target = start + np.where(one, zeros_in[groups.owner] + ones, zeros) - 1
        moved, moved_owner = np.empty_like(place), np.empty_like(owner)
        moved[target], moved_owner[target] = place, owner
        place, owner = moved, moved_owner
        halves = np.column_stack((zeros_in, groups.lengths - zeros_in)).ravel()
        groups = Ragged.of_lengths(halves[halves > 0])
    return rising, falling


def _places(lists: Ragged, values: Floats | Ints) -> Ints:
    """Per row, how many different smaller values its list has."""
    order = np.lexsort((values, lists.owner))
    step = np.zeros(lists.rows, dtype=np.bool_)
    step[1:] = values[order][1:] != values[order][:-1]
    step[lists.offsets[:-1][lists.lengths > 0]] = False
    place = np.empty(lists.rows, dtype=np.int64)
    place[order] = lists.running_counts(step)
    return place


def _whole_sums(owner: Ints, counts: Ints, size: int) -> Ints:
    # As floats these sums are exact up to 2^53 pairs: lists of 130 million rows.
    return np.bincount(owner, weights=counts, minlength=size).astype(np.int64)
