"""A difference between two populations, split into the change within segments and the change of their mix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from udfs.ragged import Floats


@dataclass(frozen=True)
class SegmentCell:
    """One value of a segment in one run: its size (queries, traffic or pool) and its average."""

    size: float
    mean: float


@dataclass(frozen=True)
class MixSplit:
    """`delta = within + mix`; `reversal` where every segment went one way and the whole the other."""

    delta: float
    within: float
    mix: float
    reversal: bool


def split_difference(before: Mapping[str, SegmentCell], after: Mapping[str, SegmentCell]) -> MixSplit | None:
    """The difference of the averages over all cells, split in two; None where one side is empty.

    With shares s and means m: within = Σ ½(s₁ + s₂)(m₂ − m₁), mix = Σ (s₂ − s₁) ½(m₁ + m₂). A value that only
    one run has can only be mix. Kitagawa, Components of a difference between two rates, JASA 1955.
    """
    names = sorted(before.keys() | after.keys())
    if not before or not after:
        return None
    first, second = _arrays(names, before), _arrays(names, after)
    (size1, mean1), (size2, mean2) = first, second
    if size1.sum() <= 0 or size2.sum() <= 0:
        return None
    share1, share2 = size1 / size1.sum(), size2 / size2.sum()
    both = ~np.isnan(mean1) & ~np.isnan(mean2)
    mean1, mean2 = np.where(np.isnan(mean1), mean2, mean1), np.where(np.isnan(mean2), mean1, mean2)
    within = float((0.5 * (share1 + share2) * (mean2 - mean1)).sum())
    mix = float(((share2 - share1) * 0.5 * (mean1 + mean2)).sum())
    steps = (mean2 - mean1)[both]
    delta = within + mix
    one_way = len(steps) > 1 and bool((steps > 0).all() or (steps < 0).all())
    return MixSplit(delta, within, mix, one_way and delta * float(steps[0]) < 0)


def _arrays(names: list[str], cells: Mapping[str, SegmentCell]) -> tuple[Floats, Floats]:
    size = np.array([cells[name].size if name in cells else 0.0 for name in names])
    mean = np.array([cells[name].mean if name in cells else np.nan for name in names])
    return size, mean
