"""The demo: draw a week of search logs, evaluate systems by them, and hold the answer against the truth.

    python -m jobs.demo build/demo

Everything is done in one process, so that Java starts once.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pandas as pd

from jobs.cli import assay, invoke
from jobs.session import session
from jobs.truth import Beside, beside_truth
from pipelines.configure import load
from pipelines.runs import find_run
from pipelines.simulate import simulate
from pipelines.simulation.config import SimulationConfig
from pipelines.storage import Storage

CONFIG, DATE = "conf/demo.yaml", "2026-11-01"
# One system serves most of the traffic, one a little, and two were never shown: one is better, one is worse.
LOG = SimulationConfig(
    seed=1,
    pages=30_000,
    queries=200,
    zipf=0.7,
    start="2026-10-26",
    qualities={"bm25": 0.5, "hybrid": 0.7, "neural": 0.81, "pruned": 0.345},
    traffic={"bm25": 0.85, "hybrid": 0.15},
)
TABLES = ("impressions", "interactions", "rankings", "queries", "truth_grades")


def main(folder: Path) -> int:
    """Draw, evaluate, compare with the truth; the exit code is that of the evaluation."""
    click.echo(f"Drawing a week of logs: {LOG.pages:,} pages of results for {LOG.queries:,} queries …")
    draw(folder / "logs")
    click.echo("Making labels from them and evaluating four systems: assay evaluate")
    code = invoke(assay, ["evaluate", "--config", CONFIG, "--date", DATE])
    if code == 0:
        show(compare(folder / "logs"))
    return code


def draw(folder: Path) -> None:
    """Write the log, and beside it the truth that only a simulator knows."""
    with session(load(CONFIG).config.spark, "assay demo") as spark:
        log = simulate(spark, LOG)
        for name in TABLES:
            getattr(log, name).write.mode("overwrite").parquet(str(folder / name))


def compare(folder: Path) -> Beside:
    """What the newest run of the demo says, beside the truth."""
    storage = Storage(load(CONFIG).config.warehouse)
    tables = find_run(storage, DATE).tables
    labels, comparisons = (
        storage.dataset(tables[name].path).to_table().to_pandas() for name in ("labels", "comparisons")
    )
    rankings, truth = (pd.read_parquet(folder / name) for name in ("rankings", "truth_grades"))
    return beside_truth(rankings, truth, labels, comparisons)


def show(found: Beside) -> None:
    """The table, and what it says."""
    from rich.console import Console
    from rich.table import Table

    baseline = "bm25"
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    table = Table(title=f"NDCG@10 against {baseline}", title_justify="left")
    table.add_column("system")
    for name in ("true", "Assay", "click rates"):
        table.add_column(name, justify="right")
    for system, row in found.gaps.iterrows():
        table.add_row(str(system), *[f"{row[name]:+.3f}" for name in ("true", "assay", "clicks")])
    console.print("The truth, which only a simulator knows, beside what Assay and plain click rates say:")
    console.print(table)
    best = {name: found.best(name, baseline) for name in ("true", "assay", "clicks")}
    off, followed = found.errors, found.correlations
    for line in (
        f"The best system is {best['true']}. Assay names {best['assay']}, click rates name {best['clicks']}.",
        f"Assay is off by {off['assay']:.3f} on average, click rates by {off['clicks']:.3f}.",
        f"Rank correlation with the true grade over {found.pairs:,} judged pairs: {followed['labels']:.3f} for Assay's "
        f"labels, {followed['clicks']:.3f} for click rates.",
    ):
        console.print(line, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
