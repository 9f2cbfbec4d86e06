"""Build labels from a log and publish them without evaluating: `assay label`, `spark-submit jobs/label.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file, Python looks for imports beside it rather than in the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import datetime as dt
import json
from typing import TYPE_CHECKING

import click

from jobs.support.options import config_options, date_options, debug_option, log_option, output_option
from jobs.support.terminal import echo_line

if TYPE_CHECKING:
    from pipelines.plan import Outcome


@click.command("label")
@config_options
@date_options
@click.option("--force", is_flag=True, help="Run again even if the result is already published.")
@output_option
@log_option
@debug_option
def command(config: str, overrides: tuple[str, ...], dates: list[dt.date], force: bool, output: str, log: str) -> None:
    """Build labels from a log and publish them without evaluating anything.

    \b
    assay label --config conf/logs.yaml --date 2026-01-11
    assay label --config conf/logs.yaml --from 2026-01-11 --to 2026-01-12
    """
    from pipelines.config.load import load_config

    loaded = load_config(config, overrides)  # before anything that starts a JVM
    settings = loaded.config
    from jobs.support.backfill import Backfill, show_results
    from jobs.support.runner import DateRunner
    from pipelines.plan import define_labelling

    runner = DateRunner("label", loaded, define_labelling(settings), dates, force=force, log=log)
    if len(dates) == 1:
        with runner:
            outcome = runner.run(dates[0])
        _show(outcome, settings.warehouse, output)
        return
    backfill = Backfill(dates)
    try:
        with runner:
            backfill.run(runner.run, lambda _: None)
    finally:
        show_results(backfill, output)


def _show(outcome: Outcome, warehouse: str, output: str) -> None:
    from jobs.support.labelling import describe_labelling
    from pipelines.quality.results import format_results

    manifest = outcome.manifest
    if output == "json":
        summary = {"run": manifest.run, "found_done": outcome.reused, "labels": manifest.tables["labels"].rows}
        click.echo(json.dumps(summary | {"facts": manifest.labels}, default=str))
        return
    for line in [*describe_labelling(manifest.labels), *format_results(manifest.checks)]:
        echo_line(line)
    note = " was already published; --force runs again" if outcome.reused else ""
    click.echo(f"Run {manifest.run}{note}: {manifest.tables['labels'].rows:,} labels in {warehouse}")


if __name__ == "__main__":
    from jobs.cli import run_process

    run_process(command)
