"""Read the categories of documents from columns of text, or of arrays of text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.categories import NONE, CategorySets
from udfs.ragged import Ints, Ragged
from udfs.tables import encode_ids, order_by_code_point


def read_categories(columns: Sequence[pa.ChunkedArray]) -> tuple[list[Ints], CategorySets | None]:
    """Columns of text, or of arrays of text, as numbers with the same meaning in all, and the sets that they number.

    The order of the members does not depend on how categories are encoded: sums over them are the same to the last bit
    here and on Spark.
    """
    parts = [_flatten(column) for column in columns]
    (*codes,), names = encode_ids(*[values for _, values in parts])
    place = order_by_code_point(pa.chunked_array([names]))
    return _number([_sort_members(sets, place[code]) for (sets, _), code in zip(parts, codes, strict=True)])


def read_encoded(columns: Sequence[pa.ChunkedArray]) -> tuple[list[Ints], CategorySets | None]:
    """As `read_categories`, of arrays of numbers that are distinct and in order already."""
    parts = [_flatten(column) for column in columns]
    return _number([(sets, values.to_numpy().astype(np.int64)) for sets, values in parts])


def _flatten(column: pa.ChunkedArray) -> tuple[Ragged, pa.ChunkedArray]:
    """The rows of a column as sets without nulls, and all members; a column without arrays has at most one a row."""
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return Ragged.of_lengths(column.is_valid().to_numpy()), column.drop_null()
    owner = np.repeat(np.arange(len(column)), pc.fill_null(pc.list_value_length(column), 0).to_numpy())
    members = pc.list_flatten(column)
    valid = members.is_valid().to_numpy()
    return Ragged.of_lengths(np.bincount(owner[valid], minlength=len(column))), members.drop_null()


def _sort_members(sets: Ragged, member: Ints) -> tuple[Ragged, Ints]:
    """The sets with their members in ascending order, each once."""
    if sets.lengths.max(initial=0) <= 1:
        return sets, member
    member = member[np.lexsort((member, sets.owner))]
    first = np.ones(sets.rows, dtype=np.bool_)
    first[1:] = (member[1:] != member[:-1]) | (sets.owner[1:] != sets.owner[:-1])
    return sets.keep(first), member[first]


def _number(parts: list[tuple[Ragged, Ints]]) -> tuple[list[Ints], CategorySets | None]:
    """Numbers of the sets of each part; where none has two members, the number is the category itself."""
    if all(sets.lengths.max(initial=0) <= 1 for sets, _ in parts):
        return [_take_only(sets, member) for sets, member in parts], None
    joined = Ragged.of_lengths(np.concatenate([sets.lengths for sets, _ in parts]))
    borders = np.cumsum([0, *[sets.size for sets, _ in parts]])
    numbers = [
        np.where(sets.lengths > 0, np.arange(sets.size) + first, NONE)
        for (sets, _), first in zip(parts, borders, strict=False)
    ]
    return numbers, CategorySets(joined, np.concatenate([member for _, member in parts]))


def _take_only(sets: Ragged, member: Ints) -> Ints:
    number = np.full(sets.size, NONE, dtype=np.int64)
    number[sets.lengths > 0] = member
    return number
