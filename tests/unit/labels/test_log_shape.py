"""Odd logs are recognised from their figures, and ordinary ones are not."""

from dataclasses import replace

import pytest

from pipelines.labels.denoise.funnel import build_empty_log_error
from pipelines.labels.denoise.nameless import SharedUser, choose_share
from pipelines.labels.denoise.page_arrays import PageMark
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.log_shape import LogShape, PositionStep, diagnose_log, read_log_shape

PAGE, CLICKED = int(PageMark.PAGE), int(PageMark.PAGE | PageMark.CLICKED)
NAMELESS, STACKED = int(PageMark.PAGE | PageMark.NAMELESS), int(PageMark.PAGE | PageMark.STACKED)
ORDINARY = LogShape(
    pages={PAGE: 600, CLICKED: 400},
    impressions=10_000,
    without_system=0,
    systems=("a", "b"),
    steps=[PositionStep(position, 1000, 1000) for position in range(1, 10)],
)


def build_steps(*ratios: float) -> list[PositionStep]:
    steps, shown = [], 1000
    for position, ratio in enumerate(ratios, 1):
        steps.append(PositionStep(position, shown, round(shown * ratio)))
        shown = round(shown * ratio)
    return steps


def test_an_ordinary_log_has_no_diagnostics() -> None:
    assert diagnose_log(ORDINARY) == []


@pytest.mark.parametrize(
    ("change", "check", "warning", "words"),
    [
        ({"pages": {CLICKED: 980, PAGE: 20}}, "clicked_pages", True, "980 of 1,000 pages have a click"),
        ({"pages": {NAMELESS: 30, PAGE: 970}}, "users", True, "30 of 1,000 pages name no user"),
        ({"pages": {NAMELESS: 3, PAGE: 997}}, "users", False, "3 of 1,000 pages name no user"),
        ({"no_user_events": 4}, "users", True, "4 events name neither page nor user"),
        ({"pages": {STACKED: 100, PAGE: 900}}, "blocks", True, "On 100 of 1,000 pages several documents"),
        ({"systems": (), "without_system": 10_000}, "systems", True, "does not name its systems"),
        ({"without_system": 500}, "systems", True, "5.0% of impressions name no system"),
        ({"systems": ("a",)}, "systems", False, "One system, a, served all pages"),
        ({"steps": build_steps(*[0.9] * 9)}, "thinning", True, "position 10 is shown on 39% of the pages"),
        ({"steps": build_steps(1, 1, 0.6, 0.7, 0.8, 0.8, 0.9, 0.9)}, "thinning", True, "scrolled into view"),
    ],
)
def test_an_odd_log_is_recognised(change: dict[str, object], check: str, warning: bool, words: str) -> None:
    (diagnostic,) = diagnose_log(replace(ORDINARY, **change))  # type: ignore[arg-type]
    assert (diagnostic.check, diagnostic.warning) == (check, warning)
    assert words in diagnostic.sentence


@pytest.mark.parametrize(
    "change",
    [
        {"pages": {CLICKED: 979, PAGE: 21}},
        {"pages": {CLICKED: 99}},  # too few pages to conclude that the others are missing
        {"steps": build_steps(1, 1, 1, 1, 0.2, 1, 1, 1, 1)},  # a second page of results, or systems of two lengths
        {"steps": build_steps(0.99, 0.99, 0.99, 0.99)},
        {"steps": [PositionStep(position, 19, 10) for position in range(1, 10)]},
        {"steps": build_steps(0.5, 0.5)},
    ],
)
def test_what_is_not_clear_is_not_reported(change: dict[str, object]) -> None:
    assert diagnose_log(replace(ORDINARY, **change)) == []  # type: ignore[arg-type]


def test_a_shared_user_is_named() -> None:
    shape = replace(ORDINARY, pages={NAMELESS: 740, PAGE: 260}, shared_user=SharedUser("web", 0.74))
    (diagnostic,) = diagnose_log(shape)
    assert "or 'web', which has 74% of all pages" in diagnostic.sentence
    assert "labels.denoise.internal_user.users" in diagnostic.sentence


def test_the_shape_is_read_from_rows_in_any_order() -> None:
    def row(
        figure: str, key: int, shown: int, other: int, first: str | None = None, last: str | None = None
    ) -> dict[str, object]:
        return {
            "figure": figure, "key": key, "impressions": shown, "other": other,
            "first_system": first, "last_system": last,
        }  # fmt: skip

    rows = [
        row("step", 2, 9, 8),
        row("kept", 0, 90, 5, "b", "c"),
        row("step", 1, 10, 9),
        row("kept", 3, 10, 0, "a", "a"),
    ]
    assert read_log_shape(rows, shared_user=None, no_user_events=2) == LogShape(
        pages={3: 10},
        impressions=100,
        without_system=5,
        systems=("a", "c"),
        steps=[PositionStep(1, 10, 9), PositionStep(2, 9, 8)],
        no_user_events=2,
    )


def test_small_logs_are_inspected_whole_and_large_ones_in_part() -> None:
    assert choose_share(None) == choose_share(1_000_000) == 1.0
    assert choose_share(4_000_000) == 0.25


def test_an_empty_log_is_refused_with_the_rule_and_its_settings() -> None:
    error = build_empty_log_error("too_many_queries", 900, 1000, DenoiseSettings())
    assert error.exit_code == 4
    assert error.what.endswith("too_many_queries dropped 900 of 1,000")
    assert error.where == "labels.denoise.too_many_queries"
    assert "(pages = 50)" in error.hint and "enabled: false" in error.hint
    assert "settings" not in build_empty_log_error("sponsored", 1, 1, DenoiseSettings()).hint
