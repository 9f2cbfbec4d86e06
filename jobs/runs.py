"""`assay runs`."""

from __future__ import annotations

import click

from jobs.support.completion import DAY, RUN
from jobs.support.options import debug_option, output_option, warehouse_option

LONGEST = 40  # columns of the names of a run's systems; longer lists are counted
LEAST = ("configuration", "queries × systems", "committed", "systems")  # left out in this order where it is narrow


@click.command("runs")
@warehouse_option
@click.option("--date", type=DAY, help="Only runs of this date.")
@click.option("--show", metavar="RUN", type=RUN, help="Print one run's manifest.")
@output_option
@debug_option
def command(warehouse: str, date: str | None, show: str | None, output: str) -> None:
    """List the runs, newest first; `*` marks the live run of each date, ✗ a run that failed its quality checks.

    \b
    assay runs --warehouse build/demo/warehouse
    """
    import json

    from jobs.support.grids import Grid, choose_columns, show_grid, total_width
    from jobs.support.terminal import open_console
    from pipelines.warehouse.runs import REFUSED, list_committed, list_recorded, select_live
    from pipelines.warehouse.storage import Storage
    from schemas.errors import InputError, did_you_mean

    manifests = list_recorded(Storage(warehouse), date=date)
    if show is not None:
        manifest = next((m for m in manifests if m.run == show), None)
        if manifest is None:
            hint = did_you_mean(show, [m.run for m in manifests])
            raise InputError(f"no run {show!r}", where=warehouse, hint=hint)
        click.echo(json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    if output == "json":
        click.echo(json.dumps([m.model_dump(mode="json") for m in manifests], ensure_ascii=False))
        return
    live = {m.run for m in select_live(list_committed(Storage(warehouse), date=date))}
    if not manifests:
        click.echo(f"No committed runs in {warehouse}.")
        return
    console = open_console(wide=True)
    lines = []
    for m in manifests:
        rows = m.tables["query_metrics"].rows if "query_metrics" in m.tables else 0
        names = ", ".join(m.systems)
        line = {
            "run": m.run,
            "committed": m.committed_at[:19].replace("T", " "),
            "systems": names if len(names) <= LONGEST else f"{len(m.systems)} systems",
            "queries × systems": f"{rows:,}",
            "configuration": m.config_hash,
        }
        lines.append(line)
    marks = ["*" if m.run in live else "✗" if m.status == REFUSED else " " for m in manifests]
    dates = [f"{mark} {m.dt}" for mark, m in zip(marks, manifests, strict=True)]
    widths = {heading: max(len(heading), *(len(line[heading]) for line in lines)) for heading in lines[0]}
    headings = choose_columns(widths, LEAST, console.width - total_width([len(dates[0])]))
    cells = [[line[heading] for heading in headings] for line in lines]
    show_grid(console, Grid("Runs", "date", dates, headings, cells))
