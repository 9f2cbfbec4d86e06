"""Check the data of a date without evaluating it: `assay check`, `spark-submit jobs/check.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file, Python looks for imports beside it rather than in the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import datetime as dt
import json

import click

from jobs.options import Date, configured, debug


@click.command("check")
@configured
@click.option("--date", required=True, type=Date(), help="The date whose data to check, e.g. 2026-11-01.")
@click.option("--docs", metavar="FOLDER", help="Write the result as Data Docs of Great Expectations to this folder.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="What to print at the end.")
@debug
def command(config: str, overrides: tuple[str, ...], date: dt.date, docs: str | None, output: str) -> None:
    """Check the inputs of a date, for a sensor that stands before the job; nothing is published.

    Finishes with 0 where an evaluation would go on, with 4 where it would refuse the data.

    \b
    assay check --config conf/demo.yaml --date 2026-11-01
    """
    from pipelines.configure import load

    loaded = load(config, overrides)  # before anything that starts a JVM
    from jobs.session import session
    from pipelines.evaluate import look
    from pipelines.quality.results import lines, refusal
    from pipelines.storage import Storage

    with session(loaded.config.spark, f"assay check {date}") as spark:
        inspection = look(spark, loaded.config, date)
    if docs is not None:
        for name, content in inspection.pages(f"{date}, checked alone"):
            Storage(docs).put(name, content)
    found = inspection.facts()
    error = refusal(inspection.results, f"the data of {date}")
    if output == "json":
        click.echo(json.dumps(found, default=str))
    elif error is None:
        click.echo("\n".join(lines(found)))
    if error is not None:
        raise error  # which tells the same lines


if __name__ == "__main__":
    from jobs.cli import invoke

    sys.exit(invoke(command))
