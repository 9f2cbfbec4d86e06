"""The 64-bit xxHash of texts as Spark computes it (`xxhash64`), for many texts at once.

Replicates depend on the hash of a query: with the same one, tables in memory have the bootstrap of a run on Spark.
The algorithm: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.ragged import Ints

Words = npt.NDArray[np.uint64]

_SEED = 42  # Spark's
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


def hash_like_spark(texts: pa.LargeStringArray) -> Ints:
    """Per text, what `xxhash64` of Spark returns for it."""
    _, borders, data = texts.buffers()
    offsets = np.frombuffer(borders, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    content = np.concatenate((content, np.zeros(8, dtype=np.uint8)))
    words = np.ndarray((len(content) - 7,), np.dtype("<u8"), content, 0, (1,))  # the 8-byte word at every byte
    at, left = offsets[:-1].copy(), np.diff(offsets)
    length = left.astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = np.full(len(left), np.uint64(_SEED) + _P5)
        long = np.flatnonzero(left >= _STRIPE)
        mixed[long] = _hash_stripes(words, at[long], left[long])
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
        mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return (mixed ^ (mixed >> np.uint64(32))).view(np.int64)


def _hash_stripes(words: Words, at: Ints, left: Ints) -> Words:
    """The four accumulators over all whole stripes, merged."""
    seed = np.uint64(_SEED)
    start = np.array([seed + _P1 + _P2, seed + _P2, seed, seed - _P1])
    lanes = np.repeat(start[:, None], len(at), axis=1)
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
