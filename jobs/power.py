"""`assay power`."""

from __future__ import annotations

import json

import click

from jobs.options import debug, output


@click.command("power")
@click.option("--delta", required=True, type=click.FloatRange(min=0, min_open=True), help="The difference to be seen.")
@click.option(
    "--stddev", type=click.FloatRange(min=0), help="Spread of the differences by query, where no run is given."
)
@click.option("--warehouse", metavar="PLACE", help="Where runs are published; the spread is taken from one of them.")
@click.option("--run", "run", help="The run, by id or date; the newest where not given.")
@click.option("--metric", help="The metric, e.g. ndcg@10.")
@click.option("--candidate", help="The candidate of the comparison, where the run has several.")
@click.option("--power", "power", default=0.8, show_default=True, type=click.FloatRange(0.05, 0.999), help="Chance.")
@click.option("--alpha", default=0.05, show_default=True, type=click.FloatRange(1e-6, 0.5), help="Level of the test.")
@output
@debug
def command(
    delta: float,
    stddev: float | None,
    warehouse: str | None,
    run: str | None,
    metric: str | None,
    candidate: str | None,
    power: float,
    alpha: float,
    output: str,
) -> None:
    """Say how many queries a paired test needs to see a difference.

    \b
    assay power --delta 0.01 --stddev 0.25
    assay power --delta 0.01 --metric ndcg@10 --warehouse build/demo/warehouse
    """
    from schemas.errors import ConfigurationError
    from udfs.statistics.power import power_of, queries_needed

    queries, source = None, ""
    if stddev is None:
        if warehouse is None or metric is None:
            raise ConfigurationError(
                "the spread of the differences is not known", hint="give --stddev, or --warehouse and --metric"
            )
        stddev, queries, source = spread(warehouse, run, metric, candidate)
    needed = queries_needed(stddev, delta, power, alpha)
    if output == "json":
        seen = None if queries is None else power_of(stddev, delta, queries, alpha)
        click.echo(json.dumps({"needed": needed, "stddev": stddev, "from": source, "queries": queries, "power": seen}))
        return
    if source:
        click.echo(source)
    click.echo(f"{needed:,} queries show a true difference of {delta:g} in {power:.0%} of cases (spread {stddev:.4f}).")
    if queries is not None:
        click.echo(f"The {queries:,} queries of that run show it in {power_of(stddev, delta, queries, alpha):.0%}.")


def spread(warehouse: str, run: str | None, metric: str, candidate: str | None) -> tuple[float, int, str]:
    """The standard deviation of the paired differences in a published run, its queries, and where it was found."""
    import math

    from pipelines.runs import committed, find_run
    from pipelines.storage import Storage
    from schemas.errors import InputError, did_you_mean
    from udfs.registry import parse

    storage, key = Storage(warehouse), parse(metric).key
    newest = [m for m in committed(storage) if "comparisons" in m.tables]
    if not newest and run is None:
        raise InputError("no run has comparisons", where=warehouse, hint="set compare.baseline and evaluate")
    manifest = find_run(storage, run) if run else newest[0]
    if "comparisons" not in manifest.tables:
        raise InputError(f"run {manifest.run} has no comparisons", where=warehouse, hint="set compare.baseline")
    rows = storage.dataset(manifest.tables["comparisons"].path).to_table().to_pylist()
    overall = [r for r in rows if r["segment"] == "all"]
    found = [r for r in overall if r["metric"] == key and candidate in (None, r["candidate"])]
    if not found:
        known = {f"{r['metric']} of {r['candidate']}" for r in overall}
        raise InputError(f"run {manifest.run} does not compare {metric}", hint=did_you_mean(key, known))
    row = found[0]
    if row["effect_size"] is None or not row["queries"]:
        raise InputError(f"run {manifest.run} has too few queries for a spread of {metric}")
    # Over clusters the error counts what hangs together: the spread that so many independent queries would have.
    stddev = row["stderr"] * math.sqrt(row["queries"])
    return stddev, row["queries"], f"{metric}, {row['candidate']} − {row['baseline']}, run {manifest.run}"
