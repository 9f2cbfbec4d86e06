"""`assay metrics`."""

from __future__ import annotations

import click

from jobs.support.completion import METRIC
from jobs.support.options import debug_option, output_option


@click.command("metrics")
@click.argument("name", required=False, type=METRIC)
@output_option
@debug_option
def command(name: str | None, output: str) -> None:
    """List the metrics, or explain one.

    \b
    assay metrics
    assay metrics ndcg
    """
    import json

    from udfs.describe import describe_metrics, render_metric, render_metric_list

    if output == "json":
        click.echo(json.dumps(describe_metrics(name), ensure_ascii=False))
        return
    click.echo(render_metric_list() if name is None else render_metric(name))
