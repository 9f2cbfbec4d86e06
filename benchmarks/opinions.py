"""Outside opinions in worlds whose truth is known: how much a judge narrows the interval, and what a partial one does.

    python -m benchmarks opinions
    python -m benchmarks.opinions --worlds plain shared --pages 10000 --seeds 20

A judge grades every document from 0 to 3 with a rank correlation of .5 or .7 to the truth. A partial judge, of
correlation .5, adds a grade to the top ten of one candidate. Prints by judge the width of the 95 % interval of ΔNDCG@10
against that without opinions, what the labels' spread says of it, and how far the estimate moves.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.world_logs import BASELINE, CANDIDATES, SHARES, SHOWN, WORLDS, World, draw_world
from benchmarks.worlds import NDCG, Evidence, compare_truth, estimate_mean, fit_world, gather, score_draws
from udfs.posterior.draw import describe_posterior
from udfs.posterior.fit import POSTERIOR
from udfs.ragged import Floats
from udfs.statistics.plan import Plan
from udfs.statistics.rubin import add_draws

CORRELATIONS = (0.5, 0.7)
WITHOUT, PARTIAL = "without", "partial"
FIRST_SEED = 1000  # no world of these seeds was used to choose defaults
_STEPS = 12  # of a bisection


def draw_judge(world: World, correlation: float, seed: int) -> Floats:
    """Grades of a judge, with the shares of true grades and this rank correlation to them."""
    noise = np.random.default_rng((seed, 7)).normal(size=world.grade.shape)
    low, high = 0.0, 8.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        reached = stats.spearmanr(_grade(world.grade + middle * noise).ravel(), world.grade.ravel()).statistic
        low, high = (middle, high) if reached > correlation else (low, middle)
    return _grade(world.grade + low * noise)


def _grade(values: Floats) -> Floats:
    return np.digitize(values, np.quantile(values, np.cumsum(SHARES)[:-1])).astype(np.float64)


def favour(world: World, grades: Floats, candidate: str) -> Floats:
    """The grades with one more for everything in the top ten of a candidate."""
    return np.where(world.rank[candidate] <= SHOWN, np.minimum(grades + 1, 3), grades)


def estimate_differences(
    world: World, evidence: Evidence, seed: int, opinions: Mapping[str, Floats]
) -> tuple[dict[str, dict[str, float]], float]:
    """By candidate the estimate and the width of its interval; and the labels' spread, the root of mean (sd/m_q)²."""
    prior, pooled, pool = fit_world(world, evidence, seed, (), opinions)
    differences = score_draws(world, prior, pooled, pool)
    plan = Plan(systems=(BASELINE, *CANDIDATES), metrics=(NDCG.key,), draw_sets=prior.draw_sets)
    rows = {}
    for candidate in CANDIDATES:
        draws = np.concatenate([differences[name][candidate] for name, _ in prior.draw_sets])
        within = estimate_mean(np.nanmean(differences[POSTERIOR][candidate], axis=0))
        drawn = add_draws(within, np.nanmean(draws, axis=1), np.array(False), plan)
        low, high = (float(end) for end in drawn.interval(0.95))
        rows[candidate] = {"estimate": float(drawn.first.value), "low": low, "high": high, "width": high - low}
    spread = float(np.sqrt(np.mean((describe_posterior(prior, pooled).sd / pooled.rate) ** 2)))
    return rows, spread


def measure_seed(name: str, seed: int, pages: int) -> list[dict[str, Any]]:
    """One row per judge and candidate."""
    world = draw_world(name, seed, pages)
    evidence, truth = gather(world, name), compare_truth(world)
    judges = {str(correlation): draw_judge(world, correlation, seed) for correlation in CORRELATIONS}
    opinions: dict[str, dict[str, Floats]] = {WITHOUT: {}} | {name: {"judge": each} for name, each in judges.items()}
    place = {"world": name, "pages": pages, "seed": seed}
    rows = []
    for judge, columns in opinions.items():
        estimates, spread = estimate_differences(world, evidence, seed, columns)
        for candidate, row in estimates.items():
            rows.append(place | {"judge": judge, "candidate": candidate, "spread": spread} | row)
    for candidate in CANDIDATES:
        partial = {"judge": favour(world, judges[str(CORRELATIONS[0])], candidate)}
        estimates, spread = estimate_differences(world, evidence, seed, partial)
        rows.append(place | {"judge": PARTIAL, "candidate": candidate, "spread": spread} | estimates[candidate])
    return [row | {"truth": truth[str(row["candidate"])]} for row in rows]


def summarise_judges(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per world, judge and candidate, means over seeds."""
    keys = ["world", "pages", "seed", "candidate"]
    columns = ["estimate", "width", "spread"]
    reference = rows[rows["judge"] == WITHOUT].set_index(keys)[columns].add_suffix("_without")
    fair = rows[rows["judge"] == str(CORRELATIONS[0])].set_index(keys)["estimate"].rename("estimate_fair")
    joined = rows.join(reference, on=keys).join(fair, on=keys)
    moved = np.where(joined["judge"] == PARTIAL, joined["estimate"] - joined["estimate_fair"], np.nan)
    joined = joined.assign(
        error=joined["estimate"] - joined["truth"],
        covers=(joined["low"] <= joined["truth"]) & (joined["truth"] <= joined["high"]),
        moved=moved,
        moved_share=np.abs(moved) / joined["width"],
    )
    grouped = joined.groupby(["pages", "world", "judge", "candidate"], sort=False)
    mean = grouped[["width", "width_without", "spread", "spread_without"]].mean()
    return pd.DataFrame(
        {
            "width": mean["width"],
            "narrower": 1 - mean["width"] / mean["width_without"],
            "labels narrower": 1 - mean["spread"] / mean["spread_without"],
            "error": grouped["error"].mean(),
            "covers": grouped["covers"].mean(),
            "moved": grouped["moved"].mean(),
            "moved / width": grouped["moved_share"].mean(),
            "largest": grouped["moved_share"].max(),
        }
    )


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=["plain", "shared", "production_learned"])
    parser.add_argument("--pages", nargs="+", type=int, default=[10_000])
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args(arguments)
    seeds = range(FIRST_SEED, FIRST_SEED + chosen.seeds)
    rows = [
        row
        for pages in chosen.pages
        for name in chosen.worlds
        for seed in seeds
        for row in measure_seed(name, seed, pages)
    ]
    table = summarise_judges(pd.DataFrame(rows))
    print(f"ΔNDCG@10 against production, {chosen.seeds} seeds; without opinions, and with those of a judge")
    print(table.to_string(float_format=lambda value: f"{value:.3f}"))
    return [{str(name): value for name, value in row.items()} for row in table.reset_index().to_dict("records")]


if __name__ == "__main__":
    main()
