"""The order of ranked lists: by rank or score, ties by doc_id, as the conventions say.

Scoring, the placing of documents on Spark and `Evaluator` all order lists by this module.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schemas.errors import ConfigurationError, InputError
from udfs.conventions import Conventions
from udfs.ragged import Bools, Floats, Ints, Ragged


def build_sort_keys(rank: Floats | None, score: Floats | None, conventions: Conventions) -> list[Floats]:
    """The keys that order a list, most important first, in ascending order; a missing value sorts last."""
    keys = []
    if conventions.order == "rank" and rank is not None:
        keys.append(rank)
    # Where ranks repeat, as in runs whose ranks are all 0, scores decide before doc_ids do.
    if score is not None:
        descending = -score
        if conventions.order == "score_float32":
            with np.errstate(over="ignore"):
                descending = descending.astype(np.float32).astype(np.float64)
        keys.append(descending)
    if not keys:
        column = "score" if conventions.order != "rank" else "rank or a score"
        raise ConfigurationError(f"rankings has no {column}", hint="the order of its rows says nothing")
    gaps = [np.isnan(key) for key in keys]
    missing = np.logical_and.reduce(gaps)
    if missing.any():
        raise InputError(f"rankings has {missing.sum()} rows with neither rank nor score", hint="fill or drop them")
    return [np.where(gap, np.inf, key) for key, gap in zip(keys, gaps, strict=True) if not gap.all()] or keys


def order_rows(
    owner: Ints, lists: Ragged, keys: list[Floats], rank_ids: Callable[[Ints], Ints], conventions: Conventions
) -> tuple[Ints | None, Bools | None]:
    """The rows list by list, best first, or None if they are in order; and which are tied with the row before.

    `rank_ids` returns, for some rows, the position of each row's doc_id in the order of code points.
    """
    if _is_ordered(owner, keys):
        return None, None
    order = _order_by_position(owner, lists, keys[0])
    if order is not None:
        return order, None
    if len(keys) == 1 and (owner[1:] >= owner[:-1]).all():
        order = lists.argsort(keys[0])
    else:
        order = np.lexsort((*reversed(keys), owner))
    tied = np.zeros(len(owner), dtype=np.bool_)
    tied[1:] = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in (owner, *keys)])
    if not tied.any():
        return order, None
    # Only the ids of tied documents are compared: sorting all ids would cost more than everything else.
    involved = np.flatnonzero(tied | np.append(tied[1:], False))
    run = np.cumsum(~tied)[involved]
    by_id = rank_ids(order[involved])
    order[involved] = order[involved][np.lexsort((by_id if conventions.ties == "doc_id_asc" else -by_id, run))]
    return order, tied


def _is_ordered(owner: Ints, keys: list[Floats]) -> bool:
    """Whether the rows are list by list and best first already, without ties."""
    after = owner[1:] > owner[:-1]
    same = owner[1:] == owner[:-1]
    for key in keys:
        after |= same & (key[1:] > key[:-1])
        same &= key[1:] == key[:-1]
    return bool(after.all())


def _order_by_position(owner: Ints, lists: Ragged, key: Floats) -> Ints | None:
    """The rows list by list where the keys of each list are 0..n-1 or 1..n and need no sorting; else None."""
    with np.errstate(invalid="ignore"):
        place = key - key.min()
    if (place >= lists.lengths[owner]).any() or (place != np.floor(place)).any():
        return None
    order = np.full(lists.rows, -1)
    order[lists.offsets[owner] + place.astype(np.int64)] = np.arange(lists.rows)
    return order if (order >= 0).all() else None
