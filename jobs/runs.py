"""`assay runs`."""

from __future__ import annotations

import click

from jobs.options import debug, output, warehouse


@click.command("runs")
@warehouse
@click.option("--date", help="Only runs of this date.")
@click.option("--show", metavar="RUN", help="Print one run's manifest.")
@output
@debug
def command(warehouse: str, date: str | None, show: str | None, output: str) -> None:
    """List the runs, newest first; `*` marks the live run of each date, ✗ one that was refused for its data.

    \b
    assay runs --warehouse build/demo/warehouse
    """
    import json

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pipelines.runs import REFUSED, committed, live, recorded
    from pipelines.storage import Storage
    from schemas.errors import InputError, did_you_mean

    manifests = recorded(Storage(warehouse), date=date)
    if show is not None:
        found = next((m for m in manifests if m.run == show), None)
        if found is None:
            hint = did_you_mean(show, [m.run for m in manifests])
            raise InputError(f"no run {show!r}", where=warehouse, hint=hint)
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    if output == "json":
        click.echo(json.dumps([m.model_dump(mode="json") for m in manifests], ensure_ascii=False))
        return
    alive = {m.run for m in live(committed(Storage(warehouse), date=date))}
    table = Table()
    for column in ("", "date", "run", "committed", "systems", "queries × systems", "configuration"):
        table.add_column(column)
    for m in manifests:
        rows = m.tables["query_metrics"].rows if "query_metrics" in m.tables else 0
        mark = "*" if m.run in alive else "✗" if m.status == REFUSED else ""
        systems = escape(", ".join(m.systems))
        table.add_row(mark, m.dt, m.run, m.committed_at[:19].replace("T", " "), systems, f"{rows:,}", m.config_hash)
    Console().print(table if manifests else f"No committed runs in {warehouse}.")
