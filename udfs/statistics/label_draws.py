"""Sums of metrics on drawn labels: per subject, cell and draw, what the error of the labels follows from.

A metric that is undefined in a draw counts there with its value over all draws, so that every draw is about the same
queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from scipy import sparse

from udfs.posterior.fit import POSTERIOR
from udfs.ragged import Bools, Floats, Ints
from udfs.statistics.counting import SHOWN
from udfs.statistics.features import Columns
from udfs.statistics.frame import Frame
from udfs.statistics.plan import Plan

# The sums per draw: those of a system by its queries, traffic and pools, those of a pair of the difference and of the
# baseline. Their divisors, for the same queries, are among the other sums.
SYSTEM_FORMS = ("y", "w_y", "p_y")
PAIR_FORMS = ("y", "b")
GRID_OF_DRAWS = 2.0**26  # sums of multiples of 1/GRID_OF_DRAWS, times whole weights, are exact below 2^27
DIVISORS = {"y": "x", "w_y": "w_x", "p_y": "p_x"}


def fill_draws(frame: Frame, part: slice, numbers: Sequence[Floats], plan: Plan) -> list[Floats]:
    """Per system, queries × metrics × draws, defined wherever the metric itself is; 0 elsewhere.

    Numbers are rounded to the grid, so that their sums are exact: 32-bit floats above 1/8 are on it already.
    """
    columns = [plan.numbers.index(name) for name in plan.draw_metrics]
    filled = []
    for system, of_system in enumerate(numbers):
        values = of_system[:, columns].astype(np.float32)  # those of constant metrics are all their draws
        draws = np.repeat(values[..., None].astype(np.float64), plan.draws, axis=2)
        draws[:, plan.varying] = frame.label_draws(system, part)
        np.copyto(draws, of_system[:, columns, None], where=np.isnan(draws))
        draws *= GRID_OF_DRAWS
        np.rint(draws, out=draws)
        draws /= GRID_OF_DRAWS
        filled.append(np.nan_to_num(draws, copy=False))
    return filled


def build_evidence_columns(
    base: Columns, pair: tuple[int, int], numbers: Sequence[Floats], draws: Sequence[Floats], plan: Plan
) -> Columns:
    """What the comparison of a pair (baseline, candidate) rests on, for the queries that count in it.

    The variance over draws of the difference; the candidate's share of weight on unseen documents; and whether nobody
    was shown any document of either list.
    """
    baseline, candidate = pair
    variance = np.zeros((len(base["x"]), len(plan.metrics)))
    posterior = plan.find_set(POSTERIOR)
    if posterior is not None:
        differences = draws[candidate][..., posterior] - draws[baseline][..., posterior]
        variance[:, _find_metrics(plan)] = differences.var(axis=-1, ddof=1)
    columns = {"spread": base["x"] * variance}
    if not any(plan.unseen):
        return columns
    unseen = np.zeros_like(variance)
    for metric, name in enumerate(plan.unseen):
        if name is not None:
            unseen[:, metric] = np.nan_to_num(numbers[candidate][:, plan.numbers.index(name)])
    shown = plan.numbers.index(SHOWN)
    idle: Bools = (numbers[baseline][:, shown] == 0) & (numbers[candidate][:, shown] == 0)
    return columns | {"unseen": base["x"] * unseen, "idle": base["x"] * idle[:, None]}


def sum_label_draws(
    codes: Sequence[Ints], cells: Sequence[int], bases: Sequence[Columns], draws: Sequence[Floats], plan: Plan
) -> list[list[Floats]]:
    """Per cut and subject, cells × the sums of all forms, metrics and draws, flat.

    `codes` has the cell of every query in each cut, `bases` the columns of each subject, `draws` those of each system.
    """
    systems, forms = range(len(plan.systems)), range(len(SYSTEM_FORMS))
    pairs = [(plan.systems.index(baseline), plan.systems.index(candidate)) for baseline, candidate in plan.pairs]
    weights = [_weigh_queries(base, plan) for base in bases]
    # Every sum is linear in the draws of single systems: those of a pair are the sums of both over its queries.
    sums: dict[tuple[int, int, int], list[Floats]] = {}  # by subject, form and system, one per cut
    for system in systems:
        of_pairs = [len(systems) + at for at, pair in enumerate(pairs) if system in pair]
        users = [*[(system, form) for form in forms], *[(subject, 0) for subject in of_pairs]]
        stacked = np.stack([weights[subject][form] for subject, form in users])
        for (subject, form), total in zip(users, _sum_by_cell(codes, cells, stacked, draws[system]), strict=True):
            sums[subject, form, system] = total
    by_cut: list[list[Floats]] = []
    for cut, size in enumerate(cells):
        of_cut = [np.stack([sums[system, form, system][cut] for form in forms], axis=1) for system in systems]
        for subject, pair in enumerate(pairs, start=len(systems)):
            b, c = (sums[subject, 0, system][cut] for system in pair)
            of_cut.append(np.stack((c - b, b), axis=1))
        by_cut.append([of_subject.reshape(size, -1) for of_subject in of_cut])
    return by_cut


def average_label_draws(
    flat: Floats, forms: Sequence[str], sums: Mapping[str, Floats], plan: Plan
) -> dict[str, Floats]:
    """Per form, keys × metrics × draws: each draw's mean; NaN for metrics without draws and where nothing counts.

    A pair has `relative` in place of the baseline's mean: the difference as a share of it.
    """
    shape = (len(flat), len(forms), len(plan.draw_metrics), plan.draws)
    of_labels = flat[:, flat.shape[1] - prod(shape[1:]) :].reshape(shape)  # after the replicates
    totals = np.full((len(forms), len(flat), len(plan.metrics), plan.draws), np.nan)
    totals[:, :, _find_metrics(plan)] = np.moveaxis(of_labels, 1, 0)
    by_form = dict(zip(forms, totals, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = {
            form: np.where(sums[DIVISORS[form]][..., None] > 0, total / sums[DIVISORS[form]][..., None], np.nan)
            for form, total in by_form.items()
            if form in DIVISORS
        }
        if "b" in by_form:
            means["relative"] = np.where(by_form["b"] > 0, by_form["y"] / by_form["b"], np.nan)
    return means


def _find_metrics(plan: Plan) -> list[int]:
    """The positions of the metrics with draws among all metrics."""
    return [plan.metrics.index(name) for name in plan.draw_metrics]


def _weigh_queries(base: Columns, plan: Plan) -> list[Floats]:
    """Per form, queries × metrics with draws: how much each query counts."""
    shape = (len(base["x"]), len(plan.metrics))
    if "b" in base:
        return [np.broadcast_to(base["x"], shape)[:, _find_metrics(plan)]]
    pools = np.zeros(shape)
    if plan.with_pool:
        pools[:, plan.with_pool] = base["p_x"]
    return [np.broadcast_to(w, shape)[:, _find_metrics(plan)] for w in (base["x"], base["w_x"], pools)]


def _sum_by_cell(codes: Sequence[Ints], cells: Sequence[int], weights: Floats, draws: Floats) -> list[list[Floats]]:
    """Per form and cut, cells × metrics × draws: the draws of the queries of each cell, weighted.

    `weights` is forms × queries × metrics. The first cut has one cell with everything, the sum of any other cut's.
    """
    forms, queries, metrics = weights.shape
    segmented = len(cells) > 1
    sizes = np.array(cells[segmented:])
    rows = int(sizes.sum())
    starts = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    places = np.stack(codes[segmented:], axis=1) + starts  # queries × cuts
    indices = (places[:, None, :] + rows * np.arange(forms)[:, None]).reshape(queries, -1)
    pointers = np.arange(0, indices.size + 1, indices.shape[1])
    totals = np.empty((forms, rows, metrics, draws.shape[2]))
    for metric in range(metrics):
        data = np.repeat(weights[:, :, metric].T, len(sizes), axis=1)
        member = sparse.csc_matrix((data.ravel(), indices.ravel(), pointers), shape=(forms * rows, queries))
        totals[:, :, metric] = np.asarray(member @ draws[:, metric]).reshape(forms, rows, -1)
    by_form = []
    for total in totals:
        split = np.split(total, starts[1:])
        by_form.append([split[0].sum(axis=0, keepdims=True), *split] if segmented else split)
    return by_form
