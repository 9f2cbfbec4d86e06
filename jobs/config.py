"""`assay config`."""

from __future__ import annotations

import click

from jobs.options import configured, debug, output


@click.command("config")
@configured
@output
@debug
def command(config: str, overrides: tuple[str, ...], output: str) -> None:
    """Print the resolved configuration and where each value came from.

    \b
    assay config --config conf/demo.yaml --set spark.master=local[2]
    """
    import json

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pipelines.configure import leaves, load

    loaded = load(config, overrides)
    values = loaded.config.published()
    if output == "json":
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    table = Table("key", "value", "from")
    for key, value in leaves(values):
        table.add_row(escape(key), escape(json.dumps(value, ensure_ascii=False)), escape(loaded.origin(key)))
    Console().print(table)
