"""Small charts as inline SVG. Colours are classes, so that light, dark and paper each have their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.report.markup import Markup, cut, h, text
from pipelines.report.spread import STEPS, Counts

WIDTH, HEIGHT = 340, 170
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 10, 30


@dataclass(frozen=True)
class Point:
    """A value at a place, with its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    said: str = ""


@dataclass(frozen=True)
class Interval:
    """One line of a forest plot."""

    label: str
    value: float
    low: float | None
    high: float | None
    shown: str  # beside it
    said: str  # when pointed at
    tone: str = ""  # better, worse or nothing


def histogram(counts: Counts, title: str) -> Markup:
    """Counts of values in buckets of 0.1; what lies outside of 0 to 1 is drawn beside it only where there is some."""
    names = ["< 0", *[f"{i / STEPS:.1f} to {(i + 1) / STEPS:.1f}" for i in range(STEPS)], "> 1"]
    used = [i for i in range(STEPS + 2) if 0 < i <= STEPS or counts[i]]
    bars = [(names[i], int(counts[i]), "bar") for i in used]
    marks = [(used.index(i), f"{(i - 1) / STEPS:g}") for i in (1, 6) if i in used]
    return _columns(bars, [*marks, (used.index(STEPS) + 1, "1")], title)


def differences(counts: Counts, ties: int, title: str) -> Markup:
    """Counts of differences in buckets of 0.1, with equal queries in the middle."""
    bars = []
    for place, count in enumerate(counts):
        low = place / STEPS - 1
        tone = "worse" if place < STEPS else "better"
        bars.append((f"{low:+.1f} to {low + 1 / STEPS:+.1f}", int(count), tone))
    bars.insert(STEPS, ("equal", ties, "same"))
    return _columns(bars, [(0, "−1"), (STEPS + 0.5, "0"), (2 * STEPS + 1, "+1")], title)


def _columns(bars: Sequence[tuple[str, int, str]], marks: Sequence[tuple[float, str]], title: str) -> Markup:
    total, top = sum(count for _, count, _ in bars), max(1, *[count for _, count, _ in bars])
    wide, high = (WIDTH - LEFT - RIGHT) / len(bars), HEIGHT - TOP - BOTTOM
    drawn: list[Markup] = [_axis_left(top)]
    for place, (name, count, tone) in enumerate(bars):
        tall = high * count / top
        share = f", {count / total:.1%}" if total else ""
        box = {"x": _n(LEFT + place * wide + 1), "y": _n(TOP + high - tall), "width": _n(wide - 2), "height": _n(tall)}
        hover = h("title", f"{name}: {count:,} queries{share}")
        drawn.append(h("rect", hover, class_=tone, **box))
        # All of the column answers to the pointer, however short its bar is.
        drawn.append(h("rect", hover, class_="hit", **box | {"y": TOP, "height": high}))
    drawn += [_label(LEFT + place * wide, HEIGHT - 10, said) for place, said in marks]
    return _svg(title, drawn)


def lines(
    series: Sequence[tuple[str, Sequence[Point]]],
    title: str,
    *,
    ticks: Sequence[tuple[float, str]],
    marks: Sequence[tuple[float, str]] = (),
) -> Markup:
    """Lines over a common axis, each with its band of uncertainty; dashed where there is a mark."""
    points = [point for _, line in series for point in line]
    if not points:
        return Markup()
    xs = [p.x for p in points] + [x for x, _ in ticks]
    bounds = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
    low, high = _padded(min(bounds), max(bounds))
    left, right = min(xs), max(xs)

    def at(x: float, y: float) -> tuple[str, str]:
        across = (x - left) / (right - left) if right > left else 0.5
        up = (y - low) / (high - low)
        return _n(LEFT + across * (WIDTH - LEFT - RIGHT - 10) + 5), _n(HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM))

    drawn = [*_grid(low, high)]
    for x, said in marks:
        mark = at(x, low)[0]
        ends = {"x1": mark, "x2": mark, "y1": TOP, "y2": HEIGHT - BOTTOM}
        drawn.append(h("line", h("title", cut(said, 300)), class_="mark", **ends))
    for number, (name, line) in enumerate(series):
        colour = f"c{number % 8}"
        known = [p for p in line if p.low is not None and p.high is not None]
        if known:
            edge = [at(p.x, p.high or 0.0) for p in known] + [at(p.x, p.low or 0.0) for p in reversed(known)]
            drawn.append(h("polygon", points=" ".join(",".join(e) for e in edge), class_=f"band {colour}"))
        drawn.append(h("polyline", points=" ".join(",".join(at(p.x, p.y)) for p in line), class_=f"line {colour}"))
        for p in line:
            dot = dict(zip(("cx", "cy"), at(p.x, p.y), strict=True))
            hover = h("title", f"{cut(name, 60)}, {p.said}" if p.said else cut(name, 60))
            drawn.append(h("circle", hover, **dot, r=3.5, class_=f"dot {colour}"))
    drawn += [_label(float(at(x, low)[0]), HEIGHT - 10, said) for x, said in ticks]
    legend = [h("span", h("i", class_=f"key c{n % 8}"), text(name, 40)) for n, (name, _) in enumerate(series)]
    return h("div", _svg(title, drawn), h("p", legend, class_="legend") if len(series) > 1 else None)


def forest(rows: Sequence[Interval], title: str) -> Markup:
    """One line per row on a common scale that holds 0: a dot for the value, a bar for its interval."""
    ends = [v for row in rows for v in (row.value, row.low, row.high) if v is not None]
    low, high = _padded(min(0.0, *ends), max(0.0, *ends))

    def at(value: float) -> str:
        return _n(200 * (value - low) / (high - low))

    drawn = []
    for row in rows:
        parts = [h("line", x1=at(0), x2=at(0), y1=0, y2=20, class_="zero")]
        if row.low is not None and row.high is not None:
            parts.append(h("line", x1=at(row.low), x2=at(row.high), y1=10, y2=10, class_=f"reach {row.tone}"))
        parts.append(h("line", x1=at(row.value), x2=at(row.value), y1=10, y2=10.01, class_=f"spot {row.tone}"))
        parts.append(h("rect", h("title", row.said), x=0, y=0, width=200, height=20, class_="hit"))
        picture = h("svg", parts, viewBox="0 0 200 20", preserveAspectRatio="none", role="img", aria_label=row.said)
        drawn.append(h("div", h("span", text(row.label, 60), class_="name"), picture, h("span", row.shown, class_="n")))
    ends_of_scale = h("p", h("span", f"{low:+.3f}"), h("span", f"{high:+.3f}"), class_="ends")
    return h("figure", h("figcaption", title), h("div", drawn, class_="forest"), ends_of_scale, class_="chart")


def bars(rows: Sequence[tuple[str, float, str, str]], title: str) -> Markup:
    """One bar per row: its label, its length, what stands beside it, and what is said when it is pointed at."""
    top = max([row[1] for row in rows] + [1e-12])
    drawn = []
    for label, value, shown, said in rows:
        bar = h("rect", h("title", f"{cut(label, 60)}: {said}"), x=0, y=2, width=_n(200 * value / top), height=16)
        picture = h("svg", bar, viewBox="0 0 200 20", preserveAspectRatio="none", role="img", aria_label=said)
        drawn.append(h("div", h("span", text(label, 60), class_="name"), picture, h("span", shown, class_="n")))
    return h("figure", h("figcaption", title), h("div", drawn, class_="forest bars"), class_="chart")


def whole_numbers(xs: Sequence[float]) -> list[tuple[float, str]]:
    """Ticks at a few of some whole numbers."""
    known = sorted(set(xs))
    step = max(1, math.ceil(len(known) / 6))
    return [(x, f"{x:g}") for x in known[::step]]


def _svg(title: str, drawn: Sequence[Markup]) -> Markup:
    box = f"0 0 {WIDTH} {HEIGHT}"
    picture = h("svg", drawn, viewBox=box, role="img", aria_label=cut(title))
    return h("figure", h("figcaption", title), picture, class_="chart")


def _axis_left(top: float) -> Markup:
    ground = HEIGHT - BOTTOM
    return Markup(
        h("line", x1=LEFT, x2=WIDTH - RIGHT, y1=ground, y2=ground, class_="axis")
        + _label(LEFT - 5, TOP + 8, _short(top), "end")
        + _label(LEFT - 5, ground, "0", "end")
    )


def _grid(low: float, high: float) -> list[Markup]:
    drawn = []
    for part in range(4):
        value, y = low + (high - low) * part / 3, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part / 3
        drawn.append(h("line", x1=LEFT, x2=WIDTH - RIGHT, y1=_n(y), y2=_n(y), class_="axis"))
        drawn.append(_label(LEFT - 5, y + 4, f"{value:.2f}", "end"))
    return drawn


def _label(x: float, y: float, said: Any, anchor: str = "middle") -> Markup:
    return h("text", said, x=_n(x), y=_n(y), text_anchor=anchor)


def _padded(low: float, high: float) -> tuple[float, float]:
    room = (high - low) * 0.06 or max(abs(high), 1e-3) * 0.06
    return low - room, high + room


def _short(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:g}"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
