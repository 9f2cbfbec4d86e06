"""`assay vacuum`."""

from __future__ import annotations

import json

import click

from jobs.options import debug, output, warehouse


@click.command("vacuum")
@warehouse
@click.option("--keep", required=True, type=click.IntRange(min=1), help="How many runs of each date to keep.")
@click.option(
    "--orphan-hours",
    default=24.0,
    type=click.FloatRange(min=0),
    show_default=True,
    help="Age after which files that no run refers to are rubbish; a run that is still writing has such files.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@output
@debug
def command(warehouse: str, keep: int, orphan_hours: float, dry_run: bool, output: str) -> None:
    """Remove runs that newer ones of the same date have replaced.

    \b
    assay vacuum --keep 3 --dry-run --warehouse build/demo/warehouse
    """
    from pipelines.storage import Storage
    from pipelines.vacuum import find, remove

    storage = Storage(warehouse)
    rubbish = find(storage, keep=keep, hours=orphan_hours)
    if not dry_run:
        remove(storage, rubbish)
    if output == "json":
        runs = [manifest.run for manifest in rubbish.runs]
        click.echo(json.dumps({"runs": runs, "unreferenced": rubbish.orphans, "removed": not dry_run}))
        return
    for manifest in rubbish.runs:
        click.echo(f"run {manifest.run} of {manifest.dt}")
    for folder in rubbish.orphans:
        click.echo(f"unreferenced {folder}")
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{len(rubbish.runs)} runs and {len(rubbish.orphans)} unreferenced folders {done}")
