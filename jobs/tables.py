"""`assay tables`."""

from __future__ import annotations

import click

from jobs.options import debug, warehouse


@click.command("tables")
@warehouse
@click.option("--sql", type=click.Choice(["spark", "duckdb"]), required=True, help="The dialect of the views.")
@debug
def command(warehouse: str, sql: str) -> None:
    """Print a view for each published table that shows the live run of every date.

    \b
    assay tables --sql duckdb --warehouse build/demo/warehouse > views.sql
    """
    from pipelines.storage import Storage
    from pipelines.views import VIEWS

    click.echo(VIEWS[sql](Storage(warehouse)))
