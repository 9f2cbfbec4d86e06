"""Draw a search log whose truth is known: `assay simulate`, `python jobs/simulate.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file, Python looks for imports beside it rather than in the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import json

import click

from jobs.options import debug, output

TABLES = ("impressions", "interactions", "rankings", "queries", "truth_grades", "truth_propensities", "truth_dirt")


@click.command("simulate")
@click.option("--to", "folder", required=True, metavar="FOLDER", help="Where to write one folder of Parquet per table.")
@click.option("--pages", type=int, help="Clean results pages.")
@click.option("--seed", type=int, help="The same seed gives the same log.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Any other setting, e.g. trust=0.3.")
@click.option("--master", help="Where to run; local[*] where nothing else says so.")
@output
@debug
def command(
    folder: str, pages: int | None, seed: int | None, overrides: tuple[str, ...], master: str | None, output: str
) -> None:
    """Draw a search log whose truth is known, and write the truth beside it.

    \b
    assay simulate --to build/logs --pages 40000 --seed 1
    """
    from jobs.session import session
    from pipelines.config import Spark
    from pipelines.simulate import simulate
    from pipelines.simulation.config import simulation_from

    config = simulation_from({"pages": pages, "seed": seed}, overrides)
    rows: dict[str, int] = {}
    with session(Spark(master=master), "assay simulate") as spark:
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
    from jobs.cli import invoke

    sys.exit(invoke(command))
