"""A difference between runs: within segments, and from their mix."""

import pytest

from udfs.statistics.mix import SegmentCell, split_difference


def test_the_parts_add_up_to_the_difference() -> None:
    before = {"head": SegmentCell(60, 0.8), "tail": SegmentCell(40, 0.5)}
    after = {"head": SegmentCell(30, 0.82), "tail": SegmentCell(70, 0.51)}
    split = split_difference(before, after)
    assert split is not None
    assert split.delta == pytest.approx((0.3 * 0.82 + 0.7 * 0.51) - (0.6 * 0.8 + 0.4 * 0.5))
    assert split.within == pytest.approx(0.45 * 0.02 + 0.55 * 0.01)
    assert split.mix == pytest.approx(-0.3 * 0.81 + 0.3 * 0.505)


def test_better_in_every_segment_and_worse_in_all_is_a_reversal() -> None:
    before = {"head": SegmentCell(60, 0.8), "tail": SegmentCell(40, 0.5)}
    assert split_difference(before, {"head": SegmentCell(30, 0.82), "tail": SegmentCell(70, 0.51)}).reversal  # type: ignore[union-attr]
    assert not split_difference(before, {"head": SegmentCell(60, 0.82), "tail": SegmentCell(40, 0.51)}).reversal  # type: ignore[union-attr]
    assert not split_difference(before, {"head": SegmentCell(30, 0.82), "tail": SegmentCell(70, 0.49)}).reversal  # type: ignore[union-attr]


def test_a_value_that_only_one_run_has_is_mix() -> None:
    split = split_difference({"a": SegmentCell(10, 0.5)}, {"a": SegmentCell(10, 0.5), "b": SegmentCell(10, 0.9)})
    assert split is not None
    assert [split.within, split.mix] == pytest.approx([0.0, 0.2])


def test_nothing_can_be_split_from_nothing() -> None:
    assert split_difference({}, {"a": SegmentCell(1, 1)}) is None
    assert split_difference({"a": SegmentCell(0, 0)}, {"a": SegmentCell(1, 1)}) is None
