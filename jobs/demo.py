"""The demo: simulate a week of search logs, evaluate systems with them, and compare the result with the truth.

    python -m jobs.demo build/demo

Everything runs in one process, so that Java starts once.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pandas as pd

from jobs.cli import assay, invoke
from jobs.support.session import list_imports, open_session
from jobs.support.truth import TruthComparison, compare_with_truth
from pipelines.config.load import load_config
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import keep_in_memory
from pipelines.warehouse.code_version import hash_sources
from pipelines.warehouse.concurrent import run_concurrently
from pipelines.warehouse.runs import find_run
from pipelines.warehouse.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONFIG, DATE = "conf/demo.yaml", "2026-11-01"
# One system serves most of the traffic, one a little, and two serve none: one better, one worse.
LOG = SimulationSettings(
    seed=1,
    pages=30_000,
    queries=200,
    zipf=0.7,
    start="2026-10-26",
    qualities={"bm25": 0.5, "hybrid": 0.7, "neural": 0.81, "pruned": 0.345},
    traffic={"bm25": 0.85, "hybrid": 0.15},
)
TABLES = ("impressions", "interactions", "rankings", "queries", "truth_grades")


def run_demo(folder: Path) -> int:
    """Simulate, evaluate, compare with the truth; returns the exit code of the evaluation."""
    provide_logs(folder / "logs")
    click.echo("Building labels from them and evaluating four systems: assay evaluate")
    code = invoke(assay, ["evaluate", "--config", CONFIG, "--date", DATE])
    if code == 0:
        show_truth(compare_demo(folder / "logs"))
    return code


def provide_logs(folder: Path) -> None:
    """Write the simulated log, unless a former call has written the same one."""
    origin = json.dumps({"settings": LOG.model_dump(mode="json"), "code": hash_sources(files("pipelines.simulation"))})
    note, size = folder / "origin.json", f"{LOG.pages:,} results pages for {LOG.queries:,} queries"
    if note.exists() and note.read_text("utf-8") == origin:
        click.echo(f"The simulated week of logs is in {folder} already: {size}")
        return
    click.echo(f"Simulating a week of logs: {size} …")
    note.unlink(missing_ok=True)
    write_logs(folder)
    note.write_text(origin, encoding="utf-8")


def write_logs(folder: Path) -> None:
    """Write the simulated log, and its truth beside it."""
    config = load_config(CONFIG).config
    # Java starts once, here, and the evaluation that follows reads little data.
    imports = list_imports("pipelines.evaluate", config)
    with open_session(config.spark, "assay demo", input_bytes=0, imports=imports) as spark:
        log = simulate(spark, LOG, keep=keep_in_memory)
        run_concurrently([partial(_write_table, getattr(log, name), folder / name) for name in TABLES])


def _write_table(table: DataFrame, path: Path) -> None:
    table.write.mode("overwrite").parquet(str(path))


def compare_demo(folder: Path) -> TruthComparison:
    """The result of the newest demo run beside the truth."""
    storage = Storage(load_config(CONFIG).config.warehouse)
    tables = find_run(storage, DATE).tables
    labels, comparisons = (
        storage.dataset(tables[name].path).to_table().to_pandas() for name in ("labels", "comparisons")
    )
    rankings, truth = (pd.read_parquet(folder / name) for name in ("rankings", "truth_grades"))
    return compare_with_truth(rankings, truth, labels, comparisons)


def show_truth(comparison: TruthComparison) -> None:
    """Print the comparison with the truth as a table and in words."""
    from rich.markup import escape
    from rich.table import Table

    from jobs.support.terminal import open_console

    baseline = "bm25"
    console = open_console(wide=True)
    table = Table(title=f"NDCG@10 against {baseline}", title_justify="left")
    table.add_column("system")
    for name in ("true", "Assay", "95 % CI", "contains the truth", "queries", "click rates"):
        table.add_column(name, justify="right")
    for system, row in comparison.gaps.iterrows():
        interval = f"[{row['low']:+.3f}, {row['high']:+.3f}]"
        covers = "yes" if comparison.covers[str(system)] else "no"
        gaps = {name: f"{row[name]:+.3f}" for name in ("true", "assay", "clicks")}
        queries = f"{row['queries']:,.0f} of {comparison.queries:,}"
        table.add_row(str(system), gaps["true"], gaps["assay"], escape(interval), covers, queries, gaps["clicks"])
    console.print(
        "True differences, which only a simulation has, and those estimated by Assay and by plain click rates:"
    )
    console.print(table)
    best = {name: comparison.best(name, baseline) for name in ("true", "assay", "clicks")}
    errors, correlations = comparison.errors, comparison.correlations
    for line in (
        f"{comparison.covers.sum()} of {len(comparison.covers)} intervals contain the true difference.",
        f"The best system is {best['true']}. Assay names {best['assay']}, click rates name {best['clicks']}.",
        f"Assay is off by {errors['assay']:.3f} on average, click rates by {errors['clicks']:.3f}.",
        f"Rank correlation with the true grade over {comparison.pairs:,} judged pairs: "
        f"{correlations['labels']:.3f} for Assay's labels, {correlations['clicks']:.3f} for click rates.",
    ):
        console.print(line, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(run_demo(Path(sys.argv[1])))
