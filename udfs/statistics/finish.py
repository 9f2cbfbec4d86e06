"""From merged sums to estimates, for `DataFrame.mapInArrow`: one row per subject, segment, value and metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.ragged import Bools, Floats
from udfs.statistics.features import OF_PAIR, OF_SYSTEM
from udfs.statistics.label_draws import PAIR_FORMS, SYSTEM_FORMS, average_label_draws
from udfs.statistics.partial import Batches, Key, Totals, merge_totals
from udfs.statistics.plan import BETWEEN, EVERYTHING, Plan
from udfs.statistics.power import detectable_delta
from udfs.statistics.ratio import SUMS, Estimate, estimate_ratio
from udfs.statistics.resample import compute_bootstrap_p, compute_percentile_interval, compute_randomisation_p
from udfs.statistics.rubin import DrawnEstimate, add_draws, find_curve_shift

TEXT = ("baseline", "candidate", "segment", "value", "metric", "metric_name")
COUNTS = ("queries", "skipped", "wins", "ties", "losses", "unjudged", "judged_queries")
NUMBERS = (
    *("macro", "macro_low", "macro_high", "weighted", "weighted_low", "weighted_high"),
    *("micro", "micro_low", "micro_high", "stddev"),
    *("baseline_mean", "candidate_mean", "delta", "delta_low", "delta_high", "stderr", "degrees", "weighted_delta"),
    *("relative", "relative_stderr", "p_value", "p_randomisation", "p_bootstrap", "effect_size", "detectable_delta"),
    *("kept_traffic", "traffic", "pool"),
    # On drawn labels: what the answer rests on, the second answer of a hull, and the mean over queries of the variance
    # over draws of their differences.
    *("label_share", "unseen_weight", "untrafficked", "curve_shift", "query_variance"),
    *("other", "other_stderr", "other_degrees", "other_relative", "other_relative_stderr"),
    # Filled where queries were judged (`pipelines.comparison.judging`).
    *("delta_corrected", "corrected_low", "corrected_high", "corrected_stderr", "corrected_degrees"),
    *("corrected_relative", "corrected_relative_stderr"),
)
FLAGS = ("hull",)
ESTIMATES_DDL = ", ".join(
    f"{name} {kind}"
    for names, kind in ((TEXT, "string"), (COUNTS, "bigint"), (NUMBERS, "double"), (FLAGS, "boolean"))
    for name in names
)


def finish_estimates(plan: Plan) -> Callable[[Batches], Batches]:
    """The function from partials, all of a key in one partition, to estimates.

    A row without a baseline is about the single system in `candidate`.
    """

    def run(batches: Batches) -> Batches:
        totals = merge_totals(batches, plan)
        systems = [key for key in sorted(totals) if key[0] < len(plan.systems)]
        pairs = [key for key in sorted(totals) if key[0] >= len(plan.systems)]
        if systems:
            sums, draws = _stack_sums(totals, systems, plan, OF_SYSTEM)
            columns = _estimate_systems(sums, draws, plan)
            if plan.draw_sets:
                means = average_label_draws(draws, SYSTEM_FORMS, sums, plan)
                columns |= _widen_systems(sums, means, _find_doubts(systems, plan), plan)
            yield _build_rows(systems, plan, columns)
        if pairs:
            sums, draws = _stack_sums(totals, pairs, plan, OF_PAIR)
            columns = _estimate_pairs(sums, draws, plan)
            if plan.draw_sets:
                means = average_label_draws(draws, PAIR_FORMS, sums, plan)
                columns |= _widen_pairs(sums, means, _find_doubts(pairs, plan), plan)
            yield _build_rows(pairs, plan, columns)

    return run


def _stack_sums(
    totals: Totals, keys: list[Key], plan: Plan, layout: tuple[str, ...]
) -> tuple[Mapping[str, Floats], Floats]:
    """Each sum as keys × metrics, and the draws as keys × everything."""
    sums = np.stack([totals[key].sums.sum(axis=0) for key in keys]).reshape(len(keys), len(plan.metrics), len(layout))
    return {name: sums[:, :, at] for at, name in enumerate(layout)}, np.stack([totals[key].draws for key in keys])


def _estimate_systems(sums: Mapping[str, Floats], draws: Floats, plan: Plan) -> dict[str, Floats]:
    macro, weighted, micro = (_estimate_form(sums, form) for form in ("", "w_", "p_"))
    queries = _count_queries(sums, plan)
    columns = {"queries": queries, "skipped": sums["rows"] - queries, "stddev": _compute_stddev(sums)}
    columns |= {"stderr": macro.stderr, "degrees": macro.degrees, "traffic": sums["w_x"], "pool": sums["p_x"]}
    for name, estimate in (("macro", macro), ("weighted", weighted), ("micro", micro)):
        low, high = estimate.interval(plan.confidence)
        columns |= {name: estimate.value, f"{name}_low": low, f"{name}_high": high}
    if plan.percentiles:
        replicates = _average_replicates(draws, plan)
        columns["macro_low"], columns["macro_high"] = _compute_percentiles(replicates, macro, plan)
    return columns


def _estimate_pairs(sums: Mapping[str, Floats], draws: Floats, plan: Plan) -> dict[str, Floats]:
    delta = _estimate_form(sums, "")
    relative = _estimate_relative(sums)
    queries, stddev = _count_queries(sums, plan), _compute_stddev(sums)
    low, high = delta.interval(plan.confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        baseline = np.where(queries > 0, sums["b"] / sums["x"], np.nan)
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
        "detectable_delta": detectable_delta(delta.stderr),
        "kept_traffic": kept,
    }
    return columns | _resample_pairs(sums, draws, delta, plan)


def _resample_pairs(sums: Mapping[str, Floats], draws: Floats, delta: Estimate, plan: Plan) -> dict[str, Floats]:
    """Intervals and p-values of pairs from the draws, where there are any."""
    columns: dict[str, Floats] = {}
    enough = sums["units"] > 1
    if plan.bootstrap:
        replicates = _average_replicates(draws, plan)
        if plan.percentiles:
            columns["delta_low"], columns["delta_high"] = _compute_percentiles(replicates, delta, plan)
        columns["p_bootstrap"] = np.where(enough, compute_bootstrap_p(delta.value, replicates), np.nan)
    if plan.randomisation:
        start, size = 2 * len(plan.metrics) * plan.bootstrap, len(plan.metrics) * plan.randomisation
        flipped = draws[:, start : start + size].reshape(len(draws), len(plan.metrics), plan.randomisation)
        columns["p_randomisation"] = np.where(
            enough, compute_randomisation_p(sums["y"], flipped, sums["absolute"]), np.nan
        )
    return columns


def _find_doubts(keys: list[Key], plan: Plan) -> Bools:
    """Keys × 1: whether a system of the subject may have learned from clicks."""
    subjects = [(system,) for system in plan.systems] + list(plan.pairs)
    doubts = [any(system in plan.not_vouched for system in subjects[key[0]]) for key in keys]
    return np.array(doubts, dtype=np.bool_)[:, None]


def _widen_systems(
    sums: Mapping[str, Floats], means: Mapping[str, Floats], doubts: Bools, plan: Plan
) -> dict[str, Floats]:
    """The intervals of every average with the error of the labels, also where others are from the bootstrap."""
    columns: dict[str, Floats] = {}
    for name, form in (("macro", ""), ("weighted", "w_"), ("micro", "p_")):
        both = add_draws(_estimate_form(sums, form), means[form + "y"], doubts, plan)
        columns[f"{name}_low"], columns[f"{name}_high"] = both.interval(plan.confidence)
        if name == "macro":
            columns |= _describe_answers(both)
    return columns


def _widen_pairs(
    sums: Mapping[str, Floats], means: Mapping[str, Floats], doubts: Bools, plan: Plan
) -> dict[str, Floats]:
    """The errors of differences with those of the labels, and what the differences rest on.

    Resampled p-values stay about queries; intervals are from both errors, also where others are from the bootstrap.
    """
    delta = add_draws(_estimate_form(sums, ""), means["y"], doubts, plan)
    relative = add_draws(_estimate_relative(sums), means["relative"], doubts, plan)
    low, high = delta.interval(plan.confidence)
    apart = np.where(delta.hull, np.abs(delta.other.value - delta.first.value), 0.0)
    columns = _describe_answers(delta) | {
        "delta_low": low,
        "delta_high": high,
        "p_value": delta.p_value(),
        "relative_stderr": relative.first.stderr,
        "detectable_delta": detectable_delta(delta.first.stderr) + apart,
        "curve_shift": find_curve_shift(means["y"], plan),
        "other_relative": np.where(delta.hull, relative.other.value, np.nan),
        "other_relative_stderr": np.where(delta.hull, relative.other.stderr, np.nan),
    }
    evidence = {"query_variance": "spread"}
    if any(plan.unseen):
        evidence |= {"unseen_weight": "unseen", "untrafficked": "idle"}
    with np.errstate(divide="ignore", invalid="ignore"):
        columns |= {name: np.where(sums["x"] > 0, sums[total] / sums["x"], np.nan) for name, total in evidence.items()}
    return columns


def _describe_answers(both: DrawnEstimate) -> dict[str, Any]:
    """The first answer's error, the second answer where there is one, and the share of the labels."""
    return {
        "stderr": both.first.stderr,
        "degrees": both.first.degrees,
        "label_share": both.label_share,
        "other": np.where(both.hull, both.other.value, np.nan),
        "other_stderr": np.where(both.hull, both.other.stderr, np.nan),
        "other_degrees": np.where(both.hull, both.other.degrees, np.nan),
        "hull": both.hull,
    }


def _compute_percentiles(replicates: Floats, estimate: Estimate, plan: Plan) -> tuple[Floats, Floats]:
    low, high = compute_percentile_interval(replicates, plan.confidence)
    undefined = np.isnan(estimate.stderr)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def _average_replicates(draws: Floats, plan: Plan) -> Floats:
    """Keys × metrics × replicates: the mean in each replicate, NaN where it is empty."""
    size = 2 * len(plan.metrics) * plan.bootstrap
    y, x = np.moveaxis(draws[:, :size].reshape(len(draws), 2, len(plan.metrics), plan.bootstrap), 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = np.where(x > 0, y / x, np.nan)
    return means


def _estimate_form(sums: Mapping[str, Floats], form: str) -> Estimate:
    return estimate_ratio(np.stack([sums[form + name] for name in SUMS], axis=-1))


def _estimate_relative(sums: Mapping[str, Floats]) -> Estimate:
    return estimate_ratio(np.stack([sums[name] for name in ("units", "y", "b", "yy", "yb", "bb")], axis=-1))


def _count_queries(sums: Mapping[str, Floats], plan: Plan) -> Floats:
    """The queries that count; their divisor is another number where they count by traffic."""
    return sums["queries" if plan.by_traffic else "x"]


def _compute_stddev(sums: Mapping[str, Floats]) -> Floats:
    """The standard deviation over queries, also where the units are clusters."""
    per_query = estimate_ratio(np.stack([sums[n] for n in ("x", "y", "x", "query_yy", "y", "x")], axis=-1))
    stddev: Floats = per_query.stderr * np.sqrt(sums["x"])
    return stddev


def _build_rows(keys: list[Key], plan: Plan, columns: Mapping[str, Floats]) -> pa.RecordBatch:
    metrics = len(plan.metrics)
    subjects: list[tuple[str | None, str]] = [(None, system) for system in plan.systems] + list(plan.pairs)
    segments = [BETWEEN.join(cut) or EVERYTHING for cut in plan.cuts]
    text = {
        "baseline": np.repeat(np.array([subjects[subject][0] for subject, _, _ in keys], dtype=object), metrics),
        "candidate": np.repeat(np.array([subjects[subject][1] for subject, _, _ in keys], dtype=object), metrics),
        "segment": np.repeat(np.array([segments[cut] for _, cut, _ in keys], dtype=object), metrics),
        "value": np.repeat(np.array([value for _, _, value in keys], dtype=object), metrics),
        "metric": np.tile(np.array(plan.metrics, dtype=object), len(keys)),
        "metric_name": np.tile(np.array(plan.names or plan.metrics, dtype=object), len(keys)),
    }
    arrays: dict[str, Any] = {name: pa.array(values, pa.string()) for name, values in text.items()}
    for name in (*COUNTS, *NUMBERS, *FLAGS):
        kind = pa.int64() if name in COUNTS else pa.bool_() if name in FLAGS else pa.float64()
        if name not in columns:
            arrays[name] = pa.nulls(len(keys) * metrics, kind)
        elif name in COUNTS:
            arrays[name] = pa.array(columns[name].ravel().astype(np.int64))
        elif name in FLAGS:
            arrays[name] = pa.array(columns[name].ravel())
        else:
            arrays[name] = pa.array(columns[name].ravel(), from_pandas=True)
    return pa.RecordBatch.from_pydict(arrays)
