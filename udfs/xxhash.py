"""The 64-bit xxHash of texts and numbers as Spark computes it (`xxhash64`), for many values at once.

Replicates depend on the hash of a query: with the same one, tables in memory have the bootstrap of a run on Spark.
`xxhash64` of several columns hashes each with the hash of those before it as its seed.
The algorithm: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.ragged import Floats, Ints

Words = npt.NDArray[np.uint64]

SEED = 42  # Spark's; also its hash of null
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32  # bytes that four accumulators take at once


def hash_like_spark(texts: pa.LargeStringArray, seeds: Ints | None = None) -> Ints:
    """Per text, what `xxhash64` of Spark returns for it; with `seeds`, the hashes of the columns before it."""
    seed = _start(len(texts), seeds)
    _, borders, data = texts.buffers()
    offsets = np.frombuffer(borders, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    content = np.concatenate((content, np.zeros(8, dtype=np.uint8)))
    words = np.ndarray((len(content) - 7,), np.dtype("<u8"), content, 0, (1,))  # the 8-byte word at every byte
    at, left = offsets[:-1].copy(), np.diff(offsets)
    length = left.astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = seed + _P5
        long = np.flatnonzero(left >= _STRIPE)
        mixed[long] = _hash_stripes(words, at[long], left[long], seed[long])
        at, left = at + left // _STRIPE * _STRIPE, left % _STRIPE
        mixed += length
        while len(rows := np.flatnonzero(left >= 8)):
            mixed[rows] = _rotate(mixed[rows] ^ _round(np.uint64(0), words[at[rows]]), 27) * _P1 + _P4
            at[rows] += 8
            left[rows] -= 8
        rows = np.flatnonzero(left >= 4)
        half = words[at[rows]] & np.uint64(0xFFFFFFFF)
        mixed[rows] = _rotate(mixed[rows] ^ (half * _P1), 23) * _P2 + _P3
        at[rows] += 4
        left[rows] -= 4
        while len(rows := np.flatnonzero(left > 0)):
            byte = content[at[rows]].astype(np.uint64)
            mixed[rows] = _rotate(mixed[rows] ^ (byte * _P5), 11) * _P1
            at[rows] += 1
            left[rows] -= 1
    return _finish(mixed)


def hash_numbers_like_spark(numbers: Ints | Floats, seeds: Ints | None = None) -> Ints:
    """The same for each number: of 64 bits in Spark, or a double."""
    if numbers.dtype == np.float64:
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # one NaN, and no negative zero
    words = np.ascontiguousarray(numbers).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = _start(len(words), seeds) + _P5 + np.uint64(8)
        mixed = _rotate(mixed ^ _round(np.uint64(0), words), 27) * _P1 + _P4
    return _finish(mixed)


def _start(size: int, seeds: Ints | None) -> Words:
    return np.full(size, np.uint64(SEED)) if seeds is None else seeds.view(np.uint64)


def _finish(mixed: Words) -> Ints:
    with np.errstate(over="ignore"):
        mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return (mixed ^ (mixed >> np.uint64(32))).view(np.int64)


def _hash_stripes(words: Words, at: Ints, left: Ints, seed: Words) -> Words:
    """The four accumulators over all whole stripes, merged."""
    lanes = np.stack([seed + _P1 + _P2, seed + _P2, seed, seed - _P1])
    at, left = at.copy(), left.copy()
    while len(rows := np.flatnonzero(left >= _STRIPE)):
        for lane in range(4):
            lanes[lane, rows] = _round(lanes[lane, rows], words[at[rows] + 8 * lane])
        at[rows] += _STRIPE
        left[rows] -= _STRIPE
    merged: Words = np.zeros(len(at), dtype=np.uint64)
    for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        merged += _rotate(lane, bits)
    for lane in lanes:
        merged = (merged ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return merged


def _round(state: Words | np.uint64, word: Words) -> Words:
    return _rotate(state + word * _P2, 31) * _P1


def _rotate(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
