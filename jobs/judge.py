"""Draw queries to judge, or measure how far two judges agree: `assay judge`."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.support.completion import METRIC, RUN, SYSTEM
from jobs.support.options import WAREHOUSE_HELP, Date, debug_option, find_warehouse, output_option

if TYPE_CHECKING:
    from pipelines.comparison.judging.select import SamplePlan
    from pipelines.warehouse.runs import Manifest
    from pipelines.warehouse.storage import Storage


@click.command("judge")
@click.option("--config", type=click.Path(), metavar="FILE", help="The configuration that names the warehouse.")
@click.option("--date", type=Date(), help="The date of the run.")
@click.option("--warehouse", metavar="PLACE", help=WAREHOUSE_HELP)
@click.option("--run", type=RUN, help="The run, by id or date (default: the newest).")
@click.option("--candidate", type=SYSTEM, help="The system to decide on.")
@click.option("--baseline", type=SYSTEM, help="The system it is compared with (default: that of the run).")
@click.option("--queries", type=click.IntRange(min=1), default=100, show_default=True, help="How many queries to draw.")
@click.option("--metric", type=METRIC, help="The metric to decide by (default: the first of the run).")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the draw; another seed draws other queries.",
)
@click.option(
    "--to", "target", type=click.Path(path_type=Path), metavar="FILE", help="The sheet to write, .csv or .jsonl."
)
@click.option(
    "--agree",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="SHEET SHEET",
    help="Compare two graded sheets instead of drawing one.",
)
@output_option
@debug_option
def command(
    config: str | None,
    date: dt.date | None,
    warehouse: str | None,
    run: str | None,
    candidate: str | None,
    baseline: str | None,
    queries: int,
    metric: str | None,
    seed: int,
    target: Path | None,
    agree: tuple[Path, Path] | None,
    output: str,
) -> None:
    """Draw queries whose results people should judge, or compare two judges.

    \b
    assay judge --warehouse build/demo/warehouse --candidate neural --queries 100 --to sheet.csv
    assay judge --agree anna.csv ben.csv
    """
    if agree is not None:
        show_agreement(*agree, as_json=output == "json")
        return
    if candidate is None or target is None:
        raise click.UsageError("drawing queries needs --candidate and --to; --agree compares two sheets")
    from pipelines.comparison.judging.sheet import require_sheet_path, write_sheet

    require_sheet_path(target)
    storage, manifest = find_judged_run(config, date, warehouse, run)
    sample = draw_sample(storage, manifest, candidate, baseline, metric, queries, seed)
    from jobs.support.session import open_session
    from pipelines.comparison.judging.select import build_sheet
    from pipelines.config.load import load_run_config
    from pipelines.config.spark import SparkSettings

    with open_session(SparkSettings(), "assay judge") as spark:
        rows = list(build_sheet(spark, manifest, load_run_config(manifest), sample, seed))
    write_sheet(target, rows)
    show_sample(sample, len(rows), target, manifest, as_json=output == "json")


def find_judged_run(
    config: str | None, date: dt.date | None, warehouse: str | None, run: str | None
) -> tuple[Storage, Manifest]:
    """The run to draw from, by its configuration and date or by its warehouse; its lists must be readable again."""
    from pipelines.scoring.read_again import require_rankings
    from pipelines.warehouse.runs import find_run
    from pipelines.warehouse.storage import Storage

    storage = Storage(find_warehouse(warehouse, config))
    manifest = find_run(storage, run or (None if date is None else date.isoformat()), having="comparisons")
    require_rankings(manifest, "judged")
    return storage, manifest


def draw_sample(
    storage: Storage,
    manifest: Manifest,
    candidate: str,
    baseline: str | None,
    metric: str | None,
    queries: int,
    seed: int,
) -> SamplePlan:
    """Draw the queries, without Spark."""
    from pipelines.comparison.answers import read_confidence
    from pipelines.comparison.judging.select import plan_sample
    from pipelines.warehouse.tables import RunTables
    from schemas.errors import InputError
    from udfs.registry import parse_metric

    against = baseline or manifest.config["compare"]["baseline"]
    if against is None:
        raise InputError(f"run {manifest.run} has no baseline", where="--baseline", hint="name the other system")
    spec = parse_metric(metric or next(iter(manifest.config["metrics"])))
    return plan_sample(
        RunTables(storage, manifest),
        spec,
        baseline=against,
        candidate=candidate,
        queries=queries,
        seed=seed,
        confidence=read_confidence(manifest),
    )


def show_sample(sample: SamplePlan, rows: int, target: Path, manifest: Manifest, *, as_json: bool) -> None:
    """Print what was drawn, and the width to expect beside the present one."""
    from jobs.support.terminal import echo_line

    low, high = sample.present
    if as_json:
        facts = {
            "run": manifest.run,
            "sheet": str(target),
            "queries": len(sample.chances),
            "rows": rows,
            "delta_low": low,
            "delta_high": high,
            "width": high - low,
            "expected_width": sample.expected_width,
        }
        click.echo(json.dumps(facts))
        return
    click.echo(f"{len(sample.chances):,} of {sample.queries:,} queries, {rows:,} documents to grade: {target}")
    echo_line(
        f"{sample.spec.name}, {sample.candidate} − {sample.baseline}: the interval is {high - low:.3f} wide now "
        f"[{low:+.4f}, {high:+.4f}], and about {sample.expected_width:.3f} with these queries judged"
    )
    click.echo("Fill in the column grade, then evaluate with the sheet as inputs.judgments")


def show_agreement(one: Path, two: Path, *, as_json: bool) -> None:
    """Print how far two judges agree on the pairs that both graded."""
    from dataclasses import asdict

    from pipelines.comparison.judging.kappa import measure_kappa
    from pipelines.comparison.judging.sheet import read_grades
    from schemas.errors import InputError

    agreement = measure_kappa(read_grades(one), read_grades(two))
    if agreement is None:
        raise InputError("no pair of query and document is graded in both sheets", where=f"{one}, {two}")
    if as_json:
        facts = {name: None if math.isnan(value) else value for name, value in asdict(agreement).items()}
        click.echo(json.dumps(facts))
        return
    kappa = "undefined" if math.isnan(agreement.kappa) else f"{agreement.kappa:.3f}"
    bounds = "unknown" if math.isnan(agreement.low) else f"[{agreement.low:.3f}, {agreement.high:.3f}]"
    click.echo(
        f"weighted κ {kappa}, 95 % interval {bounds}: {agreement.pairs:,} pairs of {agreement.queries:,} queries "
        f"graded by both, {agreement.equal:.0%} equal"
    )
