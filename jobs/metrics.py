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
    from udfs.registry import metrics, parse

    if name is None:
        for found in metrics().values():
            click.echo(f"{found.name:24} {found.summary}")
        return
    found = parse(name).metric
    click.echo(f"{found.name}\n\n{found.summary}\n\n{found.explanation}")
