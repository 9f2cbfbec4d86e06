"""Read the columns of Arrow tables as NumPy arrays, and texts as numbers of their distinct values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from udfs.ragged import Bools, Ints
from udfs.xxhash import SEED, hash_like_spark

Values = TypeVar("Values", bound=np.generic)


def read_integers(column: pa.Array | pa.ChunkedArray, null: int = 0) -> Ints:
    """A column as integers of 64 bits, nulls as `null`."""
    filled = column.fill_null(null) if column.null_count else column
    return np.asarray(filled.to_numpy()).astype(np.int64, copy=False)


def read_flags(column: pa.Array | pa.ChunkedArray) -> Bools:
    """A column of booleans, nulls as false."""
    return np.asarray(column.fill_null(False).cast(pa.uint8()).to_numpy()).astype(np.bool_)


def read_micros(column: pa.Array | pa.ChunkedArray) -> Ints:
    """A column of times as microseconds since 1970."""
    return read_integers(column.cast(pa.int64()))


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


@dataclass(frozen=True)
class Texts:
    """A column of texts: per row the number of its value among the distinct ones, −1 for null."""

    codes: npt.NDArray[np.int32]
    distinct: pa.LargeStringArray

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Texts:
        encoded = join_chunks(column.unify_dictionaries())
        if not pa.types.is_dictionary(encoded.type):
            encoded = encoded.dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)).astype(np.int32, copy=False)
        return cls(codes, encoded.dictionary.cast(pa.large_string()))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Ints) -> Texts:
        """The same column of these rows."""
        return Texts(self.codes[rows], self.distinct)

    def spread(self, values: npt.NDArray[Values], null: Values | int) -> npt.NDArray[Values]:
        """Per row what each distinct value has, or `null`."""
        return np.append(values, np.array([null], dtype=values.dtype))[self.codes]

    @cached_property
    def hashes(self) -> Ints:
        """What `xxhash64` of Spark returns for each row."""
        return self.spread(hash_like_spark(self.distinct), SEED)

    @property
    def is_null(self) -> Bools:
        return self.codes < 0

    def is_among(self, values: Collection[str]) -> Bools:
        """Whether each row has one of these values."""
        among = pc.is_in(self.distinct, pa.array(list(values), pa.large_string()))
        return self.spread(read_flags(among), False)

    def matches(self, pattern: str) -> Bools:
        """Whether the regular expression occurs in each row."""
        search = re.compile(pattern).search
        matched = [search(text) is not None for text in decode_texts(self.distinct)]
        return self.spread(np.array(matched, dtype=np.bool_), False)

    def to_texts(self) -> pa.StringArray:
        """The texts of the rows."""
        return self.distinct.take(pa.array(self.codes, mask=self.is_null)).cast(pa.string())

    def to_arrow(self) -> pa.DictionaryArray:
        """The column as a dictionary that has only the values of its rows."""
        used, codes = np.unique(self.codes, return_inverse=True)
        nulls = int(np.count_nonzero(used < 0))
        indices = pa.array((codes - nulls).astype(np.int32), mask=self.is_null)
        return pa.DictionaryArray.from_arrays(indices, self.distinct.take(pa.array(used[nulls:])).cast(pa.string()))


def decode_texts(texts: pa.Array) -> list[str]:
    """The texts in Python, where bytes that are not UTF-8, which a log may have, become replacement characters."""
    try:
        return list(texts.to_pylist())
    except UnicodeDecodeError:
        return [content.decode("utf-8", "replace") for content in texts.cast(pa.large_binary()).to_pylist()]


def combine_codes(columns: Sequence[Texts]) -> tuple[Ints, Ints]:
    """Per row the number of its combination of values, and per combination its first row."""
    codes = columns[0].codes.astype(np.int64)
    for column in columns[1:]:
        codes = pd.factorize(codes * (len(column.distinct) + 1) + column.codes)[0].astype(np.int64)
    codes = pd.factorize(codes)[0].astype(np.int64)
    first = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first


def hash_chained(columns: Sequence[Texts]) -> Ints:
    """What `xxhash64` of Spark returns for several columns of text, per row."""
    codes, first = combine_codes(columns)
    seeds = np.full(len(first), SEED, dtype=np.int64)
    for column in columns:
        seeds = chain_texts(column.take(first), seeds)
    return seeds[codes]


def chain_texts(column: Texts, seeds: Ints) -> Ints:
    """The hashes of the columns before this one, and of this one: nulls change nothing."""
    rows = np.flatnonzero(~column.is_null)
    hashes = seeds.copy()
    hashes[rows] = hash_like_spark(column.distinct.take(pa.array(column.codes[rows])), seeds[rows])
    return hashes
