"""Decide from simulated logs whose truth is known: how far off is each rule, and do its intervals cover the truth?

    python -m benchmarks worlds
    python -m benchmarks.worlds --worlds plain production_learned --pages 10000 40000 --seeds 20 --to build/worlds.json

Every world is drawn in NumPy (1,000 queries with 40 documents, three serving systems) and fed to the code of Assay:
the curve by `all_pairs`, the prior and the draws by `udfs.posterior`, metrics by `udfs.compute`, variances by
`udfs.statistics`. Prints one table per rule: the error of ΔNDCG@10 against production, by the true grades.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from benchmarks.world_logs import (
    ASSUMED_ETA,
    BASELINE,
    CANDIDATES,
    DOCUMENTS,
    DROP,
    LEARNED,
    OTHER_DAYS,
    QUERIES,
    SHOWN,
    TRAFFIC,
    WORLDS,
    World,
    draw_world,
)
from pipelines.labels.propensity.intervals import estimate_curve
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.propensity.settings import PropensitySettings
from pipelines.labels.settings import GradeSettings
from tests.helpers.click_logs import ClickLog
from udfs.block import Block
from udfs.compute import compute_metrics
from udfs.conventions import Conventions
from udfs.posterior.draw import PoolEvidence, draw_grades
from udfs.posterior.factors import ABSENT, UNKNOWN, FactorPlan, bin_factors
from udfs.posterior.fit import (
    POSTERIOR,
    Prior,
    fit_prior,
    hash_bucket,
    tabulate_pairs,
)
from udfs.posterior.opinions import bin_opinions, choose_scale
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.registry import parse_metric
from udfs.statistics.counting import MIN_JUDGED
from udfs.statistics.plan import Plan
from udfs.statistics.ratio import Estimate
from udfs.statistics.resample import draw_words
from udfs.statistics.rubin import DrawnEstimate, add_draws

SIZES = (10_000, 40_000, 400_000)
DRAWS = 30
NDCG = parse_metric("ndcg@10")

TOP_TENS = Ragged.of_lengths(np.full(QUERIES, SHOWN))


@dataclass(frozen=True)
class Evidence:
    """What a log says about every document under an estimated curve, [query, document]."""

    clicks: Floats
    examinations: Floats
    depth: Floats
    rate: Floats  # [query, 1]
    exponent_sd: float


def gather(world: World, name: str) -> Evidence:
    """The evidence by the curve that Assay estimates."""
    theta, exponent_sd = estimate_examination(world, ASSUMED_ETA.get(name, 1.0))
    examined = world.shown * theta
    x, total = world.clicks.sum(axis=2), examined.sum(axis=2)
    depth = (examined * np.log(np.arange(1, SHOWN + 1))).sum(axis=2) / np.maximum(total, 1e-300)
    prior, mean = GradeSettings().query_prior, x.sum() / total.sum()
    rate = (x.sum(axis=1, keepdims=True) + prior * mean) / (total.sum(axis=1, keepdims=True) + prior)
    return Evidence(clicks=x, examinations=total, depth=depth, rate=rate, exponent_sd=exponent_sd)


def estimate_examination(world: World, assumed_eta: float) -> tuple[Floats, float]:
    """The curve by all_pairs, and the standard deviation of its exponent."""
    flat = (QUERIES * DOCUMENTS, SHOWN)
    log = ClickLog(world.shown.reshape(flat), world.clicks.reshape(flat), np.repeat(np.arange(QUERIES), DOCUMENTS))
    settings = PropensitySettings(assumed_eta=assumed_eta)
    assumed = np.arange(1.0, SHOWN + 1) ** -assumed_eta
    estimate = estimate_curve(ESTIMATORS["all_pairs"], log.evidence(), assumed, settings)
    return estimate.positions, estimate.eta_deviation


@dataclass(frozen=True)
class Pool:
    """The documents whose grades are drawn: shown, or in the top ten of a compared system."""

    mask: Bools
    lists: Ragged

    def select(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.broadcast_to(values, self.mask.shape)[self.mask]

    def find_top(self, order: Ints) -> Ints:
        """The rows of the top tens among those of the pool."""
        place = np.cumsum(self.mask.ravel()).reshape(self.mask.shape) - 1
        return np.asarray(np.take_along_axis(place, order[:, :SHOWN], 1).ravel())

    def build_block(self, top: Ints, grade: Floats) -> Block:
        """The top tens, and the grades of the pool as labels; NaN is no label."""
        graded = ~np.isnan(grade)
        every = graded.all()
        return Block(
            ranked=TOP_TENS,
            grade=grade[top],
            labelled=self.lists if every else self.lists.keep(graded),
            labels=grade if every else grade[graded],
        )


def build_pool(world: World, evidence: Evidence) -> Pool:
    mask = evidence.examinations > 0
    for system in (BASELINE, *CANDIDATES):
        mask = mask | (world.rank[system] <= SHOWN)
    return Pool(mask, Ragged.of_lengths(mask.sum(axis=1)))


def compute_ndcg(block: Block, unjudged: str = "zero") -> Floats:
    conventions = Conventions.model_validate({"unjudged": unjudged})
    return compute_metrics(block, [NDCG], conventions)[NDCG.key]


def compare_truth(world: World) -> dict[str, float]:
    """The true differences from production."""
    whole = Pool(np.ones_like(world.grade, dtype=bool), Ragged.of_lengths(np.full(QUERIES, DOCUMENTS)))
    grade = world.grade.ravel().astype(np.float64)
    value = {s: compute_ndcg(whole.build_block(whole.find_top(world.order[s]), grade)) for s in (BASELINE, *CANDIDATES)}
    return {name: float(np.nanmean(value[name] - value[BASELINE])) for name in CANDIDATES}


def estimate_mean(values: Floats) -> Estimate:
    """The mean over the queries where it is defined, with its standard error."""
    kept = values[~np.isnan(values)]
    n = len(kept)
    if n < 2:
        return Estimate(np.array(np.nan), np.array(np.nan), np.array(1.0))
    return Estimate(np.array(kept.mean()), np.array(kept.std(ddof=1) / np.sqrt(n)), np.array(n - 1.0))


def apply_cut_then_condense(world: World, evidence: Evidence) -> dict[str, Estimate]:
    """Point grades for shown documents over their mean, and queries with 70 % of both top tens judged."""
    x, e, rate = evidence.clicks, evidence.examinations, evidence.rate
    enough = e > 5
    mean = x.sum() / e.sum()
    weight = e[enough].sum()
    average = x[enough].sum() / weight
    spread = (x[enough] ** 2 / e[enough]).sum() / weight - average**2 - mean * (1 - mean) * enough.sum() / weight
    strength = np.clip(mean * (1 - mean) / spread - 1 if spread > 0 else 1000.0, 2.0, 1000.0)
    settings = GradeSettings()
    smooth = np.where(e > 0, (x + rate * strength) / (e + strength), np.nan)
    base = np.nanmean(np.where((e > 0).any(axis=1, keepdims=True), smooth, rate), axis=1, keepdims=True)
    grade = np.digitize(np.nan_to_num(smooth / base), settings.cuts).astype(np.float64)
    grade[(e < settings.minimum_examinations) | (world.shown.sum(axis=2) < settings.minimum_users)] = np.nan
    pool = build_pool(world, evidence)
    values, judged = {}, {}
    for system in (BASELINE, *CANDIDATES):
        block = pool.build_block(pool.find_top(world.order[system]), pool.select(grade))
        values[system] = compute_ndcg(block, "cut_then_condense")
        judged[system] = block.ranked.counts(block.judged) / SHOWN >= MIN_JUDGED
    return {
        name: estimate_mean(np.where(judged[name] & judged[BASELINE], values[name] - values[BASELINE], np.nan))
        for name in CANDIDATES
    }


def find_ranks(world: World) -> list[Ints]:
    """Per system, its ranks as the prior reads them: positions of the log, then the rankings of the candidates.

    Of queries that a system never served its ranking is known where it is compared.
    """
    ranks = []
    for system, pages in world.pages.items():
        usual = np.where(world.rank[system] <= SHOWN, world.rank[system], ABSENT)
        unserved = world.rank[system] if system == BASELINE else np.full_like(usual, UNKNOWN)
        ranks.append(np.where(pages[:, None] > 0, usual, unserved))
    return ranks + [world.rank[system] for system in CANDIDATES]


def fit_world(
    world: World,
    evidence: Evidence,
    seed: int,
    not_vouched: tuple[str, ...],
    opinions: Mapping[str, Floats] = MappingProxyType({}),
    other_days: tuple[str, ...] = (),
) -> tuple[Prior, PoolEvidence, Pool]:
    """The prior of a log, and the evidence of its pool; `opinions` are [query, document], NaN where there is none."""
    plan = FactorPlan(tuple(TRAFFIC), CANDIDATES, tuple(opinions))
    ranks = find_ranks(world)
    pool = build_pool(world, evidence)
    hashes = draw_words(np.arange(QUERIES * (DOCUMENTS + 1), dtype=np.uint64), 1, seed)[:, 0]
    query, doc = hashes[:QUERIES], hashes[QUERIES:].reshape(world.grade.shape)
    rows = np.stack([pool.select(each) for each in ranks], axis=1)
    count = pool.lists.rows
    columns = [pa.chunked_array([pool.select(values)]) for values in opinions.values()]
    scales = [choose_scale(name, column) for name, column in zip(opinions, columns, strict=True)]
    pooled = PoolEvidence(
        queries=pool.lists,
        query_hash=query,
        doc_hash=pool.select(doc),
        clicks=pool.select(evidence.clicks),
        examinations=pool.select(evidence.examinations),
        depth=pool.select(evidence.depth),
        rate=pool.select(evidence.rate),
        codes=bin_factors(plan, rows, bin_opinions(scales, columns, count)),
        floor=np.zeros(count),
        fixed=np.full(count, np.nan),
    )
    bucket = hash_bucket(query)[pool.lists.owner]
    table = tabulate_pairs(bucket, pooled.codes, pooled.clicks, pooled.examinations, pooled.depth, pooled.rate)
    prior = fit_prior(
        table,
        plan,
        draws=DRAWS,
        seed=seed,
        exponent_sd=evidence.exponent_sd,
        not_vouched=not_vouched,
        other_days=other_days,
    )
    return prior, pooled, pool


def score_draws(world: World, prior: Prior, pooled: PoolEvidence, pool: Pool) -> dict[str, dict[str, Floats]]:
    """By set and candidate, the differences from production [draw, query]."""
    differences: dict[str, dict[str, Floats]] = {}
    tops = {system: pool.find_top(world.order[system]) for system in (BASELINE, *CANDIDATES)}
    for name, _ in prior.draw_sets:
        grades = draw_grades(prior, name, pooled).astype(np.float64)
        value = {
            system: np.array([compute_ndcg(pool.build_block(top, grade)) for grade in grades])
            for system, top in tops.items()
        }
        differences[name] = {candidate: value[candidate] - value[BASELINE] for candidate in CANDIDATES}
    return differences


def measure_world(name: str, seed: int, pages: int) -> list[dict[str, object]]:
    """One row per rule and candidate: the truth, the estimate, its interval, and whether the gate passes it."""
    world = draw_world(name, seed, pages)
    evidence, truth = gather(world, name), compare_truth(world)
    today = apply_cut_then_condense(world, evidence)
    not_vouched = CANDIDATES if name in LEARNED else ()
    other_days = CANDIDATES if name == OTHER_DAYS else ()
    prior, pooled, pool = fit_world(world, evidence, seed, not_vouched=not_vouched, other_days=other_days)
    differences = score_draws(world, prior, pooled, pool)
    plan = Plan(systems=(BASELINE, *CANDIDATES), metrics=(NDCG.key,), draw_sets=prior.draw_sets)
    rows = []
    for candidate in CANDIDATES:
        draws = np.concatenate([differences[name][candidate] for name, _ in prior.draw_sets])
        within = estimate_mean(np.nanmean(differences[POSTERIOR][candidate], axis=0))
        doubt = np.array(candidate in not_vouched)
        place = {"world": name, "pages": pages, "candidate": candidate, "seed": seed, "truth": truth[candidate]}
        estimate = add_draws(within, np.nanmean(draws, axis=1), doubt, plan)
        point = DrawnEstimate(today[candidate], today[candidate], np.array(False), np.array(np.nan))
        rows += [
            place | {"rule": "cut_then_condense"} | describe_estimate(point),
            place | {"rule": "posterior"} | describe_estimate(estimate),
        ]
    return rows


def describe_estimate(estimate: DrawnEstimate) -> dict[str, object]:
    """The estimate, its interval, and whether a gate that tolerates a drop of 0.05 passes it."""
    low, high = estimate.interval(0.95)
    return {
        "estimate": float(estimate.first.value),
        "low": float(low),
        "high": float(high),
        "passes": all(float(each.low(0.95)) > -DROP for each in (estimate.first, estimate.other)),
    }


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per world, size and candidate; an estimate that does not exist covers nothing and calls nothing."""
    rows = rows.assign(
        error=rows["estimate"] - rows["truth"],
        covers=(rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"]),
        width=rows["high"] - rows["low"],
        above=rows["low"] > 0,
        below=rows["high"] < 0,
    )
    grouped = rows.groupby(["pages", "world", "candidate"], sort=False)
    return pd.DataFrame(
        {
            "seeds": grouped.size(),
            "true": grouped["truth"].mean(),
            "error": grouped["error"].mean(),
            "RMSE": grouped["error"].apply(lambda error: float(np.sqrt(np.nanmean(error**2)))),
            "covers": grouped["covers"].mean(),
            "width": grouped["width"].mean(),
            "called better": grouped["above"].mean(),
            "called worse": grouped["below"].mean(),
            "passes gate": grouped["passes"].mean(),
        }
    )


def measure(worlds: Iterable[str], seeds: Mapping[int, range]) -> dict[str, pd.DataFrame]:
    """Draw and measure every world with the seeds of every number of pages; one table per rule."""
    rows = []
    for pages, numbers in seeds.items():
        for name in worlds:
            start = time.monotonic()
            for seed in numbers:
                rows += measure_world(name, seed, pages)
            print(f"{name}, {pages:,} pages: {(time.monotonic() - start) / len(numbers):.1f} s per seed", flush=True)
    table = pd.DataFrame(rows)
    return {str(rule): summarise(part) for rule, part in table.groupby("rule", sort=False)}


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Print the tables, and write their rows as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--pages", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[5], help="one number, or one per number of pages")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--to", type=Path, help="where the rows go, for benchmarks.world_chart and world_page")
    chosen = parser.parse_args(arguments)
    if len(chosen.seeds) not in (1, len(chosen.pages)):
        parser.error(f"--seeds: one number, or one for each of the {len(chosen.pages)} numbers of pages")
    counts = chosen.seeds * (len(chosen.pages) if len(chosen.seeds) == 1 else 1)
    ranges = [range(chosen.first_seed, chosen.first_seed + count) for count in counts]
    tables = measure(chosen.worlds, dict(zip(chosen.pages, ranges, strict=True)))
    for rule, table in tables.items():
        print(f"\n{rule}: ΔNDCG@10 against production")
        print(table.to_string(float_format=lambda value: f"{value:.3f}"))
    rows = {rule: table.reset_index().to_dict("records") for rule, table in tables.items()}
    if chosen.to is not None:
        chosen.to.parent.mkdir(parents=True, exist_ok=True)
        chosen.to.write_text(json.dumps({"worlds": rows}, indent=2) + "\n", encoding="utf-8")
    return rows


if __name__ == "__main__":
    main()
