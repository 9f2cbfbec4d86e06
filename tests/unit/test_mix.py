"""A difference between runs: within segments, and from their mix."""

import pytest

from udfs.statistics.mix import Cell, split


def test_the_parts_add_up_to_the_difference() -> None:
    before = {"head": Cell(60, 0.8), "tail": Cell(40, 0.5)}
    after = {"head": Cell(30, 0.82), "tail": Cell(70, 0.51)}
    found = split(before, after)
    assert found is not None
    assert found.delta == pytest.approx((0.3 * 0.82 + 0.7 * 0.51) - (0.6 * 0.8 + 0.4 * 0.5))
    assert found.within == pytest.approx(0.45 * 0.02 + 0.55 * 0.01)
    assert found.mix == pytest.approx(-0.3 * 0.81 + 0.3 * 0.505)


def test_better_in_every_segment_and_worse_in_all_is_a_reversal() -> None:
    before = {"head": Cell(60, 0.8), "tail": Cell(40, 0.5)}
    assert split(before, {"head": Cell(30, 0.82), "tail": Cell(70, 0.51)}).reversal  # type: ignore[union-attr]
    assert not split(before, {"head": Cell(60, 0.82), "tail": Cell(40, 0.51)}).reversal  # type: ignore[union-attr]
    assert not split(before, {"head": Cell(30, 0.82), "tail": Cell(70, 0.49)}).reversal  # type: ignore[union-attr]


def test_a_value_that_only_one_run_has_is_mix() -> None:
    found = split({"a": Cell(10, 0.5)}, {"a": Cell(10, 0.5), "b": Cell(10, 0.9)})
    assert found is not None
    assert [found.within, found.mix] == pytest.approx([0.0, 0.2])


def test_nothing_can_be_split_from_nothing() -> None:
    assert split({}, {"a": Cell(1, 1)}) is None
    assert split({"a": Cell(0, 0)}, {"a": Cell(1, 1)}) is None
