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

from jobs.support.options import Date, config_options, debug_option, log_option, output_option

if TYPE_CHECKING:
    from pipelines.config.model import Config
    from pipelines.plan import LocalInputs, Outcome


@click.command("label")
@config_options
@click.option("--date", required=True, type=Date(), help="The date of the log, e.g. 2026-11-01.")
@click.option("--force", is_flag=True, help="Run again even if the result is already published.")
@output_option
@log_option
@debug_option
def command(config: str, overrides: tuple[str, ...], date: dt.date, force: bool, output: str, log: str) -> None:
    """Build labels from a log and publish them without evaluating anything.

    \b
    assay label --config conf/logs.yaml --date 2026-01-11
    """
    from pipelines.config.load import load_config

    loaded = load_config(config, overrides)  # before anything that starts a JVM
    from jobs.support.labelling import describe_labelling
    from pipelines.plan import define_labelling, look_ahead
    from pipelines.quality.results import format_results

    local = look_ahead(define_labelling(loaded.config), date)
    outcome = None if force or local is None else local.committed
    if outcome is None:
        with loaded.locate_errors():
            outcome = _label(loaded.config, date, local, force=force, log=log)
    manifest = outcome.manifest
    if output == "json":
        summary = {"run": manifest.run, "found_done": outcome.reused, "labels": manifest.tables["labels"].rows}
        click.echo(json.dumps(summary | {"facts": manifest.labels}, default=str))
        return
    for line in [*describe_labelling(manifest.labels), *format_results(manifest.checks)]:
        click.echo(line)
    note = " was already published; --force runs again" if outcome.reused else ""
    click.echo(f"Run {manifest.run}{note}: {manifest.tables['labels'].rows:,} labels in {loaded.config.warehouse}")


def _label(config: Config, date: dt.date, local: LocalInputs | None, *, force: bool, log: str) -> Outcome:
    """Start Spark and label; the pipeline is imported while Java starts."""
    from jobs.support.logs import show_progress
    from jobs.support.session import list_imports, open_session
    from jobs.support.workload import log_workload

    size = None if local is None else local.bytes
    with (
        show_progress(log) as shown,
        open_session(
            config.spark, f"assay label {date}", input_bytes=size, imports=list_imports("pipelines.label", config)
        ) as spark,
    ):
        from pipelines.label import label

        shown.attach(spark)
        outcome = label(spark, config, date, force=force, listings=None if local is None else local.listings)
        log_workload(spark)
        return outcome


if __name__ == "__main__":
    from jobs.cli import invoke

    sys.exit(invoke(command))
