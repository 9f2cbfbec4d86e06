"""`assay tables`."""

from __future__ import annotations

import click

from jobs.options import debug, output, warehouse


@click.command("tables")
@warehouse
@click.option("--sql", type=click.Choice(["spark", "duckdb"]), required=True, help="The dialect of the views.")
@output
@debug
def command(warehouse: str, sql: str, output: str) -> None:
    """Print a view for each published table that shows the live run of every date.

    \b
    assay tables --sql duckdb --warehouse build/demo/warehouse > views.sql
    """
    import json

    from pipelines.storage import Storage
    from pipelines.views import VIEWS

    views = VIEWS[sql](Storage(warehouse))
    click.echo(json.dumps({"dialect": sql, "views": views}, ensure_ascii=False) if output == "json" else views)
