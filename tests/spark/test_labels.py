"""From a log with known truth to labels: the dirt is found, the curve is found, and the grades follow the formulas."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row, SparkSession, Window
from pyspark.sql import functions as F
from scipy.stats import gamma

from pipelines.agreed import agreement_lines
from pipelines.attribute import attribute
from pipelines.denoise.funnel import assert_nothing_is_lost
from pipelines.denoise.pages import judge_pages, together
from pipelines.denoise.registry import ORDER, bit
from pipelines.denoise.settings import DenoiseSettings, InternalUser
from pipelines.denoise.users import mark_users, suspect_users
from pipelines.grade import grade
from pipelines.hold import Keep, held_in
from pipelines.human import measure_agreement, merge_judgments
from pipelines.label import Labels, build_labels, complete
from pipelines.label_config import GradeSettings, HumanSettings, LabelConfig
from pipelines.propensity.settings import PropensitySettings
from pipelines.simulate import Simulation, simulate
from pipelines.simulation.config import Dirt, SimulationConfig
from schemas.errors import DataQualityError
from schemas.inputs import IMPRESSIONS, INTERACTIONS
from schemas.outputs import DENOISE_FUNNEL, LABELS, PROPENSITIES

CONFIG = SimulationConfig(pages=6_000, queries=150, documents=12, seed=3)
SETTINGS = LabelConfig(denoise=DenoiseSettings(internal_user=InternalUser(pattern="^staff-")))


def drawn(spark: SparkSession, config: SimulationConfig, folder: Path, *truths: str) -> Simulation:
    """A log as files, and truths about it: it is drawn once, and read as logs are."""
    log, keep = simulate(spark, config), held_in(str(folder))
    return replace(log, **{name: keep(getattr(log, name)) for name in ("impressions", "interactions", *truths)})


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    return drawn(spark, CONFIG, tmp_path_factory.mktemp("log"), "truth_grades", "truth_dirt")


@pytest.fixture(scope="module")
def built(log: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Labels:
    keep = held_in(str(tmp_path_factory.mktemp("built")))
    built = build_labels(log.impressions, log.interactions, SETTINGS, keep=keep)
    return replace(built, labels=keep(built.labels))


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    return held_in(str(tmp_path / "held"))


@pytest.fixture(scope="module")
def funnel(built: Labels) -> dict[str, Row]:
    return {row.rule: row for row in built.denoise_funnel.collect()}


def test_the_outputs_have_the_columns_of_their_contracts(built: Labels) -> None:
    assert built.labels.columns == LABELS.names
    assert built.propensities.columns == PROPENSITIES.names
    assert built.denoise_funnel.columns == DENOISE_FUNNEL.names
    assert dict(built.labels.dtypes) == {column.name: column.type for column in LABELS.columns}


def test_every_row_is_kept_or_dropped(built: Labels) -> None:
    read = {row.kind: row.read for row in built.read.collect()}
    kept = {row.kind: row for row in built.kept.collect()}
    parts = ({kind: row[part] for kind, row in kept.items()} for part in ("kept", "dropped"))
    assert_nothing_is_lost(read, *parts)
    with pytest.raises(DataQualityError, match="rows were read"):
        assert_nothing_is_lost({"clicks": 2}, {"clicks": 1}, {})


def test_planted_dirt_is_found(log: Simulation, funnel: dict[str, Row]) -> None:
    planted = log.truth_dirt.groupBy("rule", "table").agg(F.count("*").alias("rows")).collect()
    for row in planted:
        found = funnel[row.rule]["impressions_dropped" if row.table == "impressions" else "clicks_dropped"]
        if row.rule == "late_event":
            found += funnel[row.rule].purchases_dropped
        # What is left to one who hammers a product is one visit in thirty.
        assert found >= (0.95 if row.rule == "one_user_dominates" else 0.99) * row.rows, row.rule


def test_planted_rows_are_the_rows_that_are_found(log: Simulation, keep: Keep) -> None:
    """Row by row, so that what a rule drops elsewhere cannot make up for what it misses."""
    shown, done = complete(log.impressions, IMPRESSIONS), complete(log.interactions, INTERACTIONS)
    rows = together(shown, attribute(done, window_days=7), contexts=())
    rules = SETTINGS.denoise
    judged = keep(judge_pages(mark_users(rows, suspect_users(shown, rules), rules), rules))
    place = ["serp_id", "doc_id", "kind"]
    fates = judged.groupBy(*place).agg(F.bit_or("bits").alias("bits"))
    events = log.interactions.select(F.col("event_id").alias("key"), "serp_id", "kind").distinct()
    planted = log.truth_dirt.where("rule <> 'one_user_dominates'")  # which looks at pairs, after pages
    pages = planted.where("table = 'impressions'").selectExpr(
        "rule", "key AS serp_id", "doc_id", "'impression' AS kind"
    )
    acts = planted.where("table = 'interactions'").join(events, "key").select("rule", *place)
    hit = F.coalesce(*[F.when(F.col("rule") == n, F.col("bits").bitwiseAND(bit(n)) != 0) for n in ORDER], F.lit(False))
    found = pages.unionByName(acts).join(fates, place, "left").groupBy("rule", "kind")
    shares = {(row.rule, row.kind): row.share for row in found.agg(F.mean(hit.cast("int")).alias("share")).collect()}
    assert {rule for rule, _ in shares} == set(DenoiseSettings.model_fields) - {"one_user_dominates"}
    assert {where: share for where, share in shares.items() if share < 0.99} == {}


def test_clean_logs_raise_few_alarms(spark: SparkSession, tmp_path: Path, keep: Keep) -> None:
    clean = drawn(spark, CONFIG.model_copy(update={"dirt": Dirt.none()}), tmp_path)
    alarms = build_labels(clean.impressions, clean.interactions, LabelConfig(), keep=keep).denoise_funnel.toPandas()
    clicks = clean.interactions.where("kind = 'click'").count()
    assert alarms["impressions_dropped"].sum() <= 0.005 * CONFIG.pages * CONFIG.shown
    assert alarms["clicks_dropped"].sum() <= 0.005 * clicks


def test_quarantine_holds_the_events_without_impressions(built: Labels, funnel: dict[str, Row]) -> None:
    rows = built.quarantine.toPandas()
    assert len(rows) == funnel["no_impression"].clicks_dropped > 0
    assert rows["row"].str.contains('"event_id":"ghost-').all()


def test_the_curve_is_near_the_truth_and_says_so(built: Labels) -> None:
    curve = built.propensities.toPandas().sort_values("position")
    true = 1 / curve["position"]
    assert np.mean(np.abs(curve["propensity"] / true - 1)) < 0.3
    assert ((curve["low"] <= true) & (true <= curve["high"]))[1:].mean() > 0.7
    verdicts = built.verdicts.toPandas().set_index("check")
    assert not verdicts.loc["connected", "warning"]
    assert not verdicts.loc["personalised", "warning"]


def test_lift_follows_the_truth_better_than_click_rates(built: Labels, log: Simulation) -> None:
    truth = log.truth_grades.withColumnRenamed("grade", "truth")
    pairs = built.labels.where("grade IS NOT NULL").join(truth, ["query_id", "doc_id"], "inner").toPandas()
    lift, naive = (pairs["truth"].corr(pairs[name], method="spearman") for name in ("lift_click", "ctr"))
    assert lift > naive


def test_labels_do_not_depend_on_partitions_or_order(
    built: Labels, log: Simulation, spark: SparkSession, keep: Keep
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    shown = log.impressions.repartition(7, F.rand(1)).sortWithinPartitions(F.rand(2))
    done = log.interactions.repartition(3, F.rand(3))
    other = build_labels(shown, done, SETTINGS, keep=keep).labels.toPandas()
    first = built.labels.toPandas()
    key = ["query_id", "doc_id"]
    pd.testing.assert_frame_equal(
        first.sort_values(key, ignore_index=True), other.sort_values(key, ignore_index=True), rtol=1e-9, atol=1e-12
    )


def test_a_log_whose_rankers_never_move_documents_says_so(spark: SparkSession, tmp_path: Path, keep: Keep) -> None:
    still = SimulationConfig(pages=800, queries=30, documents=12, traffic={"production": 1.0}, dirt=Dirt.none())
    log = drawn(spark, still, tmp_path)
    built = build_labels(log.impressions, log.interactions, LabelConfig(), keep=keep)
    verdict = built.verdicts.where("check = 'connected'").first()
    assert verdict is not None
    assert verdict.warning
    assert "cannot be estimated" in verdict.sentence
    assert {row.estimator for row in built.propensities.where("position > 1").collect()} == {"assumed"}


def test_a_ranker_that_follows_its_users_is_found_out(log: Simulation, keep: Keep) -> None:
    """The same pages, each in an order of its user's own."""
    taste = Window.partitionBy("serp_id").orderBy(F.xxhash64("user_id", "doc_id"))
    personal = log.impressions.withColumn("position", F.row_number().over(taste))
    verdicts = build_labels(personal, log.interactions, SETTINGS, keep=keep).verdicts
    verdict = verdicts.where("check = 'personalised'").first()
    assert verdict is not None
    assert verdict.warning
    assert verdict.value > 0.5
    assert "not to be trusted" in verdict.sentence


CELLS = "query_id string, doc_id string, context string, position int, last_click int, impressions bigint, clicks " \
        "bigint, carts bigint, purchases bigint, users bigint"  # fmt: skip
USES = "record string, context string, position int, last_click int, propensity double, offset double"


def test_grades_follow_the_formulas(spark: SparkSession) -> None:
    cells = pd.DataFrame(
        [
            ("q", "good", "all", 1, 0, 100, 60, 0, 0, 80),
            ("q", "fair", "all", 2, 0, 200, 30, 0, 0, 150),
            ("q", "poor", "all", 2, 0, 100, 1, 0, 0, 90),
            ("q", "sold", "all", 1, 0, 100, 10, 10, 10, 90),
            ("q", "thin", "all", 2, 0, 5, 1, 0, 0, 5),
            ("q", "lone", "all", 1, 0, 50, 5, 0, 0, 1),
        ],
        columns=[part.split()[0] for part in CELLS.split(", ")],
    )
    uses = spark.createDataFrame([("use", "all", 1, 0, 1.0, 0.0), ("use", "all", 2, 0, 0.5, 0.0)], USES)
    found = grade(spark.createDataFrame(cells, CELLS), uses, GradeSettings()).toPandas().set_index("doc_id")

    looked = cells["impressions"] * np.where(cells["position"] == 1, 1.0, 0.5)
    m = cells["clicks"].sum() / looked.sum()
    base = (cells["clicks"].sum() + 200 * m) / (looked.sum() + 200)
    many = looked > 5
    rate = cells["clicks"] / looked
    mean = np.average(rate[many], weights=looked[many])
    spread = np.average((rate[many] - mean) ** 2, weights=looked[many])
    v = spread - np.average(m * (1 - m) / looked[many], weights=looked[many])
    s = float(np.clip(m * (1 - m) / v - 1, 2, 1000)) if v > 0 else 1000.0
    relevance = (cells["clicks"] + base * s) / (looked + s)
    expected = pd.DataFrame({"relevance": relevance, "lift": relevance / base, "looked": looked})
    expected.index = pd.Index(cells["doc_id"])
    order = list(cells["doc_id"])
    assert found.loc[order, "relevance"].to_numpy() == pytest.approx(expected["relevance"].to_numpy(), rel=1e-12)
    assert found.loc[order, "lift_click"].to_numpy() == pytest.approx(expected["lift"].to_numpy(), rel=1e-12)
    assert found.loc["good", "relevance_low"] == pytest.approx(gamma.ppf(0.05, 60 + base * s, scale=1 / (100 + s)))
    reasons = found["reason"].to_dict()
    assert reasons["thin"] == reasons["lone"] == "too_little_evidence"
    assert found["grade"].isna().to_dict()["thin"]
    assert reasons["sold"] == "promoted_by_purchase"
    assert found.loc["sold", "grade"] == 3
    assert found.loc["poor", "grade"] == 0
    by_cuts = sum(float(relevance[0] / base) >= cut for cut in (1, 1.5, 2.5))
    assert found["grade"].to_dict()["good"] == max(by_cuts, 3 if reasons["good"] == "promoted_by_purchase" else 0)


def test_human_judgments_replace_behaviour_and_are_compared_with_it(
    built: Labels, spark: SparkSession, keep: Keep
) -> None:
    graded = built.labels.where("grade IS NOT NULL").select("query_id", "doc_id", F.col("grade").cast("double"))
    judged = keep(graded.limit(200).union(spark.createDataFrame([("new", "doc", 2.0)], graded.schema)))
    settings = HumanSettings()
    merged = merge_judgments(built.labels, judged, settings)
    new = merged.where("query_id = 'new'").first()
    assert new is not None
    assert (new.grade, new.source, new.reason, new.impressions) == (2, "human", "judged", 0)
    assert merged.where("source = 'human'").count() == 201
    agreement = measure_agreement(built.labels, judged, settings).first()
    assert agreement is not None
    assert (agreement.pairs, agreement.equal, agreement.weighted_kappa) == (200, 1.0, 1.0)
    assert agreement.behaviour_order == pytest.approx(1.0) == agreement.judges_order
    assert agreement.behaviour_order_by_chance < 0.95


def test_agreement_holds_the_order_of_each_under_the_other(spark: SparkSession) -> None:
    # q: judges 3, 1, 0 and behaviour 1, 3, 0; r: the judges know no difference; s: behaviour does not.
    graded = [("q", "a", 1), ("q", "b", 3), ("q", "c", 0), ("r", "a", 2), ("r", "b", 0), ("s", "a", 1), ("s", "b", 1)]
    judged = [("q", "a", 3.0), ("q", "b", 1.0), ("q", "c", 0.0), ("r", "a", 1.0), ("r", "b", 1.0), ("s", "a", 2.0),
              ("s", "b", 0.0), ("only", "judged", 3.0)]  # fmt: skip
    labels = spark.createDataFrame(graded, "query_id string, doc_id string, grade int")
    found = measure_agreement(
        labels, spark.createDataFrame(judged, "query_id string, doc_id string, grade double"), HumanSettings()
    ).first()
    assert found is not None
    d = 1 / np.log2(np.arange(2, 5))
    h, b = np.array([3, 1, 0, 1, 1, 2, 0]), np.array([1, 3, 0, 2, 0, 1, 1])
    apart = np.mean(h**2) + np.mean(b**2) - 2 * h.mean() * b.mean()
    assert (found.pairs, found.equal) == (7, 1 / 7)
    assert found.weighted_kappa == pytest.approx(1 - np.mean((h - b) ** 2) / apart)
    swapped = (1 * d[0] + 7 * d[1]) / (7 * d[0] + 1 * d[1])  # the same both ways in q
    level = (d[0] + d[1]) / 2 / d[0]  # one of two documents is good, and their order is not known
    assert found.behaviour_order == pytest.approx((swapped + level) / 2)  # q and s: in r the judges know no difference
    assert found.judges_order == pytest.approx((swapped + level) / 2)  # q and r: in s behaviour knows none
    assert (found.behaviour_order_queries, found.judges_order_queries) == (2, 2)
    chance = 8 * d.mean() / (7 * d[0] + d[1])
    assert found.behaviour_order_by_chance == pytest.approx((chance + level) / 2)
    assert agreement_lines(found.asDict()) == [
        f"behaviour and judges agree on 14% of 7 pairs, weighted κ {found.weighted_kappa:.2f}",
        f"behaviour's order by the judges' grades: NDCG@10 {found.behaviour_order:.3f} over 2 queries, "
        f"{found.behaviour_order_by_chance:.3f} by chance",
        f"the judges' order by behaviour's grades: NDCG@10 {found.judges_order:.3f} over 2 queries, "
        f"{found.judges_order_by_chance:.3f} by chance",
    ]
    strangers = spark.createDataFrame([("x", "y", 1.0)], "query_id string, doc_id string, grade double")
    nobody = measure_agreement(labels, strangers, HumanSettings()).first()
    assert nobody is not None and agreement_lines(nobody.asDict()) == []


def test_a_session_model_runs_on_logs_with_contexts(spark: SparkSession, tmp_path: Path, keep: Keep) -> None:
    people = SimulationConfig(
        pages=1_500, queries=20, documents=12, examination={"phone": 1.4, "desktop": 0.7}, dirt=Dirt.none()
    )
    log = drawn(spark, people, tmp_path)
    propensity = PropensitySettings(estimator="ubm", jackknife=False)
    settings = LabelConfig(contexts=("device",), propensity=propensity)
    built = build_labels(log.impressions, log.interactions, settings, keep=keep)
    curves = {(row.context, row.position): row.propensity for row in built.propensities.collect()}
    assert {context for context, _ in curves} == {"all", "device=phone", "device=desktop"}
    assert curves["all", 1] == pytest.approx(1.0)
    assert built.labels.where("grade IS NOT NULL").count() > 100
