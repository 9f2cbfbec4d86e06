"""Plot the position bias of a run in the terminal: `assay propensity`."""

from __future__ import annotations

import json

import click

from jobs.support.completion import RUN
from jobs.support.options import Date, debug_option, output_option, warehouse_option
from jobs.support.terminal import echo_line

WIDTH = 50


@click.command("propensity")
@warehouse_option
@click.option("--date", type=Date(), help="The date of the run; the newest by default.")
@click.option("--run", type=RUN, help="The run; the newest of the date by default.")
@output_option
@debug_option
def command(warehouse: str, date: object, run: str | None, output: str) -> None:
    """Plot the probability that a position is examined, relative to position 1.

    \b
    assay propensity --warehouse build/logs/warehouse
    """
    from jobs.support.published import read_newest_rows

    rows = read_newest_rows(warehouse, "propensities", date=None if date is None else str(date), run=run)
    if output == "json":
        click.echo(json.dumps(rows))
        return
    for line in plot_curve(rows):
        echo_line(line)


def plot_curve(rows: list[dict[str, object]]) -> list[str]:
    """One bar per position of each context, with its 95 % CI and basis."""
    lines = []
    for context in sorted({str(row["context"]) for row in rows}):
        lines.append(context)
        for row in sorted((r for r in rows if r["context"] == context), key=lambda r: int(str(r["position"]))):
            value = float(str(row["propensity"]))
            bar = "█" * round(WIDTH * min(value, 1.2)) or "▏"
            interval = "" if row["low"] is None else f"{row['low']:.3f}–{row['high']:.3f} "
            lines.append(f"{row['position']:>4} {value:6.3f} {bar} {interval}{row.get('basis') or row['estimator']}")
    return lines
