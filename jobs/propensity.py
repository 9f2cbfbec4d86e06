"""Draw a run's propensity curve in the terminal: `assay propensity`."""

from __future__ import annotations

import json

import click

from jobs.options import Date, debug, output, warehouse

WIDTH = 50


@click.command("propensity")
@warehouse
@click.option("--date", type=Date(), help="The date of the run; the newest where not given.")
@click.option("--run", help="The run; the newest of the date where not given.")
@output
@debug
def command(warehouse: str, date: object, run: str | None, output: str) -> None:
    """Draw how the chance of being looked at falls with the position.

    \b
    assay propensity --warehouse build/logs/warehouse
    """
    from jobs.published import newest_rows

    rows = newest_rows(warehouse, "propensities", date=None if date is None else str(date), run=run)
    click.echo(json.dumps(rows) if output == "json" else "\n".join(draw(rows)))


def draw(rows: list[dict[str, object]]) -> list[str]:
    """One bar per position of each context, with its interval."""
    lines = []
    for context in sorted({str(row["context"]) for row in rows}):
        lines.append(context)
        for row in sorted((r for r in rows if r["context"] == context), key=lambda r: int(str(r["position"]))):
            value = float(str(row["propensity"]))
            bar = "█" * round(WIDTH * min(value, 1.2)) or "▏"
            known = row["low"] is not None
            interval = f"{row['low']:.3f}–{row['high']:.3f}" if known else str(row["estimator"])
            lines.append(f"{row['position']:>4} {value:6.3f} {bar} {interval}")
    return lines
