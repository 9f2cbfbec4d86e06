"""The label stage counts what the same rules count as plain SQL in DuckDB: the same cells, users and drops."""

from pathlib import Path

import duckdb
import pandas as pd
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import label_rules
from pipelines.labels.build import tally_log
from pipelines.labels.denoise.cells import COUNTS
from pipelines.labels.denoise.registry import ORDER
from pipelines.labels.denoise.settings import DenoiseSettings, InternalUser
from pipelines.labels.settings import LabelSettings
from pipelines.simulation.settings import DirtSettings, SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.checkpoint import build_checkpointer, keep_in_memory
from tests.helpers.outcomes import read_log

RULES = DenoiseSettings(internal_user=InternalUser(pattern="^staff-"))
NOISE = DirtSettings(heavy=0.03, hammer=0.02)  # users with 80 searches a day, and with 30 clicks on one product
CELL = ["query_id", "doc_id", "position"]


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated log in which some pages repeat a document, and others name no user."""
    folder = tmp_path_factory.mktemp("log")
    log = simulate(
        spark, SimulationSettings(pages=3_000, queries=40, documents=12, seed=5, dirt=NOISE), keep=keep_in_memory
    )

    def draw(name: str, groups: int) -> Column:
        return F.pmod(F.xxhash64(F.lit(name), "serp_id"), F.lit(groups))

    first = log.impressions.where("position = 1")
    below, again = first.where(draw("below", 20) == 0), first.where(draw("again", 50) == 0)
    shown = log.impressions.unionByName(below.withColumn("position", F.lit(11))).unionByName(again)
    person = F.col("user_id").startswith("person-")  # the others are planted for rules on users
    nobody = F.when(person & (draw("nobody", 10) == 0), F.lit(" Guest")).otherwise(F.col("user_id"))
    shown = shown.withColumns({"user_id": nobody, "draw": F.xxhash64("serp_id")})
    done = log.interactions.withColumn("user_id", F.when(F.col("serp_id").isNull(), F.col("user_id")).otherwise(nobody))
    shown.write.parquet(str(folder / "impressions"))
    done.write.parquet(str(folder / "interactions"))
    return folder


@pytest.fixture(scope="module")
def expected(log: Path) -> dict[str, pd.DataFrame]:
    with duckdb.connect() as connection:
        for name in ("impressions", "interactions"):
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{log / name}/*.parquet')")
        label_rules.apply_rules(connection)
        queries = {"cells": label_rules.CELLS, "users": label_rules.USERS, "drops": label_rules.DROPS}
        return {name: connection.execute(query).df() for name, query in queries.items()}


def sort_table(table: DataFrame, keys: list[str]) -> pd.DataFrame:
    return table.toPandas().sort_values(keys, ignore_index=True)


def test_cells_users_and_drops_are_those_of_plain_sql(
    spark: SparkSession, tmp_path: Path, log: Path, expected: dict[str, pd.DataFrame]
) -> None:
    checkpoint = build_checkpointer(str(tmp_path))
    tallied = tally_log(
        *read_log(spark.read.parquet(str(log / "impressions")), spark.read.parquet(str(log / "interactions"))),
        LabelSettings(denoise=RULES),
        checkpoint=checkpoint,
        impressions_read=None,
        learned_days=(),
    ).tallied

    assert label_rules.RULES == ORDER
    sums = [F.sum(name).alias(name) for name in COUNTS]
    cells = tallied.where("bits = 0").groupBy(*CELL).agg(*sums)
    users = tallied.where("bits = 0").groupBy(*CELL[:2]).agg(F.sum("users").alias("users"))
    drops = tallied.where("bits <> 0 AND dropped_users IS NULL").groupBy("bits").agg(*sums)
    pd.testing.assert_frame_equal(sort_table(cells, CELL), expected["cells"], check_dtype=False)
    pd.testing.assert_frame_equal(sort_table(users, CELL[:2]), expected["users"], check_dtype=False)
    pd.testing.assert_frame_equal(sort_table(drops, ["bits"]), expected["drops"], check_dtype=False)
    dropped = {rule for place, rule in enumerate(ORDER) if (expected["drops"]["bits"].to_numpy() & 1 << place).any()}
    assert dropped == set(ORDER)  # the log has something for every rule
