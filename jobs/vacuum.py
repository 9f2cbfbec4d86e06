"""`assay vacuum`."""

from __future__ import annotations

import json

import click

from jobs.support.options import FiniteNumber, debug_option, output_option, warehouse_option
from schemas.printable import format_count


@click.command("vacuum")
@warehouse_option
@click.option("--keep", required=True, type=click.IntRange(min=1), help="Number of runs of each date to keep.")
@click.option(
    "--orphan-hours",
    default=24.0,
    type=FiniteNumber(min=0),
    show_default=True,
    help="Minimum age of files to remove that no run refers to, where it is not known whether their process has ended.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed without removing it.")
@output_option
@debug_option
def command(warehouse: str, keep: int, orphan_hours: float, dry_run: bool, output: str) -> None:
    """Remove runs that newer runs of the same date replace, and what processes that were killed left.

    \b
    assay vacuum --keep 3 --dry-run --warehouse build/demo/warehouse
    """
    from jobs.support.terminal import echo_line
    from pipelines.warehouse.owner import remove_abandoned_folders
    from pipelines.warehouse.storage import Storage
    from pipelines.warehouse.vacuum import find_removable, remove_runs

    storage = Storage(warehouse)
    removable = find_removable(storage, keep=keep, hours=orphan_hours)
    if not dry_run:
        remove_runs(storage, removable)
        remove_abandoned_folders()
    if output == "json":
        runs = [manifest.run for manifest in removable.runs]
        click.echo(json.dumps({"runs": runs, "unreferenced": removable.orphans, "removed": not dry_run}))
        return
    for manifest in removable.runs:
        echo_line(f"run {manifest.run} of {manifest.dt}")
    for folder in removable.orphans:
        echo_line(f"unreferenced {folder}")
    status = "would be removed" if dry_run else "removed"
    replaced = format_count(len(removable.runs), "run")
    click.echo(f"{replaced} and {len(removable.orphans)} unreferenced files and folders {status}")
