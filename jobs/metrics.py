"""`assay metrics`."""

from __future__ import annotations

import click

from jobs.options import debug, output


@click.command("metrics")
@click.argument("name", required=False)
@output
@debug
def command(name: str | None, output: str) -> None:
    """List the metrics, or explain one.

    \b
    assay metrics
    assay metrics ndcg
    """
    import json

    from udfs.describe import metric_explained, metric_list, metrics_told

    if output == "json":
        click.echo(json.dumps(metrics_told(name), ensure_ascii=False))
        return
    click.echo(metric_list() if name is None else metric_explained(name))
