"""Judge a few queries of worlds whose truth is known: how far does it narrow the interval, and does that still cover?

    python -m benchmarks judging
    python -m benchmarks.judging --worlds plain shared --queries 30 100 --seeds 20

The worlds, their logs and the model are those of `benchmarks.worlds`. Queries are drawn and the model is corrected by
the code behind `assay judge`; the judges grade the union of both top tens as the truth does. Prints one line per world
and candidate: the widths with and without judged queries, how often the corrected interval covers the truth, and the
same where the model is biased on purpose.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.world_logs import BASELINE, CANDIDATES, LEARNED, QUERIES, WORLDS, World, draw_world
from benchmarks.worlds import (
    NDCG,
    Pool,
    compare_truth,
    compute_ndcg,
    estimate_mean,
    fit_world,
    gather,
    score_draws,
)
from pipelines.comparison.judging.difference import JudgedSample, ModelAnswer, correct_answer, predict_answer
from pipelines.comparison.judging.sample import compute_chances, sample_queries
from udfs.posterior.draw import PoolEvidence, draw_grades
from udfs.posterior.fit import POSTERIOR, Prior
from udfs.ragged import Floats
from udfs.statistics.plan import Plan
from udfs.statistics.resample import draw_words
from udfs.statistics.rubin import add_draws

PAGES = 10_000
FIRST_SEED = 1000
SIZES = (100,)
# What is done to the model's differences of all queries, beside nothing.
BIASES: dict[str, Callable[[Floats], Floats]] = {
    "": lambda difference: difference,
    "shifted": lambda difference: difference + 0.1,
    "reversed": lambda difference: -0.5 * difference,
}


def judge_queries(world: World, prior: Prior, pooled: PoolEvidence, pool: Pool, candidate: str) -> Floats:
    """Per query the difference from production if the union of both top tens is graded by the truth."""
    tops = [pool.find_top(world.order[system]) for system in (BASELINE, candidate)]
    fixed = np.full(pool.lists.rows, np.nan)
    union = np.concatenate(tops)
    fixed[union] = pool.select(world.grade)[union]
    grades = draw_grades(prior, POSTERIOR, replace(pooled, fixed=fixed)).astype(np.float64)
    values = [np.mean([compute_ndcg(pool.build_block(top, grade)) for grade in grades], axis=0) for top in tops]
    return np.asarray(values[1] - values[0])


def measure_world(name: str, seed: int, sizes: Iterable[int]) -> Iterator[dict[str, object]]:
    """One row per candidate, number of judged queries and bias."""
    world = draw_world(name, seed, PAGES)
    evidence, truth = gather(world, name), compare_truth(world)
    not_vouched = CANDIDATES if name in LEARNED else ()
    prior, pooled, pool = fit_world(world, evidence, seed, not_vouched)
    scored = score_draws(world, prior, pooled, pool)
    plan = Plan(systems=(BASELINE, *CANDIDATES), metrics=(NDCG.key,), draw_sets=prior.draw_sets)
    hashes = draw_words(np.arange(QUERIES, dtype=np.uint64), 1, seed)[:, 0]
    for candidate in CANDIDATES:
        draws = np.concatenate([scored[each][candidate] for each, _ in prior.draw_sets])
        model, spread = (f(scored[POSTERIOR][candidate], axis=0) for f in (np.nanmean, np.nanstd))
        within = estimate_mean(model)
        estimate = add_draws(within, np.nanmean(draws, axis=1), np.array(candidate in not_vouched), plan)
        low, high = estimate.interval(0.95)
        judged = judge_queries(world, prior, pooled, pool, candidate)
        answer = ModelAnswer(
            value=float(within.value),
            within=float(within.stderr) ** 2,
            labels=float(estimate.first.stderr) ** 2 - float(within.stderr) ** 2,
            queries=int(np.count_nonzero(~np.isnan(model))),
            other=float(estimate.other.value) if candidate in not_vouched else None,
        )
        for queries in sizes:
            chance = compute_chances(spread, queries)
            drawn = sample_queries(chance, hashes, queries, seed)
            drawn = drawn[~np.isnan(judged[drawn])]
            expected = predict_answer(answer, model, spread, chance).interval(0.95)
            for bias, change in BIASES.items():
                biased = change(model)
                moved = replace(answer, value=float(np.nanmean(biased)))
                corrected = correct_answer(moved, JudgedSample(chance[drawn], biased[drawn], judged[drawn]))
                bounds = corrected.interval(0.95)
                yield {
                    "world": name,
                    "candidate": candidate,
                    "judged": queries,
                    "bias": bias,
                    "truth": truth[candidate],
                    "model width": float(high - low),
                    "expected": float(expected[1] - expected[0]),
                    "estimate": float(corrected.value),
                    "low": float(bounds[0]),
                    "high": float(bounds[1]),
                }


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per number of judged queries, world and candidate."""
    rows = rows.assign(
        covers=(rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"]),
        width=rows["high"] - rows["low"],
        error=rows["estimate"] - rows["truth"],
        decides=(rows["low"] > 0) | (rows["high"] < 0),
    )
    keys = ["judged", "world", "candidate"]
    plain = rows[rows["bias"] == ""].groupby(keys, sort=False)
    table = plain[["truth", "model width", "expected", "width", "error", "covers", "decides"]].mean()
    table.insert(4, "ratio", table["width"] / table["model width"])
    for bias in BIASES:
        if bias:
            biased = rows[rows["bias"] == bias].groupby(keys, sort=False)
            table[f"covers, {bias}"] = biased["covers"].mean()
            table[f"width, {bias}"] = biased["width"].mean()
    return table


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--queries", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args(arguments)
    seeds = range(FIRST_SEED, FIRST_SEED + chosen.seeds)
    rows = [row for name in chosen.worlds for seed in seeds for row in measure_world(name, seed, chosen.queries)]
    table = summarise(pd.DataFrame(rows))
    print(f"ΔNDCG@10 against production, {PAGES:,} pages, {chosen.seeds} seeds")
    print(table.to_string(float_format=lambda value: f"{value:.3f}"))
    by_world = table.groupby(level=["judged", "world"], sort=False).mean()
    print(by_world.to_string(float_format=lambda value: f"{value:.3f}"))
    return {"judging": table.reset_index().to_dict("records")}


if __name__ == "__main__":
    main()
