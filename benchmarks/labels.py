"""Compare labels with a known truth: which system do they call better, and is it?

    python -m benchmarks.labels --pages 400000 --seeds 4

Simulates logs, evaluates them as `assay evaluate` does, and prints the differences from production and the gate's
verdicts beside the differences by the true grades and by naive click rates.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.support.session import open_session
from jobs.support.truth import PAIR, compare_with_truth
from pipelines.config.model import Config
from pipelines.config.spark import SparkSettings
from pipelines.evaluate import evaluate
from pipelines.label import label
from pipelines.simulation.settings import SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage

DAY = dt.date(2026, 1, 11)
LOG = ("impressions", "interactions", "queries")


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--depths", type=int, nargs="+", default=[20, 10], help="documents in every ranking")
    parser.add_argument("--no-coec", action="store_true", help="skip coec, which labels the log twice")
    parser.add_argument("--picture", type=Path, help="write a chart of the means there, as SVG")
    arguments = parser.parse_args()
    settings = {"spark.driver.memory": arguments.memory, "spark.sql.shuffle.partitions": "8"}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    with open_session(SparkSettings(master="local[2]", settings=settings), "assay benchmark labels") as spark:
        tables = [
            run_seed(spark, seed, arguments.pages, arguments.depths, coec=not arguments.no_coec) for seed in seeds
        ]
    print(f"\nmean of {arguments.seeds} seeds, {arguments.pages:,} pages")
    means = pd.concat(tables).groupby(level=[0, 1]).mean(numeric_only=True)
    print(means.round(4).to_string())
    if arguments.picture is not None:
        title = (
            f"NDCG@10 against production: {arguments.pages:,} pages of a simulated log, mean of {arguments.seeds} seeds"
        )
        arguments.picture.write_text(render_chart(means.loc[max(arguments.depths)], title), encoding="utf-8")


def run_seed(spark: SparkSession, seed: int, pages: int, depths: Sequence[int], *, coec: bool) -> pd.DataFrame:
    """One log: the true and the estimated difference from production, by depth and system."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_logs(spark, SimulationSettings(seed=seed, pages=pages), folder, depths)
        start = time.monotonic()
        first = evaluate(spark, build_config(folder, depths[0]), DAY).manifest
        seconds = time.monotonic() - start
        runs = {depths[0]: first}
        for depth in depths[1:]:  # with the same labels
            runs[depth] = evaluate(spark, build_config(folder, depth, labels_of=first.run), DAY).manifest
        impressions = first.inputs["impressions"]["read"]
        print(
            f"seed {seed}: {impressions:,} impressions evaluated in {seconds:.0f} s; rank correlation with the true "
            f"grade: {describe_correlations(spark, folder, first, coec=coec)}",
            flush=True,
        )
        tables = {depth: compare_run(folder, depth, manifest, first) for depth, manifest in runs.items()}
        table = pd.concat(tables, names=["depth", "system"])
    print(table.round(4).to_string(), flush=True)
    return table


def write_logs(spark: SparkSession, config: SimulationSettings, folder: Path, depths: Sequence[int]) -> None:
    """Write the log, its truth, and the rankings at every depth."""
    log = simulate(spark, config)
    for name in (*LOG, "truth_grades"):
        getattr(log, name).write.parquet(str(folder / name))
    for depth in depths:
        log.rankings.where(F.col("rank") <= depth).write.parquet(str(folder / f"rankings-{depth}"))


def build_config(folder: Path, depth: int, **values: object) -> Config:
    """A typical configuration: production is the baseline, and no candidate may be worse."""
    inputs = {name: {"path": str(folder / name)} for name in LOG}
    fixed = {
        "inputs": inputs | {"rankings": {"path": str(folder / f"rankings-{depth}")}},
        "metrics": ["ndcg@10"],
        "labels": {"denoise": {"internal_user": {"pattern": "^staff-"}}},
        "compare": {"baseline": "production", "movers": 0},
        "gate": [{"metric": "ndcg@10", "drop": 0.01}],
        "checks": "off",  # measured elsewhere
        "warehouse": str(folder / "warehouse"),
    }
    return Config.model_validate(fixed | values)


def read_run_table(folder: Path, manifest: Manifest, name: str) -> pd.DataFrame:
    """A published table of a run."""
    data = Storage(str(folder / "warehouse")).dataset(manifest.tables[name].path)
    table: pd.DataFrame = data.to_table().to_pandas()
    return table


def describe_correlations(spark: SparkSession, folder: Path, manifest: Manifest, *, coec: bool) -> str:
    """Rank correlation of labels, click rates and clicks over expected clicks with the true grade, on judged pairs."""
    truth = pd.read_parquet(folder / "truth_grades").rename(columns={"grade": "truth"})
    labels = read_run_table(folder, manifest, "labels")
    judged = labels[labels["grade"].notna()].merge(truth, on=PAIR)
    shown = ["relevance", "ctr"]
    if coec:
        judged = judged.merge(label_by_coec(spark, folder), on=PAIR)
        shown.append("coec")
    values = [f"{name} {judged['truth'].corr(judged[name], method='spearman'):.3f}" for name in shown]
    return ", ".join(values) + f" on {len(judged):,} pairs"


def label_by_coec(spark: SparkSession, folder: Path) -> pd.DataFrame:
    """The relevance of every pair with position bias estimated by clicks over expected clicks."""
    config = build_config(folder, 0)  # a depth that is not read: only the log is
    plain = config.labels.propensity.model_copy(update={"estimator": "coec", "jackknife": False})
    other = config.model_copy(update={"labels": config.labels.model_copy(update={"propensity": plain})})
    labels = read_run_table(folder, label(spark, other, DAY).manifest, "labels")
    return labels[[*PAIR, "relevance"]].rename(columns={"relevance": "coec"})


def compare_run(folder: Path, depth: int, manifest: Manifest, labelled: Manifest) -> pd.DataFrame:
    """The differences of the run by system, beside the truth and other conventions."""
    rankings, truth = (pd.read_parquet(folder / name) for name in (f"rankings-{depth}", "truth_grades"))
    comparisons = read_run_table(folder, manifest, "comparisons")
    gaps = compare_with_truth(rankings, truth, read_run_table(folder, labelled, "labels"), comparisons).gaps
    ways = read_run_table(folder, manifest, "sensitivity").pivot(index="candidate", columns="unjudged", values="delta")
    whole = comparisons[(comparisons["segment"] == "all") & (comparisons["metric"] == "ndcg_at_10")]
    kept = whole.set_index("candidate")
    return pd.DataFrame(
        {
            "true": gaps["true"],
            "this rule": gaps["assay"],
            "naive, unseen 0": gaps["clicks"],
            "debiased, unjudged 0": ways["zero"],
            "condensed before the cut": ways["condense"],
            "queries kept": kept["queries"].astype(float),
            "traffic kept": kept["kept_traffic"],
            "gate": kept["gate"],
        }
    ).rename_axis("system")


SHOWN = {
    "true": ("#888", "true"),
    "this rule": ("#1a7f4b", "Assay"),
    "naive, unseen 0": ("#c0392b", "naive click rate"),
}


def render_chart(means: pd.DataFrame, title: str) -> str:
    """A chart of the differences from production: true, by Assay, and by click rates."""
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


if __name__ == "__main__":
    main()
