"""`assay report`."""

from __future__ import annotations

import click

from jobs.options import debug, output, warehouse


@click.command("report")
@warehouse
@click.option("--run", "run", help="The run, by id or date; the newest where not given.")
@click.option("--compare", nargs=2, metavar="A B", help="Two runs against each other, by id or date.")
@click.option("--system", help="With --compare: the one system to compare; all that both runs have where not given.")
@click.option("--to", "target", metavar="FILE", help="Write it to a file of this machine instead of the warehouse.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@output
@debug
def command(
    warehouse: str,
    run: str | None,
    compare: tuple[str, str] | None,
    system: str | None,
    target: str | None,
    show: bool,
    output: str,
) -> None:
    """Write the HTML report of a run from its published tables alone; Spark is not needed.

    \b
    assay report --run 2026-11-01 --warehouse build/demo/warehouse --open
    assay report --compare 2026-11-01 2026-11-02 --warehouse build/demo/warehouse
    """
    import json

    from pipelines.report import report_of, report_of_two
    from pipelines.runs import find_run, report_name
    from pipelines.storage import Storage

    storage = Storage(warehouse)
    if compare is None:
        manifest = find_run(storage, run)
        name, page = report_name(manifest.dt, manifest.run), report_of(storage, manifest)
    else:
        first, second = (find_run(storage, name, having="query_metrics") for name in compare)
        name = report_name(second.dt, f"{second.run}-against-{first.run}")
        page = report_of_two(storage, first, second, system)
    place = storage.path(name) if target is None else target
    if target is None:
        storage.put(name, page)
    else:
        put(page, target)
    if output == "json":
        click.echo(json.dumps({"report": place, "bytes": len(page.encode())}))
    else:
        click.echo(f"{place} ({len(page.encode()) / 1e6:.1f} MB)")
    if show:
        click.launch(place)


def put(page: str, target: str) -> None:
    """Write a page to a file of this machine."""
    from pathlib import Path

    from schemas.errors import PublishError

    try:
        Path(target).write_text(page, encoding="utf-8")
    except OSError as error:
        raise PublishError(f"cannot write the report: {error.strerror}", where=target) from None
