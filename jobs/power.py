"""`assay power`."""

from __future__ import annotations

import json

import click

from jobs.support.completion import METRIC, RUN, SYSTEM
from jobs.support.options import FiniteNumber, debug_option, find_warehouse, output_option
from jobs.support.terminal import echo_line


@click.command("power")
@click.option("--delta", required=True, type=FiniteNumber(min=0, min_open=True), help="The difference to detect.")
@click.option(
    "--stddev",
    type=FiniteNumber(min=0),
    help="Standard deviation of the differences by query.",
)
@click.option("--warehouse", metavar="PLACE", help="Take the standard deviation from a run published here.")
@click.option("--config", "config_file", type=click.Path(), metavar="FILE", help="Or in the warehouse that it names.")
@click.option("--run", "run", type=RUN, help="The run, by id or date; the newest by default.")
@click.option("--metric", type=METRIC, help="The metric, e.g. ndcg@10.")
@click.option("--candidate", type=SYSTEM, help="The candidate of the comparison, where the run has several.")
@click.option(
    "--power", "power", default=0.8, show_default=True, type=FiniteNumber(0.05, 0.999), help="Power of the test."
)
@click.option("--alpha", default=0.05, show_default=True, type=FiniteNumber(1e-6, 0.5), help="Level of the test.")
@output_option
@debug_option
def command(
    delta: float,
    stddev: float | None,
    warehouse: str | None,
    config_file: str | None,
    run: str | None,
    metric: str | None,
    candidate: str | None,
    power: float,
    alpha: float,
    output: str,
) -> None:
    """Compute how many queries a paired test needs to detect a difference.

    \b
    assay power --delta 0.01 --stddev 0.25
    assay power --delta 0.01 --metric ndcg@10 --warehouse build/demo/warehouse
    """
    from schemas.errors import ConfigurationError
    from udfs.statistics.power import compute_power, queries_needed

    queries, source = None, ""
    if stddev is None:
        if metric is None:
            raise ConfigurationError(
                "the standard deviation of the differences is missing",
                hint="give --stddev, or --metric and the warehouse of a run",
            )
        stddev, queries, source = read_spread(find_warehouse(warehouse, config_file), run, metric, candidate)
    needed = queries_needed(stddev, delta, power, alpha)
    if output == "json":
        reached = None if queries is None else compute_power(stddev, delta, queries, alpha)
        result = {"needed": needed, "stddev": stddev, "from": source, "queries": queries, "power": reached}
        click.echo(json.dumps(result))
        return
    if source:
        echo_line(source)
    click.echo(
        f"{needed:,} queries detect a true difference of {delta:g} in {power:.0%} of cases "
        f"(standard deviation {stddev:.4f})."
    )
    if queries is not None:
        click.echo(
            f"The {queries:,} queries of that run detect it in {compute_power(stddev, delta, queries, alpha):.0%}."
        )


def read_spread(warehouse: str, run: str | None, metric: str, candidate: str | None) -> tuple[float, int, str]:
    """The standard deviation of the paired differences in a published run, its queries, and a line that names it."""
    import math

    from pipelines.comparison.headline import read_shown_metrics
    from pipelines.warehouse.damage import name_damage
    from pipelines.warehouse.runs import find_run, list_committed
    from pipelines.warehouse.storage import Storage
    from schemas.errors import InputError, did_you_mean
    from udfs.registry import parse_metric

    storage, key = Storage(warehouse), parse_metric(metric).key
    newest = [m for m in list_committed(storage) if "comparisons" in m.tables]
    if not newest and run is None:
        raise InputError("no run has comparisons", where=warehouse, hint="set compare.baseline and evaluate")
    manifest = find_run(storage, run) if run else newest[0]
    if "comparisons" not in manifest.tables:
        raise InputError(f"run {manifest.run} has no comparisons", where=warehouse, hint="set compare.baseline")
    with name_damage(f"run {manifest.run}", storage.path(manifest.tables["comparisons"].path)):
        rows = storage.dataset(manifest.tables["comparisons"].path).to_table().to_pylist()
        overall = [r for r in rows if r["segment"] == "all"]
    matches = [r for r in overall if r["metric"] == key and candidate in (None, r["candidate"])]
    if not matches:
        compared = any(r["metric"] == key for r in overall)
        names = [r["candidate"] for r in overall] if compared else read_shown_metrics(manifest)
        missing = str(candidate) if compared else metric
        raise InputError(f"run {manifest.run} does not compare {missing}", hint=did_you_mean(missing, set(names)))
    row = matches[0]
    if row["effect_size"] is None or not row["queries"]:
        raise InputError(f"run {manifest.run} has too few queries for a standard deviation of {metric}")
    # With clusters, the standard deviation that as many independent queries would have to have.
    stddev = row["stderr"] * math.sqrt(row["queries"])
    return stddev, row["queries"], f"{metric}, {row['candidate']} − {row['baseline']}, run {manifest.run}"
