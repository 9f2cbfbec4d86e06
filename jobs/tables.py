"""`assay tables`."""

from __future__ import annotations

import click

from jobs.support.options import debug_option, output_option, warehouse_option


@click.command("tables")
@warehouse_option
@click.option("--sql", type=click.Choice(["spark", "duckdb"]), help="Print views in this SQL dialect.")
@click.option("--python", "library", type=click.Choice(["pandas", "polars"]), help="Print functions for this library.")
@click.option("--namespace", help="With --sql spark: views of the Delta or Iceberg tables in this catalog and schema.")
@output_option
@debug_option
def command(warehouse: str, sql: str | None, library: str | None, namespace: str | None, output: str) -> None:
    """Print SQL views of the published tables that show the live run of every date, or Python functions that read it.

    The view `runs`, or the function `read_runs`, lists all runs with their configuration and gate.

    \b
    assay tables --sql duckdb --warehouse build/demo/warehouse > views.sql
    assay tables --python polars --warehouse build/demo/warehouse > tables.py
    """
    import json

    from pipelines.warehouse.storage import Storage
    from pipelines.warehouse.views import READERS, VIEWS, list_tables, render_catalog_views

    kind = sql or library
    if kind is None or (sql and library):
        raise click.UsageError("give either --sql or --python")
    if namespace is not None and kind != "spark":
        raise click.UsageError("--namespace needs --sql spark")
    storage = Storage(warehouse)
    if namespace is None:
        views = {**VIEWS, **READERS}[kind](storage)
    else:
        views = render_catalog_views(namespace, list_tables(storage))
    click.echo(json.dumps({"dialect": kind, "views": views}, ensure_ascii=False) if output == "json" else views)
