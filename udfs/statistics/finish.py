"""From complete sums to estimates, for `DataFrame.mapInArrow`: one row per subject, segment, value and metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.ragged import Floats
from udfs.statistics.features import OF_PAIR, OF_SYSTEM
from udfs.statistics.partial import Batches, Key, Totals, merged
from udfs.statistics.plan import BETWEEN, EVERYTHING, Plan
from udfs.statistics.power import detectable
from udfs.statistics.ratio import SUMS, Estimate, ratio
from udfs.statistics.resample import bootstrap_p, percentile_interval, randomisation_p

TEXT = ("baseline", "candidate", "segment", "value", "metric")
COUNTS = ("queries", "skipped", "wins", "ties", "losses", "unjudged")
NUMBERS = (
    *("macro", "macro_low", "macro_high", "weighted", "weighted_low", "weighted_high"),
    *("micro", "micro_low", "micro_high", "stddev"),
    *("baseline_mean", "candidate_mean", "delta", "delta_low", "delta_high", "stderr", "degrees", "weighted_delta"),
    *("relative", "relative_stderr", "p_value", "p_randomisation", "p_bootstrap", "effect_size", "detectable_delta"),
    *("kept_traffic", "traffic", "pool"),
)
ESTIMATES_DDL = ", ".join(
    [f"{name} string" for name in TEXT] + [f"{name} bigint" for name in COUNTS] + [f"{name} double" for name in NUMBERS]
)


def finish(plan: Plan) -> Callable[[Batches], Batches]:
    """The function that turns partials, all of a key together, into estimates; left-over rows if all are.

    A row without a baseline is about the one system that `candidate` names.
    """

    def run(batches: Batches) -> Batches:
        totals = merged(batches, plan)
        systems = [key for key in totals if key[0] < len(plan.systems)]
        pairs = [key for key in totals if key[0] >= len(plan.systems)]
        if systems:
            yield _rows(systems, plan, _of_systems(*_stacked(totals, systems, plan, OF_SYSTEM), plan))
        if pairs:
            yield _rows(pairs, plan, _of_pairs(*_stacked(totals, pairs, plan, OF_PAIR), plan))

    return run


def _stacked(
    totals: Totals, keys: list[Key], plan: Plan, layout: tuple[str, ...]
) -> tuple[Mapping[str, Floats], Floats]:
    """Each sum as keys × metrics, and the draws as keys × everything."""
    sums = np.stack([totals[key].sums for key in keys]).reshape(len(keys), len(plan.metrics), len(layout))
    return {name: sums[:, :, at] for at, name in enumerate(layout)}, np.stack([totals[key].draws for key in keys])


def _of_systems(sums: Mapping[str, Floats], draws: Floats, plan: Plan) -> dict[str, Floats]:
    macro, weighted, micro = (_ratio(sums, form) for form in ("", "w_", "p_"))
    queries = sums["x"]
    columns = {"queries": queries, "skipped": sums["rows"] - queries, "stddev": _stddev(sums)}
    columns |= {"stderr": macro.stderr, "degrees": macro.degrees, "traffic": sums["w_x"], "pool": sums["p_x"]}
    for name, estimate in (("macro", macro), ("weighted", weighted), ("micro", micro)):
        low, high = estimate.interval(plan.confidence)
        columns |= {name: estimate.value, f"{name}_low": low, f"{name}_high": high}
    if plan.percentiles:
        replicates = _bootstrapped(draws, plan)
        columns["macro_low"], columns["macro_high"] = _percentiles(replicates, macro, plan)
    return columns


def _of_pairs(sums: Mapping[str, Floats], draws: Floats, plan: Plan) -> dict[str, Floats]:
    delta = _ratio(sums, "")
    relative = ratio(np.stack([sums[n] for n in ("units", "y", "b", "yy", "yb", "bb")], axis=-1))
    queries, stddev = sums["x"], _stddev(sums)
    low, high = delta.interval(plan.confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        baseline = np.where(queries > 0, sums["b"] / queries, np.nan)
        effect = np.where(sums["query_yy"] == 0, 0.0, delta.value / stddev)
        weighted = np.where(sums["w_x"] > 0, sums["w_y"] / sums["w_x"], np.nan)
        kept = np.where(sums["w"] > 0, sums["w_x"] / sums["w"], np.nan)
    columns = {
        "queries": queries,
        "wins": sums["wins"],
        "ties": queries - sums["wins"] - sums["losses"],
        "losses": sums["losses"],
        "unjudged": sums["rows"] - queries,
        "baseline_mean": baseline,
        "candidate_mean": baseline + delta.value,
        "delta": delta.value,
        "delta_low": low,
        "delta_high": high,
        "stderr": delta.stderr,
        "degrees": delta.degrees,
        "weighted_delta": weighted,
        "relative": relative.value,
        "relative_stderr": relative.stderr,
        "p_value": delta.p_value(),
        "effect_size": np.where(queries > 1, effect, np.nan),
        "detectable_delta": detectable(delta.stderr),
        "kept_traffic": kept,
    }
    return columns | _resampled(sums, draws, delta, plan)


def _resampled(sums: Mapping[str, Floats], draws: Floats, delta: Estimate, plan: Plan) -> dict[str, Floats]:
    """What the draws say of a pair, where there are any."""
    columns: dict[str, Floats] = {}
    enough = sums["units"] > 1
    if plan.bootstrap:
        replicates = _bootstrapped(draws, plan)
        if plan.percentiles:
            columns["delta_low"], columns["delta_high"] = _percentiles(replicates, delta, plan)
        columns["p_bootstrap"] = np.where(enough, bootstrap_p(delta.value, replicates), np.nan)
    if plan.randomisation:
        flat = draws[:, 2 * len(plan.metrics) * plan.bootstrap :]
        flipped = flat.reshape(len(draws), len(plan.metrics), plan.randomisation)
        columns["p_randomisation"] = np.where(enough, randomisation_p(sums["y"], flipped, sums["absolute"]), np.nan)
    return columns


def _percentiles(replicates: Floats, estimate: Estimate, plan: Plan) -> tuple[Floats, Floats]:
    low, high = percentile_interval(replicates, plan.confidence)
    unknown = np.isnan(estimate.stderr)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def _bootstrapped(draws: Floats, plan: Plan) -> Floats:
    """Keys × metrics × replicates: the mean in each replicate, NaN where it drew nothing."""
    size = 2 * len(plan.metrics) * plan.bootstrap
    y, x = np.moveaxis(draws[:, :size].reshape(len(draws), 2, len(plan.metrics), plan.bootstrap), 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = np.where(x > 0, y / x, np.nan)
    return means


def _ratio(sums: Mapping[str, Floats], form: str) -> Estimate:
    return ratio(np.stack([sums[form + name] for name in SUMS], axis=-1))


def _stddev(sums: Mapping[str, Floats]) -> Floats:
    """The spread over queries, also where the units are clusters."""
    per_query = ratio(np.stack([sums[n] for n in ("x", "y", "x", "query_yy", "y", "x")], axis=-1))
    stddev: Floats = per_query.stderr * np.sqrt(sums["x"])
    return stddev


def _rows(keys: list[Key], plan: Plan, columns: Mapping[str, Floats]) -> pa.RecordBatch:
    metrics = len(plan.metrics)
    subjects: list[tuple[str | None, str]] = [(None, system) for system in plan.systems] + list(plan.pairs)
    segments = [BETWEEN.join(cut) or EVERYTHING for cut in plan.cuts]
    text = {
        "baseline": np.repeat(np.array([subjects[subject][0] for subject, _, _ in keys], dtype=object), metrics),
        "candidate": np.repeat(np.array([subjects[subject][1] for subject, _, _ in keys], dtype=object), metrics),
        "segment": np.repeat(np.array([segments[cut] for _, cut, _ in keys], dtype=object), metrics),
        "value": np.repeat(np.array([value for _, _, value in keys], dtype=object), metrics),
        "metric": np.tile(np.array(plan.metrics, dtype=object), len(keys)),
    }
    made: dict[str, Any] = {name: pa.array(values, pa.string()) for name, values in text.items()}
    size = len(keys) * metrics
    for name in COUNTS:
        known = name in columns
        made[name] = pa.array(columns[name].ravel().astype(np.int64)) if known else pa.nulls(size, pa.int64())
    for name in NUMBERS:
        known = name in columns
        made[name] = pa.array(columns[name].ravel(), from_pandas=True) if known else pa.nulls(size, pa.float64())
    return pa.RecordBatch.from_pydict(made)
