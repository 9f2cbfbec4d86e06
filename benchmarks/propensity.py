"""How near the estimators of position bias come to a curve that is known, and how often their intervals hold it.

python -m benchmarks.propensity --draws 100
"""

from __future__ import annotations

import argparse

import numpy as np

from pipelines.propensity.all_pairs import all_pairs
from pipelines.propensity.em import fit_counts
from pipelines.propensity.estimators import estimator_named
from pipelines.propensity.intervals import estimate
from tests.unit.drawn import draw_log
from tests.unit.test_propensity import FLAT, FOUR, LOPSIDED, TRUE, error_of, evidence_of

SIZES = {
    "four equal arms": (FOUR, (13_000, 170_000, 1_550_000)),
    "arms of 85/10/5 %": (LOPSIDED, (11_500, 150_000, 1_400_000)),
}


def main() -> None:
    """Print errors by size, then the coverage of the jackknife."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for name, (traffic, sizes) in SIZES.items():
        for pages in sizes:
            print(name, errors(traffic, pages, given.seeds), flush=True)
    inside = [covered(seed) for seed in range(given.draws)]
    print(f"jackknife: the truth lies within {np.mean(inside):.3f} of intervals (positions 2–10, {given.draws} draws)")


def errors(traffic: list[float], pages: int, seeds: int) -> str:
    """Mean relative error of θ_k/θ_1 over positions 1–10, mean of the seeds."""
    found: dict[str, list[float]] = {"clicks": [], "all_pairs": [], "em": [], "naive": []}
    for seed in range(1, seeds + 1):
        log = draw_log(seed, pages, traffic)
        cells = log.cells()
        found["clicks"].append(float(log.clicks.sum()))
        found["all_pairs"].append(error_of(all_pairs(evidence_of(log), FLAT).propensity[:, 0]))
        found["em"].append(
            error_of(fit_counts(cells.pair, cells.position, cells.shown, cells.clicks, TRUE).examination)
        )
        found["naive"].append(error_of(log.clicks.sum(axis=0) / log.shown.sum(axis=0)))
    return ", ".join(f"{name} {np.mean(values):,.4g}" for name, values in found.items())


def covered(seed: int) -> list[bool]:
    """Whether each interval of one log holds the truth."""
    evidence = evidence_of(draw_log(seed, 60_000, FOUR))
    low, high = estimate(estimator_named("all_pairs"), evidence, FLAT, jackknife=True).bounds()
    return [bool(hit) for hit in ((low <= TRUE) & (high >= TRUE))[1:]]


if __name__ == "__main__":
    main()
