"""Logs in shapes that people first try: each run ends well, and each sentence is true of the data."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pipelines.config.model import Config
from pipelines.label import label
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.tables import read_table
from schemas.errors import DataQualityError
from schemas.outputs import GRADE_PROBABILITIES

DAY = dt.date(2026, 1, 11)
START = dt.datetime(2026, 1, 11, 1)


@dataclass(frozen=True)
class OddLog:
    impressions: pd.DataFrame
    interactions: pd.DataFrame

    @property
    def clicks(self) -> pd.DataFrame:
        return self.interactions[self.interactions["kind"] == "click"]


def build_log(*, pages: int, queries: int, positions: int, systems: str = "ab", rate: float = 0.6) -> OddLog:
    """Pages of systems that rotate the same documents by one place each; every third page is of the same user."""
    rng = np.random.default_rng(5)
    page, k = (axis.ravel() for axis in np.mgrid[0:pages, 1 : positions + 1])
    system = page // queries % len(systems)
    doc = (k - 1 + system) % positions
    shown = pd.DataFrame(
        {
            "serp_id": np.char.add("s", page.astype(str)),
            "query_id": np.char.add("q", (page % queries).astype(str)),
            "user_id": np.char.add("u", (page % max(pages // 3, 1)).astype(str)),
            "doc_id": np.char.add("d", doc.astype(str)),
            "position": k.astype(np.int32),
            "ts": START + pd.to_timedelta(page * 7, unit="s"),
            "system": np.array(list(systems))[system],
        }
    )
    clicked = rng.random(page.size) < rate * (1 + doc % 3) / 3 / k
    return OddLog(shown, click_on(shown[clicked]))


def click_on(results: pd.DataFrame, kind: str = "click") -> pd.DataFrame:
    events = results[["serp_id", "doc_id", "user_id", "ts"]].reset_index(drop=True)
    numbers = events.index.astype(str)
    ts = events["ts"] + pd.Timedelta(seconds=20)
    return events.assign(event_id=f"{kind}-" + numbers, kind=kind, ts=ts, dwell_seconds=60.0)


@dataclass(frozen=True)
class LabelRun:
    manifest: Manifest
    labels: pd.DataFrame
    propensities: pd.DataFrame
    funnel: pd.DataFrame

    @property
    def sentences(self) -> dict[str, str]:
        return {verdict["check"]: verdict["sentence"] for verdict in self.manifest.labels["verdicts"]}


def write_config(log: OddLog, folder: Path) -> Config:
    inputs = {"impressions": log.impressions, "interactions": log.interactions}
    for name, table in inputs.items():
        table.to_parquet(folder / f"{name}.parquet", coerce_timestamps="us", allow_truncated_timestamps=True)
    paths = {name: {"path": str(folder / f"{name}.parquet")} for name in inputs}
    return Config.model_validate({"inputs": paths, "checks": "off", "warehouse": str(folder / "warehouse")})


def run_label(spark: SparkSession, log: OddLog, folder: Path) -> LabelRun:
    """Label a log, and check what must hold of every log."""
    config = write_config(log, folder)
    manifest = label(spark, config, DAY).manifest
    tables = {name: read_table(spark, config.warehouse, name).toPandas() for name in manifest.tables}
    labels, propensities = tables["labels"], tables["propensities"]
    assert propensities["propensity"].between(0, 1.5, inclusive="right").all()
    assert (labels["examinations"] <= 1.5 * labels["impressions"]).all()
    graded = labels[labels["grade"].notna()]
    assert graded[list(GRADE_PROBABILITIES)].sum(axis=1).to_numpy() == pytest.approx(np.ones(len(graded)))
    assert labels.loc[labels["grade"].isna(), list(GRADE_PROBABILITIES)].isna().all(axis=None)
    counts = manifest.labels
    assert all(counts["kept"][kind] + counts["dropped"][kind] == read for kind, read in counts["read"].items())
    return LabelRun(
        manifest=manifest,
        labels=labels,
        propensities=propensities,
        funnel=tables["denoise_funnel"].set_index("rule"),
    )


def test_one_query(spark: SparkSession, tmp_path: Path) -> None:
    run = run_label(spark, build_log(pages=250, queries=1, positions=10), tmp_path)
    assert "systems" not in run.sentences, "both systems are named, whatever the query is called"
    assert run.sentences["personalised"].startswith("Documents keep their position within one system and day (0.0%")
    assert run.manifest.labels["kept"]["impressions"] == 2500
    assert len(run.labels) == 10
    assert run.labels["grade"].notna().all()


def test_many_positions_and_few_searches(spark: SparkSession, tmp_path: Path) -> None:
    log = build_log(pages=200, queries=100, positions=38, rate=0.2)
    run = run_label(spark, log, tmp_path)
    assert sorted(run.propensities["position"]) == list(range(1, 39))
    assert run.labels["impressions"].sum() == len(log.impressions)


def test_pages_that_repeat_a_document(spark: SparkSession, tmp_path: Path) -> None:
    log = build_log(pages=3600, queries=60, positions=4)
    top = log.impressions[log.impressions["position"] == 1]
    again = top.iloc[:: len(top) // 101].iloc[:101].assign(position=5)
    run = run_label(spark, OddLog(pd.concat([log.impressions, again]), log.interactions), tmp_path)
    assert run.funnel.loc["repeated_result", "impressions_dropped"] == 101
    assert run.funnel.loc["repeated_result", "clicks_dropped"] == 0
    assert run.labels["impressions"].sum() == len(log.impressions)
    assert run.labels["clicks"].sum() == len(log.clicks), "each click counts once"
    assert log.clicks["serp_id"].isin(again["serp_id"]).any()


def test_one_system_that_moves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    log = build_log(pages=400, queries=20, positions=5, systems="p")
    run = run_label(spark, log, tmp_path)
    assert log.impressions.groupby(["query_id", "doc_id"])["position"].nunique().max() == 1
    assert "no document was shown both at position 1 and at another" in run.sentences["connected"]
    assert run.sentences["systems"].startswith("One system, p, served all pages")


def test_anonymous_users(spark: SparkSession, tmp_path: Path) -> None:
    """More pages a day than a person makes, and purchases that name no page."""
    log = build_log(pages=300, queries=10, positions=5)
    bought = click_on(log.impressions.iloc[:7], "purchase").assign(serp_id=None)
    events = pd.concat([log.interactions, bought]).assign(user_id="Anonymous ")
    missing = log.impressions["system"].map({"a": None, "b": "anonymous"})
    run = run_label(spark, OddLog(log.impressions.assign(user_id=missing), events), tmp_path)
    assert run.sentences["users"].startswith("300 of 300 pages name no user")
    assert "7 events name neither page nor user" in run.sentences["users"]
    assert run.manifest.labels["attributions"]["purchase/no_user"] == 7
    assert run.manifest.labels["dropped"]["impressions"] == 0
    assert (run.labels["users"] == run.labels["impressions"]).all(), "each page is one person"
    assert run.labels["grade"].notna().any()


def test_one_user_with_half_of_the_pages_and_pages_logged_when_clicked(spark: SparkSession, tmp_path: Path) -> None:
    whole = build_log(pages=600, queries=10, positions=5)
    log = OddLog(
        whole.impressions[whole.impressions["serp_id"].isin(whole.clicks["serp_id"])].copy(), whole.interactions.copy()
    )
    for table in (log.impressions, log.interactions):
        table["user_id"] = table["user_id"].where(table["serp_id"].str.endswith(("1", "2", "3")), "web")
    run = run_label(spark, log, tmp_path)
    pages = log.impressions.drop_duplicates("serp_id")
    share = (pages["user_id"] == "web").mean()
    assert share >= 0.5
    assert f"or 'web', which has {share:.0%} of all pages" in run.sentences["users"]
    assert run.sentences["clicked_pages"].startswith(f"{len(pages)} of {len(pages)} pages have a click")
    assert run.manifest.labels["dropped"]["impressions"] == 0


def test_results_logged_when_scrolled_into_view_in_two_blocks(spark: SparkSession, tmp_path: Path) -> None:
    whole = build_log(pages=600, queries=10, positions=8)
    rng = np.random.default_rng(1)
    depth = pd.Series(rng.geometric(0.25, 600), index=[f"s{page}" for page in range(600)])
    seen = whole.impressions[whole.impressions["position"] <= whole.impressions["serp_id"].map(depth)]
    block = seen[seen["position"] == 1].iloc[::10].assign(doc_id="carousel", system="a")
    log = OddLog(pd.concat([seen, block]), whole.clicks.merge(seen[["serp_id", "doc_id"]]))
    run = run_label(spark, log, tmp_path)
    assert run.sentences["blocks"].startswith(f"On {len(block)} of 600 pages several documents have the same position")
    assert "scrolled into view" in run.sentences["thinning"]
    shown = seen["position"].value_counts()
    assert f"position 8 is shown on {shown[8] / (600 + len(block)):.0%} of the pages" in run.sentences["thinning"]


def test_a_log_that_the_rules_drop_is_refused_with_the_rule(spark: SparkSession, tmp_path: Path) -> None:
    log = build_log(pages=180, queries=10, positions=5)
    for table in (log.impressions, log.interactions):
        table["user_id"] = "robot-" + table["serp_id"].str[-1].astype(int).mod(3).astype(str)
    config = write_config(log, tmp_path)
    with pytest.raises(DataQualityError, match=r"too_many_queries dropped 900 of 900.*pages = 50") as error:
        label(spark, config, DAY)
    assert (error.value.exit_code, error.value.where) == (4, "labels.denoise.too_many_queries")
    left = [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert left == [], "nothing is published"
