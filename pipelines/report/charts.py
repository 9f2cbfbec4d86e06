"""Small charts as inline SVG. Colours are CSS classes, so that light, dark and print each have their own.

Drawn by hand rather than by a library: matplotlib draws fixed colours and sizes, and the JavaScript libraries need from
0.3 MB (Observable Plot) to more than the whole page may have (Plotly), and inline styles or `eval`, which the page's
policy forbids. These charts are a few kilobytes, need no script, and can be read by a screen reader and printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.report.histograms import STEPS, Counts
from pipelines.report.markup import Markup, cut, h, text

WIDTH, HEIGHT = 340, 170
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 10, 30


@dataclass(frozen=True)
class Point:
    """A value at x, with its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    hover: str = ""


@dataclass(frozen=True)
class Interval:
    """One line of a forest plot."""

    label: str
    value: float
    low: float | None
    high: float | None
    beside: str  # text next to it
    hover: str  # text of its tooltip
    tone: str = ""  # better, worse or none


def draw_histogram(counts: Counts, title: str) -> Markup:
    """A histogram in buckets of 0.1; the buckets below 0 and above 1 are drawn only where they are not empty."""
    names = ["< 0", *[f"{i / STEPS:.1f} to {(i + 1) / STEPS:.1f}" for i in range(STEPS)], "> 1"]
    used = [i for i in range(STEPS + 2) if 0 < i <= STEPS or counts[i]]
    bars = [(names[i], int(counts[i]), "bar") for i in used]
    marks = [(used.index(i), f"{(i - 1) / STEPS:g}") for i in (1, 6) if i in used]
    return _draw_columns(bars, [*marks, (used.index(STEPS) + 1, "1")], title)


def draw_differences(counts: Counts, ties: int, title: str) -> Markup:
    """A histogram of differences in buckets of 0.1, with ties in the middle."""
    bars = []
    for place, count in enumerate(counts):
        low = place / STEPS - 1
        tone = "worse" if place < STEPS else "better"
        bars.append((f"{low:+.1f} to {low + 1 / STEPS:+.1f}", int(count), tone))
    bars.insert(STEPS, ("equal", ties, "same"))
    return _draw_columns(bars, [(0, "−1"), (STEPS + 0.5, "0"), (2 * STEPS + 1, "+1")], title)


def _draw_columns(bars: Sequence[tuple[str, int, str]], marks: Sequence[tuple[float, str]], title: str) -> Markup:
    total, top = sum(count for _, count, _ in bars), max(1, *[count for _, count, _ in bars])
    wide, high = (WIDTH - LEFT - RIGHT) / len(bars), HEIGHT - TOP - BOTTOM
    shapes: list[Markup] = [_draw_axis(top)]
    for place, (name, count, tone) in enumerate(bars):
        tall = high * count / top
        share = f", {count / total:.1%}" if total else ""
        box = {
            "x": _format(LEFT + place * wide + 1),
            "y": _format(TOP + high - tall),
            "width": _format(wide - 2),
            "height": _format(tall),
        }
        hover = h("title", f"{name}: {count:,} queries{share}")
        shapes.append(h("rect", hover, class_=tone, **box))
        # The tooltip covers the whole column, however short its bar is.
        shapes.append(h("rect", hover, class_="hit", **box | {"y": TOP, "height": high}))
    shapes += [_draw_label(LEFT + place * wide, HEIGHT - 10, words) for place, words in marks]
    return _draw_svg(title, shapes)


def draw_lines(
    series: Sequence[tuple[str, Sequence[Point]]],
    title: str,
    *,
    ticks: Sequence[tuple[float, str]],
    marks: Sequence[tuple[float, str]] = (),
    span: tuple[float, float] | None = None,
) -> Markup:
    """Lines over a common axis, each with the band of its intervals; marks are dashed vertical lines.

    `span` is the range of the values where several charts share a scale.
    """
    points = [point for _, line in series for point in line]
    if not points:
        return Markup()
    xs = [p.x for p in points] + [x for x, _ in ticks]
    bounds = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
    low, high = _pad(*(span or (min(bounds), max(bounds))))
    left, right = min(xs), max(xs)

    def at(x: float, y: float) -> tuple[str, str]:
        across = (x - left) / (right - left) if right > left else 0.5
        up = (y - low) / (high - low)
        return _format(LEFT + across * (WIDTH - LEFT - RIGHT - 10) + 5), _format(
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)
        )

    shapes = [*_draw_grid(low, high)]
    for x, words in marks:
        mark = at(x, low)[0]
        ends = {"x1": mark, "x2": mark, "y1": TOP, "y2": HEIGHT - BOTTOM}
        shapes.append(h("line", h("title", cut(words, 300)), class_="mark", **ends))
    for number, (name, line) in enumerate(series):
        colour = f"c{number % 8}"
        banded = [p for p in line if p.low is not None and p.high is not None]
        if banded:
            edge = [at(p.x, p.high or 0.0) for p in banded] + [at(p.x, p.low or 0.0) for p in reversed(banded)]
            shapes.append(h("polygon", points=" ".join(",".join(e) for e in edge), class_=f"band {colour}"))
        shapes.append(h("polyline", points=" ".join(",".join(at(p.x, p.y)) for p in line), class_=f"line {colour}"))
        for p in line:
            dot = dict(zip(("cx", "cy"), at(p.x, p.y), strict=True))
            hover = h("title", f"{cut(name, 60)}, {p.hover}" if p.hover else cut(name, 60))
            shapes.append(h("circle", hover, **dot, r=3.5, class_=f"dot {colour}"))
    shapes += [_draw_label(float(at(x, low)[0]), HEIGHT - 10, words) for x, words in ticks if words]
    legend = [h("span", h("i", class_=f"key c{n % 8}"), text(name, 40)) for n, (name, _) in enumerate(series)]
    return h("div", _draw_svg(title, shapes), h("p", legend, class_="legend") if len(series) > 1 else None)


def draw_forest(
    rows: Sequence[Interval], title: str, *, span: tuple[float, float] | None = None, sides: tuple[str, str] = ("", "")
) -> Markup:
    """One line per row on a common scale with labelled ticks: a dot for the value, a bar for its interval.

    `span` is the range of the values where several charts share a scale; `sides` say what is left and right of 0.
    Positions are percentages, so that a chart of any width has text of the same size.
    """
    low, high = _pad(*(span or measure_span(rows)))

    def at(value: float) -> str:
        return f"{_format(100 * (value - low) / (high - low))}%"

    ticks = choose_ticks(low, high)
    grid = [h("line", x1=at(tick), x2=at(tick), y1="0", y2="100%", class_="axis" if tick else "zero") for tick in ticks]
    lines = []
    for row in rows:
        parts = [*grid]
        if row.low is not None and row.high is not None:
            parts.append(h("line", x1=at(row.low), x2=at(row.high), y1="50%", y2="50%", class_=f"reach {row.tone}"))
        parts.append(h("circle", cx=at(row.value), cy="50%", r=4.5, class_=f"spot {row.tone}"))
        parts.append(h("rect", h("title", row.hover), x=0, y=0, width="100%", height="100%", class_="hit"))
        picture = h("svg", parts, class_="lane", role="img", aria_label=row.hover)
        lines.append(
            h("div", h("span", text(row.label, 60), class_="name"), picture, h("span", row.beside, class_="n"))
        )
    labels = [_draw_tick(at(tick), tick) for tick in ticks]
    scale = h("svg", labels, class_="scale", role="img", aria_label=f"scale from {low:+.3f} to {high:+.3f}")
    lines.append(h("div", h("span", class_="name"), scale, h("span"), class_="ruler"))
    if any(sides):
        words = h("span", [h("span", side) for side in sides], class_="sides-of-zero")
        lines.append(h("div", h("span", class_="name"), words, h("span"), class_="ruler"))
    return h("figure", h("figcaption", title), h("div", lines, class_="forest"), class_="chart")


def measure_span(rows: Sequence[Interval]) -> tuple[float, float]:
    """The range of the values and intervals of some rows, and of 0."""
    ends = [v for row in rows for v in (row.value, row.low, row.high) if v is not None]
    return min(0.0, *ends), max(0.0, *ends)


def choose_ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers between two ends, at most `most`, in steps of 1, 2 or 5 times a power of ten.

    >>> choose_ticks(-0.06, 0.23)
    [0.0, 0.1, 0.2]
    """
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (unit, 2 * unit, 5 * unit, 10 * unit):
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first < most:
            break
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def _draw_tick(x: str, value: float) -> Markup:
    """A label of the scale; the outermost ones stay inside it."""
    place = float(x.rstrip("%"))
    anchor = "start" if place < 6 else "end" if place > 94 else "middle"
    return h("text", "0" if not value else f"{value:+g}", x=x, y=12, text_anchor=anchor)


def draw_bars(rows: Sequence[tuple[str, float, str, str]], title: str) -> Markup:
    """One bar per row of label, length, text beside it and text of its tooltip."""
    top = max([row[1] for row in rows] + [1e-12])
    bars = []
    for label, value, beside, hover in rows:
        picture = draw_share(value / top, hover=f"{cut(label, 60)}: {hover}")
        bars.append(h("div", h("span", text(label, 60), class_="name"), picture, h("span", beside, class_="n")))
    return h("figure", h("figcaption", title), h("div", bars, class_="forest bars"), class_="chart")


def draw_share(share: float, hover: str) -> Markup:
    """A bar as long as a share of its place."""
    bar = h("rect", h("title", hover), x=0, y="15%", width=f"{_format(100 * share)}%", height="70%", class_="bar")
    return h("svg", bar, class_="lane", role="img", aria_label=hover)


def place_ticks(xs: Sequence[float]) -> list[tuple[float, str]]:
    """At most six ticks at some of the numbers."""
    numbers = sorted(set(xs))
    step = max(1, math.ceil(len(numbers) / 6))
    return [(x, f"{x:g}") for x in numbers[::step]]


def _draw_svg(title: str, shapes: Sequence[Markup]) -> Markup:
    box = f"0 0 {WIDTH} {HEIGHT}"
    picture = h("svg", shapes, viewBox=box, role="img", aria_label=cut(title))
    return h("figure", h("figcaption", title), picture, class_="chart")


def _draw_axis(top: float) -> Markup:
    ground = HEIGHT - BOTTOM
    return Markup(
        h("line", x1=LEFT, x2=WIDTH - RIGHT, y1=ground, y2=ground, class_="axis")
        + _draw_label(LEFT - 5, TOP + 8, _shorten_count(top), "end")
        + _draw_label(LEFT - 5, ground, "0", "end")
    )


def _draw_grid(low: float, high: float) -> list[Markup]:
    shapes = []
    for part in range(4):
        value, y = low + (high - low) * part / 3, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part / 3
        shapes.append(h("line", x1=LEFT, x2=WIDTH - RIGHT, y1=_format(y), y2=_format(y), class_="axis"))
        shapes.append(_draw_label(LEFT - 5, y + 4, f"{value:.2f}", "end"))
    return shapes


def _draw_label(x: float, y: float, words: Any, anchor: str = "middle") -> Markup:
    return h("text", words, x=_format(x), y=_format(y), text_anchor=anchor)


def _pad(low: float, high: float) -> tuple[float, float]:
    room = (high - low) * 0.06 or max(abs(high), 1e-3) * 0.06
    return low - room, high + room


def _shorten_count(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:g}"


def _format(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
