"""Random numbers by hash: standard Gamma draws from a table of quantiles, and normals for the curve's exponent.

Only exactly rounded operations act on single draws (no exp, log or cbrt), so that a number does not depend on the
block it is computed in.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

from udfs.ragged import Floats
from udfs.statistics.resample import Hashes, draw_words

Singles = npt.NDArray[np.float32]

_STEPS = 1024  # equally probable steps of the quantile function
_PER_OCTAVE_BITS = 3  # 8 shapes per octave
_LEAST, _MOST = 2.0**-2, 2.0**6  # shapes in the table; above them the cube root of a Gamma is normal
_SHIFT = 23 - _PER_OCTAVE_BITS  # of a float32's bits: what remains is its octave and the part of it
_GAMMAS, _EXPONENTS = 0x47414D4D, 0x45585021  # separate the two kinds of draws under one seed


def draw_steps(query: Hashes, doc: Hashes, draws: int, seed: int) -> npt.NDArray[np.uint16]:
    """Uniform numbers below 1,024, one row per document and one column per draw."""
    unit = query * np.uint64(0x9E3779B97F4A7C15) + doc
    words = draw_words(unit, -(-draws // 4), seed ^ _GAMMAS)
    steps: npt.NDArray[np.uint16] = words.astype("<u8").view("<u2")[:, :draws] >> np.uint16(6)
    return steps


def draw_normals(draws: int, seed: int) -> Floats:
    """Standard normal numbers, one per draw: equally spaced quantiles in random order, with mean 0 and variance 1."""
    order = np.argsort(draw_words(np.arange(draws, dtype=np.uint64), 1, seed ^ _EXPONENTS)[:, 0])
    normals = special.ndtri((order + 0.5) / draws)
    spread = normals.std()
    return np.asarray(normals / spread if spread > 0 else normals)


def draw_normal_steps(query: Hashes, doc: Hashes, draws: int, seed: int) -> Singles:
    """Standard normal numbers, one row per document and one column per draw: 1,024 steps, each at its mean."""
    return _build_tables()[1][draw_steps(query, doc, draws, seed)]


def transform_steps(steps: npt.NDArray[np.uint16], shape: Singles) -> Singles:
    """Gamma(shape, 1) draws from uniform steps.

    The quantile function is a staircase of 1,024 steps, each at its mean, so that means are right: between shapes of
    the table (8 per octave, 1/4 to 64) by linear interpolation, which errs by less than 0.1 % in the mean and 1 % in
    the variance. Above 64 by Wilson and Hilferty 1931: shape·(1 − 1/(9·shape) + z/(3·√shape))³, within 0.02 %.
    """
    table, normal = _build_tables()
    inside = np.clip(shape, np.float32(_LEAST), np.float32(np.nextafter(np.float32(_MOST), np.float32(0))))
    bits = inside.view(np.int32)
    row = ((bits >> _SHIFT) - (np.float32(_LEAST).view(np.int32) >> _SHIFT)).astype(np.intp)
    share = (bits & ((1 << _SHIFT) - 1)).astype(np.float32) * np.float32(2.0**-_SHIFT)
    index = row * _STEPS + steps
    draws: Singles = table.take(index)
    index += _STEPS
    draws += share * (table.take(index) - draws)
    large = shape >= _MOST
    if large.any():
        k, z = shape[large], normal[steps[large]]
        root = np.float32(1) - np.float32(1) / (np.float32(9) * k) + z / (np.float32(3) * np.sqrt(k))
        draws[large] = k * root * root * root
    return draws


@cache
def _build_tables() -> tuple[Singles, Singles]:
    """Flat means of the steps of Gamma(k, 1) for every k of the table, and those of a standard normal."""
    octaves = int(np.log2(_MOST / _LEAST))
    per = 1 << _PER_OCTAVE_BITS
    shapes = np.append((_LEAST * 2.0 ** np.arange(octaves)[:, None] * (1 + np.arange(per) / per)).ravel(), _MOST)
    edges = special.gammaincinv(shapes[:, None], np.arange(_STEPS + 1) / _STEPS)
    # E[G; a < G < b] = k·(P(k + 1, b) − P(k + 1, a))
    means = shapes[:, None] * np.diff(special.gammainc(shapes[:, None] + 1, edges), axis=1) * _STEPS
    density = np.exp(-(special.ndtri(np.arange(_STEPS + 1) / _STEPS) ** 2) / 2) / np.sqrt(2 * np.pi)
    return means.astype(np.float32).ravel(), (-np.diff(density) * _STEPS).astype(np.float32)
