"""`assay tables`."""

from __future__ import annotations

import click

from jobs.support.options import debug_option, output_option, warehouse_option


@click.command("tables")
@warehouse_option
@click.option("--sql", type=click.Choice(["spark", "duckdb"]), required=True, help="The SQL dialect.")
@output_option
@debug_option
def command(warehouse: str, sql: str, output: str) -> None:
    """Print SQL views of the published tables that show the live run of every date.

    \b
    assay tables --sql duckdb --warehouse build/demo/warehouse > views.sql
    """
    import json

    from pipelines.warehouse.storage import Storage
    from pipelines.warehouse.views import VIEWS

    views = VIEWS[sql](Storage(warehouse))
    click.echo(json.dumps({"dialect": sql, "views": views}, ensure_ascii=False) if output == "json" else views)
