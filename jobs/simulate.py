"""Simulate a search log with known truth: `assay simulate`, `python jobs/simulate.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file, Python looks for imports beside it rather than in the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import json

import click

from jobs.support.options import debug_option, output_option

TABLES = ("impressions", "interactions", "rankings", "queries", "truth_grades", "truth_propensities", "truth_dirt")


@click.command("simulate")
@click.option("--to", "folder", required=True, metavar="FOLDER", help="Where to write one Parquet folder per table.")
@click.option("--pages", type=int, help="Results pages of people, without noise.")
@click.option("--seed", type=int, help="Seed; the same seed gives the same log.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Any other setting, e.g. trust=0.3.")
@click.option("--master", help="Spark master; local[*] by default.")
@output_option
@debug_option
def command(
    folder: str, pages: int | None, seed: int | None, overrides: tuple[str, ...], master: str | None, output: str
) -> None:
    """Simulate a search log, and write the truth beside it.

    \b
    assay simulate --to build/logs --pages 40000 --seed 1
    """
    from jobs.support.session import open_session
    from pipelines.config.spark import SparkSettings
    from pipelines.simulation.settings import build_simulation_settings
    from pipelines.simulation.simulate import simulate

    config = build_simulation_settings({"pages": pages, "seed": seed}, overrides)
    rows: dict[str, int] = {}
    with open_session(SparkSettings(master=master), "assay simulate") as spark:
        log = simulate(spark, config)
        for name in TABLES:
            table = getattr(log, name)
            table.write.mode("overwrite").parquet(f"{folder}/{name}")
            rows[f"{folder}/{name}"] = spark.read.parquet(f"{folder}/{name}").count()
            if output == "table":
                click.echo(f"{folder}/{name}: {rows[f'{folder}/{name}']:,} rows")
    if output == "json":
        click.echo(json.dumps({"rows": rows}))


if __name__ == "__main__":
    from jobs.cli import run_process

    run_process(command)
