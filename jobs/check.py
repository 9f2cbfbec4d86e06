"""Check the data of a date without evaluating it: `assay check`, `spark-submit jobs/check.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file, Python looks for imports beside it rather than in the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import datetime as dt
import json

import click

from jobs.support.options import Date, config_options, debug_option
from jobs.support.terminal import echo_line


@click.command("check")
@config_options
@click.option("--date", required=True, type=Date(), help="The date whose data to check, e.g. 2026-11-01.")
@click.option("--docs", metavar="FOLDER", help="Write the results as Data Docs of Great Expectations to this folder.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="What to print at the end.")
@debug_option
def command(config: str, overrides: tuple[str, ...], date: dt.date, docs: str | None, output: str) -> None:
    """Check the inputs of a date without publishing anything, e.g. in a sensor before the job.

    Exits with 0 if an evaluation would continue, with 4 if it would refuse the data.

    \b
    assay check --config conf/demo.yaml --date 2026-11-01
    """
    from pipelines.config.load import load_config

    loaded = load_config(config, overrides)  # before anything that starts a JVM
    from pipelines.plan import list_inputs

    with loaded.locate_errors():
        listings = list_inputs(loaded.config, date)
    size = None if listings is None else sum(listing.bytes for listing in listings.values())
    from jobs.support.session import open_session
    from pipelines.quality.results import build_refusal, format_results
    from pipelines.run import inspect_inputs
    from pipelines.warehouse.storage import Storage

    session = open_session(loaded.config.spark, f"assay check {date}", input_bytes=size)
    with session as spark, loaded.locate_errors():
        inspection = inspect_inputs(spark, loaded.config, date, listings)
    if docs is not None:
        for name, content in inspection.render_pages(f"{date}, checks only"):
            Storage(docs).put(name, content)
    summary = inspection.summarise()
    error = build_refusal(inspection.results, f"the data of {date}")
    if output == "json":
        click.echo(json.dumps(summary, default=str))
    elif error is None:
        for line in format_results(summary):
            echo_line(line)
    if error is not None:
        raise error  # its details are the same lines


if __name__ == "__main__":
    from jobs.cli import run_process

    run_process(command)
