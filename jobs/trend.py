"""`assay trend`."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import click

from jobs.support.completion import METRIC, SYSTEM
from jobs.support.options import Date, debug_option, output_option, warehouse_option
from schemas.printable import format_count

if TYPE_CHECKING:
    from pipelines.report.trend import Trend

WIDTH, BESIDE = 40, 55  # columns of the plot where there is room, and of the text beside it


@click.command("trend")
@warehouse_option
@click.option("--metric", required=True, type=METRIC, help="The metric, e.g. ndcg@10.")
@click.option(
    "--system",
    "systems",
    multiple=True,
    type=SYSTEM,
    help="A system; all of the newest run if none is given.",
)
@click.option("--since", type=Date(), help="The first date to show.")
@click.option("--segment", nargs=2, metavar="COLUMN VALUE", help="One segment instead of all queries.")
@click.option("--to", "target", type=click.Path(), metavar="FILE", help="Also write an HTML page.")
@click.option("--open", "show", is_flag=True, help="Open that page in the browser.")
@output_option
@debug_option
def command(
    warehouse: str,
    metric: str,
    systems: tuple[str, ...],
    since: dt.date | None,
    segment: tuple[str, str] | None,
    target: str | None,
    show: bool,
    output: str,
) -> None:
    """Draw a metric over the committed runs, with marks where runs stop being comparable.

    \b
    assay trend --metric ndcg@10 --system neural --since 2026-10-01 --warehouse build/demo/warehouse
    """
    import json

    from jobs.report import write_page
    from jobs.support.terminal import echo_line, open_console
    from pipelines.report.trend import read_trend, render_trend
    from pipelines.warehouse.damage import name_damage
    from pipelines.warehouse.storage import Storage
    from schemas.errors import ConfigurationError
    from udfs.registry import parse_metric

    if show and target is None:
        raise ConfigurationError("there is no page to open", where="--open", hint="name a file with --to")
    column, value = segment or ("all", "all")
    spec = parse_metric(metric)
    with name_damage("the runs", warehouse):
        trend = read_trend(Storage(warehouse), spec, systems=systems, since=since, segment=column, value=value)
        lines = draw_trend(trend, width=min(WIDTH, max(10, open_console(wide=True).width - BESIDE)))
        page = "" if target is None else render_trend(trend)
    if target is not None:
        write_page(page, target)
    if output == "json":
        click.echo(json.dumps(trend.to_dict(), ensure_ascii=False))
    else:
        for line in lines:
            echo_line(line)
    if show and target is not None:
        click.launch(target)


def draw_trend(trend: Trend, width: int = WIDTH) -> list[str]:
    """One line per date: the mean, and its interval on a scale shared by all systems."""
    ends = [
        end for values in trend.systems.values() for v in values for end in (v.mean, v.low, v.high) if end is not None
    ]
    low, high = min(ends), max(ends)

    def at(value: float) -> int:
        return round((width - 1) * (value - low) / (high - low)) if high > low else width // 2

    lines = []
    for system, values in trend.systems.items():
        part = "" if trend.segment == "all" else f" in {trend.segment} = {trend.value}"
        lines.append(f"{trend.metric} of {system}{part}; the scale runs from {low:.4f} to {high:.4f}")
        for v in values:
            if v.changed:
                lines.append(f"  ── not comparable with earlier dates: {'; '.join(v.changed)}")
            cells = [" "] * width
            if v.low is not None and v.high is not None:
                cells[at(v.low) : at(v.high) + 1] = "─" * (at(v.high) - at(v.low) + 1)
            cells[at(v.mean)] = "●"
            interval = "" if v.low is None or v.high is None else f"[{v.low:.4f}, {v.high:.4f}]"
            lines.append(f"  {v.dt}  {v.mean:.4f}  {''.join(cells)}  {interval} {format_count(v.queries, 'query')}")
    return lines
