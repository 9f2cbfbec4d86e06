"""`assay fsck`."""

from __future__ import annotations

import click

from jobs.support.options import debug_option, output_option, warehouse_option
from schemas.printable import format_count


@click.command("fsck")
@warehouse_option
@output_option
@debug_option
def command(warehouse: str, output: str) -> None:
    """Check manifests against the files, sizes and schemas of their tables, and print what to do.

    Changes nothing. Exits with 0 if all is well, with 4 otherwise.

    \b
    assay fsck --warehouse build/demo/warehouse
    """
    import json
    from dataclasses import asdict

    from jobs.support.terminal import echo_line
    from pipelines.warehouse.fsck import check_warehouse
    from pipelines.warehouse.storage import Storage
    from schemas.errors import DataQualityError

    state = check_warehouse(Storage(warehouse))
    if output == "json":
        click.echo(json.dumps(asdict(state)))
    else:
        for problem in state.problems:
            echo_line(f"{problem.path}: {problem.problem}")
            echo_line(f"  {problem.advice}")
        for name in state.leftovers:
            echo_line(
                f"{name} belongs to no committed run: `assay vacuum` removes it, unless a process still writes it"
            )
        click.echo(f"{format_count(state.runs, 'run')} checked, {format_count(len(state.problems), 'problem')}")
    if state.problems:
        raise DataQualityError(f"the warehouse has {format_count(len(state.problems), 'problem')}", where=warehouse)
