"""`assay report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jobs.support.completion import RUN, SYSTEM
from jobs.support.options import debug_option, output_option, warehouse_option

if TYPE_CHECKING:
    from pipelines.warehouse.runs import Manifest
    from pipelines.warehouse.storage import Storage


@click.command("report")
@warehouse_option
@click.option("--run", "run", type=RUN, help="The run, by id or date; the newest if not given.")
@click.option("--compare", nargs=2, metavar="A B", type=RUN, help="Two runs against each other, by id or date.")
@click.option(
    "--system",
    type=SYSTEM,
    help="With --compare: the one system to compare; all that both runs have if not given.",
)
@click.option("--master", default="local[*]", show_default=True, help="With --compare: where Spark runs.")
@click.option(
    "--to", "target", type=click.Path(), metavar="FILE", help="Write to a local file instead of the warehouse."
)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@output_option
@debug_option
def command(
    warehouse: str,
    run: str | None,
    compare: tuple[str, str] | None,
    system: str | None,
    master: str,
    target: str | None,
    show: bool,
    output: str,
) -> None:
    """Write the HTML report of a run from its published tables.

    With --compare, Spark computes the same differences as `assay compare`; the report of one run needs no Spark.

    \b
    assay report --run 2026-11-01 --warehouse build/demo/warehouse --open
    assay report --compare 2026-11-01 2026-11-02 --warehouse build/demo/warehouse
    """
    import json

    from pipelines.report.render import render_report
    from pipelines.warehouse.damage import name_damage
    from pipelines.warehouse.runs import find_run, manifest_path, report_path
    from pipelines.warehouse.storage import Storage

    storage = Storage(warehouse)
    if compare is None:
        manifest = find_run(storage, run)
        with name_damage(f"run {manifest.run}", storage.path(manifest_path(manifest.dt, manifest.run))):
            name, page = report_path(manifest.dt, manifest.run), render_report(storage, manifest)
    else:
        before, after = (find_run(storage, name, having="query_metrics") for name in compare)
        name = report_path(after.dt, f"{after.run}-against-{before.run}")
        page = _compare(storage, (before, after), system, master)
    place = storage.path(name) if target is None else target
    if target is None:
        storage.put(name, page)
    else:
        write_page(page, target)
    if output == "json":
        click.echo(json.dumps({"report": place, "bytes": len(page.encode())}))
    else:
        click.echo(f"{place} ({len(page.encode()) / 1e6:.1f} MB)")
    if show:
        click.launch(place)


def _compare(storage: Storage, runs: tuple[Manifest, Manifest], system: str | None, master: str) -> str:
    from pipelines.report.two_runs import find_common_systems, render_two_run_report

    find_common_systems(runs, system)  # before anything that starts a JVM
    from jobs.support.session import open_session
    from pipelines.config.spark import SparkSettings

    with open_session(SparkSettings(master=master), "assay report") as spark:
        return render_two_run_report(spark, storage, runs, system)


def write_page(page: str, target: str) -> None:
    """Write a page to a local file."""
    from pathlib import Path

    from schemas.errors import PublishError

    try:
        Path(target).write_text(page, encoding="utf-8")
    except OSError as error:
        raise PublishError(f"cannot write the report: {error.strerror}", where=target) from None
