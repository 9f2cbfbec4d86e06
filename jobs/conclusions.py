"""Print comparisons, the gate's verdicts and the readings."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from pipelines.runs import Manifest

_TESTS = {"p_randomisation": "p, signs", "p_bootstrap": "p, boot."}
_MARKS = {"pass": "✓", "fail": "✗", "undecidable": "?"}


def show_conclusions(
    manifest: Manifest,
    compared: Sequence[Mapping[str, Any]],
    sensitivity: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
) -> None:
    """Everything that a run says beyond its means; nothing where it says nothing."""
    from rich.console import Console

    from pipelines.readings import said_once

    console = Console(width=None if sys.stdout.isatty() else 120)
    if compared:
        show_comparisons(console, compared, metrics)
    if sensitivity:
        alpha = 1 - manifest.config["statistics"]["confidence"]
        show_sensitivity(console, sensitivity, metrics, alpha)
    for verdict in manifest.gate:
        value = "" if verdict["segment"] == "all" else f" [{verdict['segment']} = {verdict['value']}]"
        mark, said = _MARKS[verdict["verdict"]], verdict["verdict"]
        line = f"{mark} gate {said}: {verdict['condition']}{value} for {verdict['candidate']}: {verdict['reason']}"
        console.print(line, highlight=False, soft_wrap=True, markup=False)
        if verdict["warning"]:
            console.print(f"! {verdict['warning']}", highlight=False, soft_wrap=True, markup=False)
    for candidates, baseline, text in said_once(manifest.readings):
        line = f"• {', '.join(candidates)} against {baseline}: {text}"
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def show_comparisons(console: Console, compared: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> None:
    """One line per pair and metric that was asked for, over all queries; with other tests where there are any."""
    from rich.markup import escape
    from rich.table import Table

    from udfs.registry import parse

    order = {parse(name).key: (place, name) for place, name in enumerate(metrics)}
    table = Table(title="Paired by query", title_justify="left")
    for column in ("candidate − baseline", "metric"):
        table.add_column(column)
    others = {key: name for key, name in _TESTS.items() if any(row[key] is not None for row in compared)}
    for column in ("delta", "interval", "change", "p", *others.values(), "adj. p", "+ / = / −", "can see"):
        table.add_column(column, justify="right", no_wrap=True)
    asked = [row for row in compared if row["metric"] in order]  # judged@k may stand beside what was asked for
    for row in sorted(asked, key=lambda r: (r["baseline"], r["candidate"], order[r["metric"]])):
        interval = f"[{_number(row['delta_low'])}, {_number(row['delta_high'])}]"
        star = "*" if row["significant"] else ""
        table.add_row(
            escape(f"{row['candidate']} − {row['baseline']}"),
            order[row["metric"]][1],
            _number(row["delta"]),
            escape(interval),
            "–" if row["relative"] is None else f"{row['relative']:+.1%}",
            _p(row["p_value"]),
            *[_p(row[key]) for key in others],
            _p(row["p_adjusted"]) + star,
            f"{row['wins']:,} / {row['ties']:,} / {row['losses']:,}",
            "–" if row["detectable_delta"] is None else f"±{row['detectable_delta']:.4f}",
        )
    console.print(table)


def show_sensitivity(console: Console, rows: Sequence[Mapping[str, Any]], metrics: Sequence[str], alpha: float) -> None:
    """One line per pair and headline metric, with the difference by each way to count unjudged documents."""
    from rich.markup import escape
    from rich.table import Table

    from udfs.conventions import UNJUDGED
    from udfs.registry import parse

    names = {parse(name).key: name for name in metrics}
    table = Table(title="The same with unjudged documents …", title_justify="left")
    for column in ("candidate − baseline", "metric"):
        table.add_column(column)
    for words in UNJUDGED.values():
        table.add_column(words, justify="right")
    found = {(row["baseline"], row["candidate"], row["metric"], row["unjudged"]): row for row in rows}
    for baseline, candidate, metric in sorted(dict.fromkeys(key[:3] for key in found)):
        cells = [_way(found[baseline, candidate, metric, way], alpha) for way in UNJUDGED]
        table.add_row(escape(f"{candidate} − {baseline}"), names[metric], *cells)
    console.print(table)


def _way(row: Mapping[str, Any], alpha: float) -> str:
    star = "*" if row["p_value"] is not None and row["p_value"] < alpha else ""
    mark = f" {_MARKS[row['gate']]}" if row["gate"] else ""
    return f"{_number(row['delta'])}{star}{mark}, {row['queries']:,} queries"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:+.4f}"


def _p(value: float | None) -> str:
    return "–" if value is None else "<.0001" if value < 1e-4 else f"{value:.4f}"
