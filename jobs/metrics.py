"""`assay metrics`."""

from __future__ import annotations

import click

from jobs.options import debug


@click.command("metrics")
@click.argument("name", required=False)
@debug
def command(name: str | None) -> None:
    """List the metrics, or explain one.

    \b
    assay metrics
    assay metrics ndcg
    """
    from udfs.describe import metric_explained, metric_list

    click.echo(metric_list() if name is None else metric_explained(name))
