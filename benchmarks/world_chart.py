"""Draw what the worlds measured: the true differences, and the estimates by two rules with their intervals.

    python -m benchmarks worlds                                   # measures, and writes build/bench.json
    python -m benchmarks.world_chart docs/images/worlds.svg       # draws it

One panel per world; a candidate has a grey bar at its true difference from production, averaged over seeds, and below
it the mean estimate of each rule with its mean 95 % interval.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.world_logs import CANDIDATES, WORLDS

RULES = {"cut_then_condense": ("#c0392b", "unshown documents removed"), "posterior": ("#1a7f4b", "posterior")}
SHOWN = ("plain", "unequal", "production_learned")
TRUTH = "#444"
LEFT, PANEL, GAP, TOP, ROW = 80, 240, 50, 78, 52
TICKS = (-0.1, 0.1)

Figures = Mapping[str, Sequence[Mapping[str, Any]]]  # by rule, rows of `benchmarks.worlds.summarise`


def draw_worlds(figures: Figures, worlds: Sequence[str], pages: int) -> str:
    """The chart as SVG, on one scale for all worlds."""
    rows = {
        (row["world"], row["candidate"], rule): row
        for rule in RULES
        for row in figures[rule]
        if row["pages"] == pages and row["world"] in worlds
    }
    ends = [row["true"] + row["error"] + side * row["width"] / 2 for row in rows.values() for side in (-1, 1)]
    ends += [row["true"] for row in rows.values()]
    low, high = min(ends), max(ends)
    width = LEFT + len(worlds) * (PANEL + GAP)
    height = TOP + ROW * len(CANDIDATES) + 30
    shapes = [f'<text x="20" y="22">ΔNDCG@10 against production, {pages:,} pages of a log with known truth</text>']
    legend = ((TRUTH, "truth"), *RULES.values())
    for at, (colour, name) in zip((25, 95, 285), legend, strict=True):
        shapes.append(
            f'<circle cx="{at}" cy="42" r="5" fill="{colour}"/><text x="{at + 10}" y="46">{escape(name)}</text>'
        )
    for row_number, candidate in enumerate(CANDIDATES):
        shapes.append(f'<text x="20" y="{TOP + ROW * row_number + 30}">{candidate}</text>')
    for number, world in enumerate(worlds):
        left = LEFT + number * (PANEL + GAP)
        panel = {key[1:]: row for key, row in rows.items() if key[0] == world}
        shapes += _draw_panel(panel, WORLDS[world], left, (low, high))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
    return "\n".join([f'{head} font-size="12">', '<rect width="100%" height="100%" fill="#fff"/>', *shapes, "</svg>\n"])


def _draw_panel(
    rows: Mapping[tuple[str, str], Mapping[str, Any]], title: str, left: float, reach: tuple[float, float]
) -> list[str]:
    """The candidates of one world."""
    low, high = reach

    def x(value: float) -> str:
        return f"{left + PANEL * (value - low) / (high - low):.1f}"

    bottom = TOP + ROW * len(CANDIDATES)
    shapes = [f'<text x="{left}" y="{TOP - 8}" fill="#555">{escape(title)}</text>']
    shapes.append(f'<line x1="{x(0)}" x2="{x(0)}" y1="{TOP}" y2="{bottom}" stroke="#ccc"/>')
    shapes += [
        f'<text x="{x(tick)}" y="{bottom + 16}" text-anchor="middle" fill="#555">{tick:+g}</text>' for tick in TICKS
    ]
    for row_number, candidate in enumerate(CANDIDATES):
        top = TOP + ROW * row_number
        for line, (rule, (colour, name)) in enumerate(RULES.items()):
            row, y = rows[candidate, rule], top + 18 + 18 * line
            estimate, half = row["true"] + row["error"], row["width"] / 2
            says = f"{name}: {estimate:+.3f} [{estimate - half:+.3f}, {estimate + half:+.3f}], true {row['true']:+.3f}"
            shapes += [
                f'<line x1="{x(estimate - half)}" x2="{x(estimate + half)}" y1="{y}" y2="{y}" stroke="{colour}" '
                'stroke-width="2"/>',
                f'<circle cx="{x(estimate)}" cy="{y}" r="5" fill="{colour}"><title>{escape(says)}</title></circle>',
            ]
        true = rows[candidate, "posterior"]["true"]
        shapes.append(
            f'<line x1="{x(true)}" x2="{x(true)}" y1="{top + 8}" y2="{top + 46}" stroke="{TRUTH}" stroke-width="3"/>'
        )
    return shapes


def main() -> None:
    """Draw the figures of `python -m benchmarks worlds`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("--figures", type=Path, default=Path("build/bench.json"))
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(SHOWN))
    parser.add_argument("--pages", type=int, default=40_000)
    chosen = parser.parse_args()
    figures: Figures = json.loads(chosen.figures.read_text("utf-8"))["worlds"]
    chosen.target.write_text(draw_worlds(figures, chosen.worlds, chosen.pages), encoding="utf-8")


if __name__ == "__main__":
    main()
