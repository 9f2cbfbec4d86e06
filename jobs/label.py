"""Make labels from a log and publish them alone: `assay label`, `spark-submit jobs/label.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file, Python looks for imports beside it rather than in the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

import click

from jobs.options import Date, configured, debug, log, output


@click.command("label")
@configured
@click.option("--date", required=True, type=Date(), help="The date whose log to label, e.g. 2026-11-01.")
@click.option("--force", is_flag=True, help="Do the work again even where it is already done.")
@output
@log
@debug
def command(config: str, overrides: tuple[str, ...], date: dt.date, force: bool, output: str, log: str) -> None:
    """Make labels from a log and publish them alone.

    \b
    assay label --config conf/logs.yaml --date 2026-01-11
    """
    from pipelines.configure import load

    loaded = load(config, overrides)  # before anything that starts a JVM
    from jobs.logs import watched
    from jobs.session import session
    from pipelines.evaluate import label
    from pipelines.quality.results import lines

    with watched(log) as shown, session(loaded.config.spark, f"assay label {date}") as spark:
        shown.spark = spark
        outcome = label(spark, loaded.config, date, force=force)
    manifest = outcome.manifest
    if output == "json":
        told = {"run": manifest.run, "found_done": outcome.found_done, "labels": manifest.tables["labels"].rows}
        click.echo(json.dumps(told | {"facts": manifest.labels}, default=str))
        return
    for line in [*account(manifest.labels), *lines(manifest.checks)]:
        click.echo(line)
    done = " was already done; --force makes a new one" if outcome.found_done else ""
    click.echo(f"Run {manifest.run}{done}: {manifest.tables['labels'].rows:,} labels in {loaded.config.warehouse}")


def account(facts: Mapping[str, Any]) -> list[str]:
    """What became of the log, line by line; nothing where no log was labelled."""
    from pipelines.agreed import agreement_lines

    if "read" not in facts:
        return []
    lines = [
        f"{kind}: {read:,} read, {facts['kept'].get(kind, 0):,} kept, {facts['dropped'].get(kind, 0):,} dropped"
        for kind, read in facts["read"].items()
    ]
    lines += [f"{'!' if verdict['warning'] else ' '} {verdict['sentence']}" for verdict in facts["verdicts"]]
    return lines + agreement_lines(facts["agreement"])


if __name__ == "__main__":
    from jobs.cli import invoke

    sys.exit(invoke(command))
