"""From a log with known truth to labels: noise is dropped, the curve is estimated, and grades follow the formulas."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row, SparkSession, Window
from pyspark.sql import functions as F
from scipy.stats import gamma

from pipelines.labels.agreement import describe_agreement
from pipelines.labels.build import LabelTables, build_labels
from pipelines.labels.denoise.funnel import check_row_counts
from pipelines.labels.denoise.registry import ORDER, rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings, InternalUser
from pipelines.labels.grade import grade_pairs
from pipelines.labels.judgments import measure_agreement, merge_judgments
from pipelines.labels.log_shape import DROPPED, KEPT, sum_rows
from pipelines.labels.propensity.settings import PropensitySettings
from pipelines.labels.settings import GradeSettings, HumanSettings, LabelSettings
from pipelines.simulation.settings import DirtSettings, SimulationSettings
from pipelines.simulation.simulate import Simulation, simulate
from pipelines.warehouse.checkpoint import Checkpointer, build_checkpointer, keep_in_memory
from schemas.errors import DataQualityError
from schemas.outputs import DENOISE_FUNNEL, GRADE_PROBABILITIES, LABELS, PROPENSITIES
from tests.helpers.outcomes import judge_rows, read_log

CONFIG = SimulationSettings(pages=6_000, queries=150, documents=12, seed=3)
SETTINGS = LabelSettings(denoise=DenoiseSettings(internal_user=InternalUser(pattern="^staff-")))


def write_simulation(spark: SparkSession, config: SimulationSettings, folder: Path, *truths: str) -> Simulation:
    """A simulated log and its truth as files, so that they are computed once."""
    log, checkpoint = simulate(spark, config, keep=keep_in_memory), build_checkpointer(str(folder))
    return replace(log, **{name: checkpoint(getattr(log, name)) for name in ("impressions", "interactions", *truths)})


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    return write_simulation(spark, CONFIG, tmp_path_factory.mktemp("log"), "truth_grades", "truth_dirt")


@pytest.fixture(scope="module")
def built(log: Simulation, tmp_path_factory: pytest.TempPathFactory) -> LabelTables:
    checkpoint = build_checkpointer(str(tmp_path_factory.mktemp("built")))
    built = build_labels(*read_log(log.impressions, log.interactions), SETTINGS, checkpoint=checkpoint)
    return replace(built, labels=checkpoint(built.labels))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpointer:
    return build_checkpointer(str(tmp_path / "checkpoints"))


@pytest.fixture(scope="module")
def funnel(built: LabelTables) -> dict[str, Row]:
    return {row.rule: row for row in built.denoise_funnel.collect()}


def test_the_outputs_have_the_columns_of_their_contracts(built: LabelTables) -> None:
    assert built.labels.columns == LABELS.names
    assert built.propensities.columns == PROPENSITIES.names
    assert built.denoise_funnel.columns == DENOISE_FUNNEL.names
    assert dict(built.labels.dtypes) == {column.name: column.type for column in LABELS.columns}


def test_every_row_is_kept_or_dropped(log: Simulation, built: LabelTables) -> None:
    events = {f"{row.kind}s": row["count"] for row in log.interactions.groupBy("kind").count().collect()}
    figures = built.log_shape.collect()
    check_row_counts(
        events | {"impressions": log.impressions.count()}, sum_rows(figures, KEPT), sum_rows(figures, DROPPED)
    )
    with pytest.raises(DataQualityError, match="rows were read"):
        check_row_counts({"clicks": 2}, {"clicks": 1}, {})


def test_planted_noise_is_dropped(log: Simulation, funnel: dict[str, Row]) -> None:
    planted = log.truth_dirt.groupBy("rule", "table").agg(F.count("*").alias("rows")).collect()
    for row in planted:
        dropped = funnel[row.rule]["impressions_dropped" if row.table == "impressions" else "clicks_dropped"]
        if row.rule == "late_event":
            dropped += funnel[row.rule].purchases_dropped
        # One visit in thirty is left to a user who hammers a product.
        assert dropped >= (0.95 if row.rule == "one_user_dominates" else 0.99) * row.rows, row.rule


def test_planted_rows_are_the_rows_that_are_dropped(log: Simulation, checkpoint: Checkpointer) -> None:
    """Row by row, so that rows a rule drops elsewhere cannot hide those it misses."""
    outcomes = checkpoint(judge_rows(log.impressions, log.interactions, SETTINGS.denoise))
    place = ["serp_id", "doc_id", "kind"]
    fates = outcomes.groupBy(*place).agg(F.bit_or("bits").alias("bits"))
    events = log.interactions.select(F.col("event_id").alias("key"), "serp_id", "kind").distinct()
    planted = log.truth_dirt.where("rule <> 'one_user_dominates'")  # a rule on pairs, applied after pages
    pages = planted.where("table = 'impressions'").selectExpr(
        "rule", "key AS serp_id", "doc_id", "'impression' AS kind"
    )
    acts = planted.where("table = 'interactions'").join(events, "key").select("rule", *place)
    hit = F.coalesce(
        *[F.when(F.col("rule") == n, F.col("bits").bitwiseAND(rule_bit(n)) != 0) for n in ORDER], F.lit(False)
    )
    planted_rows = pages.unionByName(acts).join(fates, place, "left").groupBy("rule", "kind")
    shares = {
        (row.rule, row.kind): row.share for row in planted_rows.agg(F.mean(hit.cast("int")).alias("share")).collect()
    }
    assert {rule for rule, _ in shares} == set(DenoiseSettings.model_fields) - {"one_user_dominates", "repeated_result"}
    assert {where: share for where, share in shares.items() if share < 0.99} == {}


def test_clean_logs_lose_few_rows(spark: SparkSession, tmp_path: Path, checkpoint: Checkpointer) -> None:
    clean = write_simulation(spark, CONFIG.model_copy(update={"dirt": DirtSettings.none()}), tmp_path)
    funnel = build_labels(
        *read_log(clean.impressions, clean.interactions), LabelSettings(), checkpoint=checkpoint
    ).denoise_funnel.toPandas()
    clicks = clean.interactions.where("kind = 'click'").count()
    assert funnel["impressions_dropped"].sum() <= 0.005 * CONFIG.pages * CONFIG.shown
    assert funnel["clicks_dropped"].sum() <= 0.005 * clicks


def test_quarantine_holds_the_events_without_impressions(built: LabelTables, funnel: dict[str, Row]) -> None:
    rows = built.quarantine.toPandas()
    assert len(rows) == funnel["no_impression"].clicks_dropped > 0
    assert rows["row"].str.contains('"event_id":"ghost-').all()


def test_the_curve_and_its_intervals_are_near_the_truth(built: LabelTables) -> None:
    curve = built.propensities.toPandas().sort_values("position")
    true = 1 / curve["position"]
    assert np.mean(np.abs(curve["propensity"] / true - 1)) < 0.3
    assert ((curve["low"] <= true) & (true <= curve["high"]))[1:].mean() > 0.7
    diagnostics = built.diagnostics.toPandas().set_index("check")
    assert not diagnostics.loc["connected", "warning"]
    assert not diagnostics.loc["personalised", "warning"]


def test_relevance_follows_the_truth_better_than_click_rates(built: LabelTables, log: Simulation) -> None:
    truth = log.truth_grades.withColumnRenamed("grade", "truth")
    pairs = built.labels.where("grade IS NOT NULL").join(truth, ["query_id", "doc_id"], "inner").toPandas()
    relevance, naive = (pairs["truth"].corr(pairs[name], method="spearman") for name in ("relevance", "ctr"))
    assert relevance > naive


def test_labels_do_not_depend_on_partitions_or_order(
    built: LabelTables, log: Simulation, spark: SparkSession, checkpoint: Checkpointer
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    shown = log.impressions.repartition(7, F.rand(1)).sortWithinPartitions(F.rand(2))
    done = log.interactions.repartition(3, F.rand(3))
    other = build_labels(*read_log(shown, done), SETTINGS, checkpoint=checkpoint).labels.toPandas()
    first = built.labels.toPandas()
    key = ["query_id", "doc_id"]
    pd.testing.assert_frame_equal(
        first.sort_values(key, ignore_index=True), other.sort_values(key, ignore_index=True), rtol=1e-9, atol=1e-12
    )


def test_days_that_a_compared_system_learned_from_are_no_evidence(
    built: LabelTables, log: Simulation, checkpoint: Checkpointer
) -> None:
    """The evidence of two parts of the log adds up to that of the whole, and the labels are those of the whole."""
    start = dt.date.fromisoformat(CONFIG.start)
    first, third, fourth, last = (start + dt.timedelta(days=days) for days in (0, 2, 3, CONFIG.days - 1))
    parts = [(first, third), (fourth, last)]
    rests = [
        build_labels(*read_log(log.impressions, log.interactions), SETTINGS, checkpoint=checkpoint, learned_days=[days])
        for days in parts
    ]
    shares = [rest.evidence.learned_share for rest in rests]
    assert 0.1 < shares[0] < 0.9 and sum(shares) == pytest.approx(1.0)
    key, sums = ["query_id", "doc_id"], ["clicks_due", "examinations"]
    whole = built.evidence.pairs.toPandas().set_index(key)[sums].sort_index()
    added = pd.concat([rest.evidence.pairs.toPandas() for rest in rests]).groupby(key)[sums].sum().sort_index()
    pd.testing.assert_frame_equal(added, whole, check_exact=False, rtol=1e-9)
    shown = rests[0].evidence.traffic.agg(F.sum("impressions")).first()
    every = built.evidence.traffic.agg(F.sum("impressions")).first()
    assert shown is not None and every is not None
    assert shown[0] == pytest.approx((1 - shares[0]) * every[0])
    examined = [built.labels.agg(F.sum("examinations")).first(), rests[0].labels.agg(F.sum("examinations")).first()]
    assert examined[0] is not None and examined[1] is not None
    assert examined[0][0] == pytest.approx(examined[1][0]), "labels are from all days"
    nothing_left = build_labels(*read_log(log.impressions, log.interactions), SETTINGS, learned_days=[(first, last)])
    assert nothing_left.evidence.learned_share == 1.0
    assert nothing_left.evidence.pairs.count() == len(whole), "where no other day is there, all are kept"


def test_a_log_without_moving_documents_cannot_estimate_position_bias(
    spark: SparkSession, tmp_path: Path, checkpoint: Checkpointer
) -> None:
    still = SimulationSettings(
        pages=800, queries=30, documents=12, traffic={"production": 1.0}, dirt=DirtSettings.none()
    )
    log = write_simulation(spark, still, tmp_path)
    built = build_labels(*read_log(log.impressions, log.interactions), LabelSettings(), checkpoint=checkpoint)
    diagnostic = built.diagnostics.where("check = 'connected'").first()
    assert diagnostic is not None
    assert diagnostic.warning
    assert "cannot be estimated" in diagnostic.sentence
    assert {row.estimator for row in built.propensities.where("position > 1").collect()} == {"assumed"}


def test_a_personalised_ranker_is_reported(log: Simulation, checkpoint: Checkpointer) -> None:
    """The same pages, each in an order that depends on its user."""
    taste = Window.partitionBy("serp_id").orderBy(F.xxhash64("user_id", "doc_id"))
    personal = log.impressions.withColumn("position", F.row_number().over(taste))
    diagnostics = build_labels(*read_log(personal, log.interactions), SETTINGS, checkpoint=checkpoint).diagnostics
    diagnostic = diagnostics.where("check = 'personalised'").first()
    assert diagnostic is not None
    assert diagnostic.warning
    assert diagnostic.value > 0.5
    assert "cannot be trusted" in diagnostic.sentence


CELLS = "query_id string, doc_id string, context string, position int, history int, impressions bigint, clicks " \
        "bigint, carts bigint, purchases bigint, users bigint"  # fmt: skip
USES = "record string, context string, position int, history int, propensity double, offset double"


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
    labels = grade_pairs(spark.createDataFrame(cells, CELLS), uses, GradeSettings()).toPandas().set_index("doc_id")

    examined = cells["impressions"] * np.where(cells["position"] == 1, 1.0, 0.5)
    m = cells["clicks"].sum() / examined.sum()
    target = (cells["clicks"].sum() + 200 * m) / (examined.sum() + 200)
    many = examined > 5
    rate = cells["clicks"] / examined
    mean = np.average(rate[many], weights=examined[many])
    spread = np.average((rate[many] - mean) ** 2, weights=examined[many])
    v = spread - np.average(m * (1 - m) / examined[many], weights=examined[many])
    s = float(np.clip(m * (1 - m) / v - 1, 2, 1000)) if v > 0 else 1000.0
    relevance = (cells["clicks"] + target * s) / (examined + s)
    base = relevance.mean()  # over documents, however often each was shown
    assert base < 0.92 * target, "good and fair were examined most, and weigh no more than the others here"
    expected = pd.DataFrame({"relevance": relevance, "lift": relevance / base, "examined": examined})
    expected.index = pd.Index(cells["doc_id"])
    order = list(cells["doc_id"])
    assert labels.loc[order, "relevance"].to_numpy() == pytest.approx(expected["relevance"].to_numpy(), rel=1e-12)
    assert labels.loc[order, "lift_click"].to_numpy() == pytest.approx(expected["lift"].to_numpy(), rel=1e-12)
    assert labels.loc["good", "relevance_low"] == pytest.approx(gamma.ppf(0.05, 60 + target * s, scale=1 / (100 + s)))
    reasons = labels["reason"].to_dict()
    assert reasons["thin"] == reasons["lone"] == "too_little_evidence"
    assert labels["grade"].isna().to_dict()["thin"]
    assert reasons["sold"] == "promoted_by_purchase"
    assert labels.loc["sold", "grade"] == 3
    assert labels.loc["poor", "grade"] == 0
    chances = labels[list(GRADE_PROBABILITIES)]
    assert chances.loc[["thin", "lone"]].isna().all(axis=None)
    good = gamma(60 + target * s, scale=1 / (100 + s)).cdf(np.array([1, 1.5, 2.5]) * base)
    assert chances.loc["good"].to_numpy() == pytest.approx(np.diff([0, *good, 1]), abs=1e-12)
    assert list(chances.loc["sold"]) == [0, 0, 0, 1]
    by_cuts = sum(float(relevance[0] / base) >= cut for cut in (1, 1.5, 2.5))
    assert labels["grade"].to_dict()["good"] == max(by_cuts, 3 if reasons["good"] == "promoted_by_purchase" else 0)


def test_three_looks_and_two_people_give_a_spread_instead_of_a_coin(spark: SparkSession) -> None:
    """The lifts of the first two pairs lie on either side of a cut; their probabilities hardly differ."""
    rows = [("above", 3, 1, 2), ("below", 3, 0, 2), ("usual", 300, 60, 200)]
    cells = [("q", doc, "all", 1, 0, shown, clicks, 0, 0, users) for doc, shown, clicks, users in rows]
    uses = spark.createDataFrame([("use", "all", 1, 0, 1.0, 0.0)], USES)
    for scale in ("cuts", "quantiles"):
        graded = grade_pairs(spark.createDataFrame(cells, CELLS), uses, GradeSettings(scale=scale))
        labels = graded.toPandas().set_index("doc_id")
        assert labels.loc[["above", "below"], "lift_click"].to_numpy() == pytest.approx([1.002, 0.997], abs=5e-4)
        chances = labels[list(GRADE_PROBABILITIES)]
        assert chances.sum(axis=1).to_numpy() == pytest.approx(np.ones(3), abs=1e-12)
        grades = labels["grade"].to_dict()
        assert grades["above"] > grades["below"] == 0
        assert np.abs(chances.loc["above"] - chances.loc["below"]).max() < 0.2
        assert chances.loc["above"].max() < 0.75


def test_human_judgments_replace_behaviour_and_are_compared_with_it(
    built: LabelTables, spark: SparkSession, checkpoint: Checkpointer
) -> None:
    graded = built.labels.where("grade IS NOT NULL").select("query_id", "doc_id", F.col("grade").cast("double"))
    judged = checkpoint(graded.limit(200).union(spark.createDataFrame([("new", "doc", 2.0)], graded.schema)))
    settings = HumanSettings()
    merged = merge_judgments(built.labels, judged, settings)
    new = merged.where("query_id = 'new'").first()
    assert new is not None
    assert (new.grade, new.source, new.reason, new.impressions) == (2, "human", "judged", 0)
    assert [new[name] for name in GRADE_PROBABILITIES] == [0, 0, 1, 0]
    assert merged.where("source = 'human'").count() == 201
    agreement = measure_agreement(built.labels, judged, settings).first()
    assert agreement is not None
    assert (agreement.pairs, agreement.equal, agreement.weighted_kappa) == (200, 1.0, 1.0)
    assert agreement.behaviour_order == pytest.approx(1.0) == agreement.judges_order
    assert agreement.behaviour_order_by_chance < 0.95


def test_agreement_scores_the_order_of_each_by_the_grades_of_the_other(spark: SparkSession) -> None:
    # q: judges 3, 1, 0 and behaviour 1, 3, 0; r: the judges give equal grades; s: behaviour does.
    graded = [("q", "a", 1), ("q", "b", 3), ("q", "c", 0), ("r", "a", 2), ("r", "b", 0), ("s", "a", 1), ("s", "b", 1)]
    judged = [("q", "a", 3.0), ("q", "b", 1.0), ("q", "c", 0.0), ("r", "a", 1.0), ("r", "b", 1.0), ("s", "a", 2.0),
              ("s", "b", 0.0), ("only", "judged", 3.0)]  # fmt: skip
    labels = spark.createDataFrame(graded, "query_id string, doc_id string, grade int")
    agreement = measure_agreement(
        labels, spark.createDataFrame(judged, "query_id string, doc_id string, grade double"), HumanSettings()
    ).first()
    assert agreement is not None
    d = 1 / np.log2(np.arange(2, 5))
    h, b = np.array([3, 1, 0, 1, 1, 2, 0]), np.array([1, 3, 0, 2, 0, 1, 1])
    apart = np.mean(h**2) + np.mean(b**2) - 2 * h.mean() * b.mean()
    assert (agreement.pairs, agreement.equal) == (7, 1 / 7)
    assert agreement.weighted_kappa == pytest.approx(1 - np.mean((h - b) ** 2) / apart)
    swapped = (1 * d[0] + 7 * d[1]) / (7 * d[0] + 1 * d[1])  # the same both ways in q
    level = (d[0] + d[1]) / 2 / d[0]  # one of two documents is good, and they are tied
    assert agreement.behaviour_order == pytest.approx((swapped + level) / 2)  # q and s: judges' grades are equal in r
    assert agreement.judges_order == pytest.approx((swapped + level) / 2)  # q and r: behaviour's are equal in s
    assert (agreement.behaviour_order_queries, agreement.judges_order_queries) == (2, 2)
    chance = 8 * d.mean() / (7 * d[0] + d[1])
    assert agreement.behaviour_order_by_chance == pytest.approx((chance + level) / 2)
    assert describe_agreement(agreement.asDict()) == [
        f"Behaviour and judges agree on 14% of 7 pairs, weighted κ {agreement.weighted_kappa:.2f}",
        f"behaviour's order by the judges' grades: NDCG@10 {agreement.behaviour_order:.3f} over 2 queries, "
        f"{agreement.behaviour_order_by_chance:.3f} by chance",
        f"the judges' order by behaviour's grades: NDCG@10 {agreement.judges_order:.3f} over 2 queries, "
        f"{agreement.judges_order_by_chance:.3f} by chance",
    ]
    strangers = spark.createDataFrame([("x", "y", 1.0)], "query_id string, doc_id string, grade double")
    nobody = measure_agreement(labels, strangers, HumanSettings()).first()
    assert nobody is not None and describe_agreement(nobody.asDict()) == []


def test_a_session_model_fits_logs_with_contexts(spark: SparkSession, tmp_path: Path, checkpoint: Checkpointer) -> None:
    people = SimulationSettings(
        pages=1_500, queries=20, documents=12, examination={"phone": 1.4, "desktop": 0.7}, dirt=DirtSettings.none()
    )
    log = write_simulation(spark, people, tmp_path)
    propensity = PropensitySettings(estimator="ubm", jackknife=False)
    settings = LabelSettings(contexts=("device",), propensity=propensity)
    built = build_labels(*read_log(log.impressions, log.interactions), settings, checkpoint=checkpoint)
    curves = {(row.context, row.position): row.propensity for row in built.propensities.collect()}
    assert {context for context, _ in curves} == {"all", "device=phone", "device=desktop"}
    assert curves["all", 1] == pytest.approx(1.0)
    assert built.labels.where("grade IS NOT NULL").count() > 100
