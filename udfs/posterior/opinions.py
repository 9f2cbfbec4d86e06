"""Scales of outside opinions: which values of a column are one level of its factor in the prior, and what they add."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from udfs.posterior.factors import Codes
from udfs.ragged import Floats

MOST_CATEGORIES = 16  # of a column; rarer values are pooled
BINS = 8  # of a number with more values, by quantile
NONE, OTHER = "(none)", "(other)"


@dataclass(frozen=True)
class OpinionScale:
    """The levels of one column: code 0 where there is no value, then one code per category or bin.

    A number has edges: code c is for values from edge c − 2 up to edge c − 1. A text has categories; the last code is
    for all other texts.
    """

    column: str
    edges: tuple[float, ...] | None  # ascending; None for texts
    categories: tuple[str, ...]  # names of the codes from 1 on

    @property
    def numeric(self) -> bool:
        return self.edges is not None

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of all codes."""
        return (NONE, *self.categories)

    def bin_values(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """The code of every value."""
        if self.edges is None:
            places = pc.index_in(values, pa.array(self.categories[:-1], pa.string()))
            codes = pc.add(pc.fill_null(places, len(self.categories) - 1), 1)
            return _to_numpy(pc.if_else(_is_missing(values), 0, codes)).astype(np.int8)
        numbers = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
        return np.where(np.isnan(numbers), 0, np.digitize(numbers, self.edges) + 1).astype(np.int8)


@dataclass(frozen=True)
class OpinionGain:
    """How much narrower opinions make labels: the relative change of their standard deviation."""

    columns: tuple[str, ...]  # the opinions, all of them or one
    narrowing: float  # 1 − with / without
    covered: float  # share of the pool's documents that have one of them


def choose_scale(column: str, sample: pa.Array | pa.ChunkedArray) -> OpinionScale:
    """The scale of a column by a sample of its values.

    Texts that all are numbers count as numbers. A number with at most `MOST_CATEGORIES` values has a level for each,
    others have `BINS` levels of equal frequency. Of texts, the `MOST_CATEGORIES` − 1 most frequent have a level each.
    """
    numbers = _parse_numbers(sample)
    if numbers is not None:
        return _scale_numbers(column, numbers[np.isfinite(numbers)])
    texts = sample.filter(pc.invert(_is_missing(sample)))
    counted = pc.value_counts(texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).to_pylist()
    ordered = sorted((-each["counts"], each["values"]) for each in counted if each["values"] not in (NONE, OTHER))
    frequent = sorted(text for _, text in ordered[: MOST_CATEGORIES - 1])
    return OpinionScale(column, None, (*frequent, OTHER))


def bin_opinions(scales: Sequence[OpinionScale], columns: Sequence[pa.ChunkedArray], rows: int) -> Codes:
    """Codes [rows × opinions] of the columns, in the order of the scales."""
    codes = [scale.bin_values(values) for scale, values in zip(scales, columns, strict=True)]
    return np.stack(codes, axis=1) if codes else np.zeros((rows, 0), dtype=np.int8)


def _parse_numbers(sample: pa.Array | pa.ChunkedArray) -> Floats | None:
    """The numbers of a sample without nulls; None where a value is a text that is no number."""
    values = sample.filter(pc.invert(_is_missing(sample)))
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        try:
            values = pc.cast(pc.utf8_trim_whitespace(values), pa.float64())
        except pa.ArrowInvalid:
            return None
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _scale_numbers(column: str, numbers: Floats) -> OpinionScale:
    distinct = np.unique(numbers)
    if len(distinct) <= MOST_CATEGORIES:
        return OpinionScale(column, tuple(distinct[1:].tolist()), _format_numbers(distinct) or ("any",))
    # Quantiles that are values of the sample. A value that is several of them, or the lowest, has a bin of its own.
    cuts = np.quantile(numbers, np.arange(BINS) / BINS, method="higher")
    repeated = np.unique(cuts[1:][cuts[1:] == cuts[:-1]])
    above = distinct[np.minimum(np.searchsorted(distinct, repeated, side="right"), len(distinct) - 1)]
    edges = np.union1d(cuts, above)
    edges = edges[edges > distinct[0]]
    texts = _format_numbers(edges)
    names = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
    return OpinionScale(column, tuple(edges.tolist()), (f"below {texts[0]}", *names, f"from {texts[-1]}"))


def _format_numbers(numbers: Floats) -> tuple[str, ...]:
    """Distinct numbers with as many digits as tell them apart, at least four."""
    for digits in range(4, 17):
        texts = tuple(f"{number:.{digits}g}" for number in numbers)
        if len(set(texts)) == len(numbers):
            return texts
    return tuple(repr(float(number)) for number in numbers)


def _is_missing(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Whether values are null, NaN or blank."""
    missing = pc.is_null(values, nan_is_null=True)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(values), ""), True))
    return missing


def _to_numpy(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.integer]:
    return np.asarray(values.to_numpy(zero_copy_only=False))
