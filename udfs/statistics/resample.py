"""Bootstrap weights and sign flips that depend on the query, the replicate and the seed, and on nothing else.

Each unit (a query, or a cluster of queries) draws from its own hash, so that the result does not depend on the
partitions, and every partition can draw by itself.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from udfs.ragged import Floats

Hashes = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 2**64
_SIGNS, _WEIGHTS = 0x5349474E, 0x424F4F54  # separate the two kinds of draws under one seed


def draw_poisson_weights(units: Hashes, replicates: int, seed: int) -> npt.NDArray[np.uint8]:
    """How often each replicate of the Poisson bootstrap contains each unit: one row per unit.

    Poisson(1) by inversion of 16 bits; its probabilities are right to 2⁻¹⁶. Chamandy et al., Estimating
    uncertainty for massive data streams, 2012.
    """
    words = draw_words(units, -(-replicates // 4), seed ^ _WEIGHTS)
    weights: npt.NDArray[np.uint8] = _POISSON[words.astype("<u8").view("<u2")][:, :replicates]
    return weights


def draw_signs(units: Hashes, replicates: int, seed: int) -> npt.NDArray[np.int8]:
    """+1 or −1 for each unit in each replicate of the sign-flip test: one row per unit."""
    words = draw_words(units, -(-replicates // 64), seed ^ _SIGNS)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, count=replicates, bitorder="little")
    flips: npt.NDArray[np.int8] = (bits.astype(np.int8) << 1) - np.int8(1)
    return flips


def compute_randomisation_p(observed: Floats, flipped: Floats, scale: Floats) -> Floats:
    """p = (b + 1) / (B + 1), b the replicates (last axis) at least as far from 0 as the observed sum.

    `scale` is Σ|d|: sums that differ by less than its rounding are equal, so that the order of addition
    does not matter.
    """
    least: Floats = np.abs(observed) - 1e-12 * scale
    far = np.abs(flipped) >= np.expand_dims(least, -1)
    p: Floats = (far.sum(axis=-1) + 1.0) / (flipped.shape[-1] + 1.0)
    return p


def compute_percentile_interval(replicates: Floats, confidence: float) -> tuple[Floats, Floats]:
    """The middle `confidence` of the replicates (last axis); those without any unit are left out."""
    tail = (1 - confidence) / 2
    empty = np.all(np.isnan(replicates), axis=-1, keepdims=True)
    filled = np.where(empty, 0.0, replicates)
    low, high = np.nanquantile(filled, [tail, 1 - tail], axis=-1)
    undefined = empty[..., 0]
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def compute_bootstrap_p(observed: Floats, replicates: Floats) -> Floats:
    """Two-sided test of a mean of 0 from the centred replicates: (b + 1) / (B + 1), b those as far as observed."""
    centred = np.abs(replicates - observed[..., None])
    far = centred >= np.abs(observed)[..., None] - 1e-12
    defined = ~np.isnan(replicates)
    p: Floats = ((far & defined).sum(axis=-1) + 1.0) / (defined.sum(axis=-1) + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def draw_words(units: Hashes, words: int, seed: int) -> Hashes:
    """`words` random 64-bit words per unit: SplitMix64 of the unit's hash."""
    if not words:
        return np.empty((len(units), 0), dtype=np.uint64)
    start = _mix(units ^ np.uint64(_mix_scalar(seed % _WORD)))
    steps = np.array([(step + 1) * _GOLDEN % _WORD for step in range(words)], dtype=np.uint64)
    return _mix(start[:, None] + steps)


def _mix(z: Hashes) -> Hashes:
    """SplitMix64's finaliser. Steele, Lea and Flood, OOPSLA 2014."""
    z = z ^ (z >> np.uint64(30))
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _mix_scalar(value: int) -> int:
    return int(_mix(np.array([value], dtype=np.uint64))[0])


def _build_poisson_table() -> npt.NDArray[np.uint8]:
    below = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(20)])
    return np.searchsorted(below, (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.uint8)


_POISSON = _build_poisson_table()
