"""`assay config`."""

from __future__ import annotations

import click

from jobs.support.options import config_options, debug_option, output_option


@click.command("config")
@config_options
@output_option
@debug_option
def command(config: str, overrides: tuple[str, ...], output: str) -> None:
    """Print the resolved configuration and the origin of each value.

    \b
    assay config --config conf/demo.yaml --set spark.master=local[2]
    """
    import json

    from rich.markup import escape
    from rich.table import Column, Table

    from jobs.support.terminal import open_console
    from pipelines.config.load import flatten, load_config

    loaded = load_config(config, overrides)
    values = loaded.config.dump_redacted()
    if output == "json":
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    table = Table(*(Column(heading, overflow="fold") for heading in ("key", "value", "from")))
    for key, value in flatten(values):
        table.add_row(escape(key), escape(json.dumps(value, ensure_ascii=False)), escape(loaded.origin(key)))
    open_console(wide=True).print(table)
