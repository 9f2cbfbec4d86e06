"""Position bias on simulated logs: errors of the estimators, coverage of their intervals, false and true alarms.

python -m benchmarks.propensity --draws 100
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from pipelines.labels.propensity.estimate import diagnose_curve
from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.intervals import CurveEstimate, estimate_curve
from pipelines.labels.propensity.registry import ESTIMATORS, build_flat_curve
from pipelines.labels.propensity.settings import PropensitySettings
from tests.helpers.click_logs import ATTRACTION, draw_log
from tests.unit.labels.test_propensity import FOUR, LOPSIDED, TRUE, mean_error

SIZES = {
    "four equal arms": (FOUR, (13_000, 170_000, 1_550_000)),
    "arms of 85/10/5 %": (LOPSIDED, (11_500, 150_000, 1_400_000)),
}
FOLD = TRUE * np.where(np.arange(10) < 5, 1.0, 0.6)
# Attractiveness and power of the curve that lead to click rates of about 0.5, 5 and 30 %.
RATES = {"0.5 %": (0.07, 1.0), "5 %": (0.7, 1.0), "30 %": (1.8, 0.0625)}
SETTINGS = PropensitySettings()


def main() -> None:
    """Print errors by size, then coverage, then how often diagnostics warn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for name, (traffic, sizes) in SIZES.items():
        for pages in sizes:
            print(name, measure_errors(traffic, pages, arguments.seeds), flush=True)
    for name, examination in (("a power", TRUE), ("a fold", FOLD)):
        inside = [check_coverage(seed, examination) for seed in range(arguments.draws)]
        print(f"coverage, {name}: {np.mean(inside):.3f} (positions 2–10, {arguments.draws} draws)", flush=True)
    for rate, (level, power) in RATES.items():
        print(f"warnings at click rates of {rate}: {count_warnings(level, TRUE**power, arguments.draws)}", flush=True)


def estimate(name: str, evidence: PositionEvidence) -> CurveEstimate:
    """The published curve of an estimator."""
    return estimate_curve(ESTIMATORS[name], evidence, TRUE, SETTINGS)


def measure_errors(traffic: list[float], pages: int, seeds: int) -> str:
    """Mean relative error of θ_k/θ_1 over positions 1–10, mean of the seeds."""
    values_by_name: dict[str, list[float]] = {"clicks": [], "all_pairs": [], "em": [], "naive": []}
    for seed in range(1, seeds + 1):
        log = draw_log(seed, pages, traffic)
        values_by_name["clicks"].append(float(log.clicks.sum()))
        for name in ("all_pairs", "em"):
            values_by_name[name].append(mean_error(estimate(name, log.evidence()).positions))
        values_by_name["naive"].append(mean_error(log.clicks.sum(axis=0) / log.shown.sum(axis=0)))
    return ", ".join(f"{name} {np.mean(values):,.4g}" for name, values in values_by_name.items())


def check_coverage(seed: int, examination: Floats) -> list[bool]:
    """Whether each confidence interval of one log covers the truth."""
    low, high = estimate("all_pairs", draw_log(seed, 60_000, FOUR, examination=examination).evidence()).bounds()
    return [bool(hit) for hit in ((low <= examination) & (high >= examination))[1:]]


def count_warnings(level: float, true: Floats, draws: int) -> str:
    """In how many draws a diagnostic warns of the true curve, of the estimated one, and of the root of the true one."""
    warnings: Counter[str] = Counter()
    clicks, shown = 0.0, 0.0
    for seed in range(draws):
        log = draw_log(seed, 60_000, FOUR, queries=300, examination=true, attraction=np.minimum(ATTRACTION * level, 1))
        clicks, shown, evidence = clicks + log.clicks.sum(), shown + log.shown.sum(), log.evidence()
        curves = {"true": build_exact(true), "estimated": estimate("all_pairs", evidence)}
        curves |= {"off by k^.5": build_exact(true / TRUE**0.5)}
        for name, curve in curves.items():
            diagnostics = diagnose_curve(ESTIMATORS["all_pairs"], evidence, curve, TRUE, SETTINGS)
            warnings[name] += any(diagnostic.warning for diagnostic in diagnostics)
    counts = ", ".join(f"{name} {warnings[name]}" for name in curves)
    return f"{counts} of {draws} draws ({clicks / draws:,.0f} clicks each, click rate {clicks / shown:.2%})"


def build_exact(positions: Floats) -> CurveEstimate:
    """A curve without error."""
    return CurveEstimate(
        curve=build_flat_curve(positions),
        positions=positions,
        error=np.zeros(positions.size),
        basis=("measured",) * positions.size,
    )


if __name__ == "__main__":
    main()
