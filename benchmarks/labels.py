"""Labels against a truth that is known: which system do they call better, and is it?

    python -m benchmarks.labels --pages 400000 --seeds 4

Draws logs, builds labels with the real stages, scores every system with them by the rule for labels that have holes,
and prints the differences from production beside those by the true grades and by naive click rates.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.session import session
from pipelines.config import Spark
from pipelines.denoise.pairs import cells_of
from pipelines.denoise.settings import DenoiseSettings, InternalUser
from pipelines.grade import grade
from pipelines.hold import held_in
from pipelines.label import build_labels
from pipelines.label_config import LabelConfig
from pipelines.propensity.estimate import estimate_propensities
from pipelines.propensity.settings import PropensitySettings
from pipelines.score import Evidence, score
from pipelines.simulate import Simulation, simulate
from pipelines.simulation.config import SimulationConfig
from udfs.conventions import Conventions
from udfs.registry import parse_all

PRODUCTION = "production"
JUDGED = 0.7  # share of the top ten that must be judged for both systems
SETTINGS = LabelConfig(denoise=DenoiseSettings(internal_user=InternalUser(pattern="^staff-")))
METRIC = {"exp2": "ndcg@10", "linear": "ndcg(gain=linear)@10"}


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--depths", type=int, nargs="+", default=[10, 20], help="documents in every ranking")
    parser.add_argument("--picture", type=Path, help="draw the means there, as SVG")
    given = parser.parse_args()
    settings = {"spark.driver.memory": given.memory, "spark.sql.shuffle.partitions": "8"}
    with session(Spark(master="local[2]", settings=settings), "assay benchmark labels") as spark:
        tables = [
            run(spark, seed, given.pages, given.depths)
            for seed in range(given.first_seed, given.first_seed + given.seeds)
        ]
    print(f"\nmean of {given.seeds} seeds, {given.pages:,} pages")
    means = pd.concat(tables).groupby(level=[0, 1]).mean()
    print(means.round(4).to_string())
    if given.picture is not None:
        title = f"NDCG@10 against production: {given.pages:,} pages of a simulated log, mean of {given.seeds} seeds"
        given.picture.write_text(drawing(means.loc[max(given.depths)], title), encoding="utf-8")


def run(spark: SparkSession, seed: int, pages: int, depths: Sequence[int]) -> pd.DataFrame:
    """One log: per system the true difference from production, and what the labels say."""
    config = SimulationConfig(seed=seed, pages=pages)
    with tempfile.TemporaryDirectory() as folder:
        log = _stored(spark, simulate(spark, config), Path(folder))
        start = time.monotonic()
        held: list[DataFrame] = []
        hold = held_in(f"{folder}/held")

        def keep(table: DataFrame) -> DataFrame:
            held.append(hold(table))
            return held[-1]

        built = build_labels(log.impressions, log.interactions, SETTINGS, keep=keep)
        labels = keep(built.labels)
        seconds = time.monotonic() - start
        impressions = log.impressions.count()
        curve = np.array([row.propensity for row in built.propensities.orderBy("position").collect()])
        error = float(np.mean(np.abs(curve * np.arange(1, curve.size + 1) - 1)))
        coec = _by_coec(held[0])
        print(
            f"seed {seed}: {impressions:,} impressions, {impressions / seconds:,.0f} rows/s to labels; "
            f"propensity error {error:.3f}; rank correlation with the true grade: {_correlations(log, labels, coec)}",
            flush=True,
        )
        table = pd.concat({depth: _compare(log, labels, depth) for depth in depths}, names=["depth", "system"])
    print(table.round(4).to_string(), flush=True)
    return table


def _stored(spark: SparkSession, log: Simulation, folder: Path) -> Simulation:
    """The log as files, so that what is timed is labelling and not drawing."""
    tables = {}
    for name in ("impressions", "interactions", "rankings", "truth_grades"):
        getattr(log, name).write.parquet(str(folder / name))
        tables[name] = spark.read.parquet(str(folder / name))
    return replace(log, **tables)


def _by_coec(tallied: DataFrame) -> DataFrame:
    """What clicks over expected clicks say of the same counts."""
    settings = PropensitySettings(estimator="coec")
    cells = cells_of(tallied, max_position=settings.max_position)
    graded = grade(cells, estimate_propensities(cells, tallied, settings), SETTINGS.grade)
    return graded.select("query_id", "doc_id", F.col("lift_click").alias("coec"))


def _correlations(log: Simulation, labels: DataFrame, coec: DataFrame) -> str:
    truth, pair = log.truth_grades.withColumnRenamed("grade", "truth"), ["query_id", "doc_id"]
    judged = labels.where("grade IS NOT NULL").join(truth, pair).join(coec, pair).toPandas()
    shown = {name: judged["truth"].corr(judged[name], method="spearman") for name in ("lift_click", "ctr", "coec")}
    return ", ".join(f"{name} {value:.3f}" for name, value in shown.items()) + f" on {len(judged):,} pairs"


def _compare(log: Simulation, labels: DataFrame, depth: int) -> pd.DataFrame:
    rankings = log.rankings.where(F.col("rank") <= depth).withColumn("score", F.lit(None).cast("double"))
    systems = sorted(row.system for row in rankings.select("system").distinct().collect())
    pair = ("query_id", "doc_id")
    behaviour = labels.where("grade IS NOT NULL").select(*pair, F.col("grade").cast("double"))
    naive = labels.select(*pair, F.col("ctr").alias("grade"))
    true = log.truth_grades.select(*pair, F.col("grade").cast("double"))

    shown = rankings.where(F.col("rank") <= 10).join(behaviour, list(pair), "left")
    share = F.mean(F.col("grade").isNotNull().cast("double")).alias("judged")
    judged = shown.groupBy("query_id", "system").agg(share).toPandas()
    judged = judged.pivot(index="query_id", columns="system", values="judged")

    def scored(grades: DataFrame, gain: str, unjudged: str) -> pd.DataFrame:
        specs = parse_all((METRIC[gain],))
        rule = Conventions(unjudged=unjudged)
        table = score(
            rankings, Evidence(grades), systems=systems, segments=(), specs=specs, conventions=rule
        ).toPandas()
        return table.pivot(index="query_id", columns="system", values=specs[0].key)

    by_truth, by_rule = scored(true, "exp2", "zero"), scored(behaviour, "exp2", "cut_then_condense")
    by_naive, by_zero = scored(naive, "linear", "zero"), scored(behaviour, "exp2", "zero")
    rows = {}
    for system in (name for name in systems if name != PRODUCTION):
        enough = (judged[[system, PRODUCTION]] >= JUDGED).all(axis=1).reindex(by_rule.index, fill_value=False)
        rows[system] = {
            "true": _gap(by_truth, system),
            "this rule": _gap(by_rule[enough], system),
            "naive, unseen 0": _gap(by_naive, system),
            "debiased, unjudged 0": _gap(by_zero, system),
            "queries kept": float(enough.sum()),
        }
    return pd.DataFrame(rows).T


SHOWN = {
    "true": ("#888", "true"),
    "this rule": ("#1a7f4b", "Assay"),
    "naive, unseen 0": ("#c0392b", "naive click rate"),
}


def drawing(means: pd.DataFrame, title: str) -> str:
    """The differences from production: true, as Assay reads them, and as click rates do."""
    values = means[list(SHOWN)]
    reach = 1.1 * float(values.abs().to_numpy().max())
    width, top, step = 640, 70, 40

    def x(value: float) -> float:
        return 350 + 250 * value / reach

    lines = [f'<line x1="{x(0)}" x2="{x(0)}" y1="{top - 20}" y2="{top + step * len(values)}" stroke="#aaa"/>']
    for place, (column, (colour, name)) in enumerate(SHOWN.items()):
        lines.append(f'<circle cx="{20 + 120 * place}" cy="40" r="6" fill="{colour}"/>')
        lines.append(f'<text x="{32 + 120 * place}" y="44">{name}</text>')
        for row, value in enumerate(values[column]):
            spot = f'cx="{x(value):.1f}" cy="{top + step * row + 10}"'
            lines.append(f'<circle {spot} r="6" fill="{colour}"><title>{value:+.3f}</title></circle>')
    lines += [f'<text x="20" y="{top + step * row + 14}">{name}</text>' for row, name in enumerate(values.index)]
    lines += [f'<text x="{x(0) - 60}" y="{top + step * len(values) + 20}">worse</text>']
    lines += [f'<text x="{x(0) + 20}" y="{top + step * len(values) + 20}">better than production</text>']
    height = top + step * len(values) + 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
    first = [f'{head} font-size="13">', '<rect width="100%" height="100%" fill="#fff"/>']
    return "\n".join([*first, f'<text x="20" y="20">{title}</text>', *lines, "</svg>\n"])


def _gap(table: pd.DataFrame, system: str) -> float:
    return float((table[system] - table[PRODUCTION]).mean())


if __name__ == "__main__":
    main()
