"""Bootstrap weights and sign flips that depend on the query, the replicate and the seed, and on nothing else.

Each unit (a query, or a cluster of queries) draws from its own hash, so that the answer is the same however
the data is partitioned, and nothing has to be drawn in one place.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from udfs.ragged import Floats

Hashes = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 2**64
_SIGNS, _WEIGHTS = 0x5349474E, 0x424F4F54  # keep the two kinds of draws apart under one seed


def poisson_weights(units: Hashes, replicates: int, seed: int) -> npt.NDArray[np.uint8]:
    """How often each replicate of the Poisson bootstrap holds each unit: one row per unit.

    Poisson(1) by inversion of 16 bits; its probabilities are right to 2⁻¹⁶. Chamandy et al., Estimating
    uncertainty for massive data streams, 2012.
    """
    words = _draws(units, -(-replicates // 4), seed ^ _WEIGHTS)
    weights: npt.NDArray[np.uint8] = _POISSON[words.astype("<u8").view("<u2")][:, :replicates]
    return weights


def signs(units: Hashes, replicates: int, seed: int) -> npt.NDArray[np.int8]:
    """+1 or −1 for each unit in each replicate of the sign-flip test: one row per unit."""
    words = _draws(units, -(-replicates // 64), seed ^ _SIGNS)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, count=replicates, bitorder="little")
    flips: npt.NDArray[np.int8] = (bits.astype(np.int8) << 1) - np.int8(1)
    return flips


def randomisation_p(observed: Floats, flipped: Floats, scale: Floats) -> Floats:
    """p = (b + 1) / (B + 1), b the replicates (last axis) at least as far from 0 as what was observed.

    `scale` is Σ|d|: sums that differ by less than its rounding are equal, so that the order in which
    differences were added cannot decide.
    """
    least: Floats = np.abs(observed) - 1e-12 * scale
    far = np.abs(flipped) >= np.expand_dims(least, -1)
    p: Floats = (far.sum(axis=-1) + 1.0) / (flipped.shape[-1] + 1.0)
    return p


def percentile_interval(replicates: Floats, confidence: float) -> tuple[Floats, Floats]:
    """The middle `confidence` of the replicates (last axis); those without any unit are left out."""
    tail = (1 - confidence) / 2
    empty = np.all(np.isnan(replicates), axis=-1, keepdims=True)
    filled = np.where(empty, 0.0, replicates)
    low, high = np.nanquantile(filled, [tail, 1 - tail], axis=-1)
    nothing = empty[..., 0]
    return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)


def bootstrap_p(observed: Floats, replicates: Floats) -> Floats:
    """Two-sided test of "it is 0" from the replicates moved there: (b + 1) / (B + 1), b those as far as observed."""
    moved = np.abs(replicates - observed[..., None])
    far = moved >= np.abs(observed)[..., None] - 1e-12
    known = ~np.isnan(replicates)
    p: Floats = ((far & known).sum(axis=-1) + 1.0) / (known.sum(axis=-1) + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def _draws(units: Hashes, words: int, seed: int) -> Hashes:
    """`words` random 64-bit words per unit: SplitMix64 of the unit's hash, counted on by the golden ratio."""
    if not words:
        return np.empty((len(units), 0), dtype=np.uint64)
    start = _mixed(units ^ np.uint64(_scalar_mixed(seed % _WORD)))
    steps = np.array([(step + 1) * _GOLDEN % _WORD for step in range(words)], dtype=np.uint64)
    return _mixed(start[:, None] + steps)


def _mixed(z: Hashes) -> Hashes:
    """SplitMix64's finaliser. Steele, Lea and Flood, OOPSLA 2014."""
    z = z ^ (z >> np.uint64(30))
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _scalar_mixed(value: int) -> int:
    return int(_mixed(np.array([value], dtype=np.uint64))[0])


def _poisson_table() -> npt.NDArray[np.uint8]:
    below = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(20)])
    return np.searchsorted(below, (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.uint8)


_POISSON = _poisson_table()
