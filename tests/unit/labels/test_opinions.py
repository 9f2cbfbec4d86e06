"""Opinions: which columns are read, the levels of their values, and what they do in worlds with known truth."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from benchmarks.opinions import draw_judge, estimate_differences, favour
from benchmarks.world_logs import draw_world
from benchmarks.worlds import gather
from pipelines.comparison.readings.opinions import opinions_narrow_labels
from pipelines.comparison.readings.registry import ComparedPair, ReadingContext
from pipelines.config.model import Config
from pipelines.inputs.opinions import add_opinion_columns
from schemas.errors import InputError
from schemas.inputs import OPINIONS
from udfs.posterior.opinions import BINS, OpinionGain, choose_scale

LOG = {name: {"path": name} for name in ("impressions", "interactions", "rankings")}
DATA = T.StructType(
    [
        T.StructField("query_id", T.StringType()),
        T.StructField("doc", T.StringType()),
        T.StructField("llm_grade", T.IntegerType()),
        T.StructField("on topic", T.BooleanType()),
        T.StructField("seen_at", T.TimestampType()),
    ]
)
RENAMED = {"doc_id": "doc", "on_topic": "on topic"}


def test_numbers_with_few_values_keep_them() -> None:
    scale = choose_scale("llm", pa.array([3.0, 0.0, 1.0, None, 3.0]))
    assert scale.levels == ("(none)", "0", "1", "3")
    assert scale.bin_values(pa.array([0.0, 1.0, 3.0, None, 2.0])).tolist() == [1, 2, 3, 0, 2]


def test_numbers_with_many_values_are_binned_by_quantile() -> None:
    values = np.random.default_rng(1).normal(size=4000)
    scale = choose_scale("bm25", pa.array(values))
    counts = np.bincount(scale.bin_values(pa.array(values)), minlength=BINS + 1)
    assert counts.tolist() == [0, *[500] * BINS]
    assert choose_scale("bm25", pa.array([str(value) for value in values])).edges == scale.edges, "texts of numbers"


def test_a_frequent_number_has_a_bin_of_its_own() -> None:
    values = pa.array([0.0] * 300 + [float(value) for value in range(1, 101)])
    codes = choose_scale("sales", values).bin_values(values)
    assert np.bincount(codes).tolist() == [0, 300, 50, 50]


def test_bins_of_large_numbers_have_distinct_names() -> None:
    scale = choose_scale("at", pa.array(1_700_000_000.0 + np.arange(1000)))
    assert len(set(scale.levels)) == BINS + 1


def test_rare_categories_are_pooled_and_blanks_are_none() -> None:
    texts = [f"c{number:02}" for number in range(40) for _ in range(100 - number)]
    scale = choose_scale("kind", pa.array([*texts, None, " "]))
    assert scale.levels == ("(none)", *(f"c{number:02}" for number in range(15)), "(other)")
    assert scale.bin_values(pa.array(["c00", "c14", "c15", "new", None, ""])).tolist() == [1, 15, 16, 16, 0, 0]


def test_every_column_beside_the_key_is_an_opinion_unless_some_are_named() -> None:
    schema = T.StructType([field for field in DATA if field.name != "seen_at"])
    table = add_opinion_columns(OPINIONS, schema, RENAMED, None)
    assert {column.name: column.type for column in table.columns[2:]} == {"llm_grade": "double", "on_topic": "string"}
    assert add_opinion_columns(OPINIONS, DATA, RENAMED, ["llm_grade"]).names == ["query_id", "doc_id", "llm_grade"]


@pytest.mark.parametrize(
    ("renamed", "configured", "message"),
    [
        (RENAMED, ["llm"], "opinions has no column 'llm'"),
        (RENAMED, None, "'seen_at' is timestamp"),
        ({"doc_id": "doc"}, ["on topic"], "'on topic' is not a name"),
        (RENAMED, ["doc_id"], "opinions has no column 'doc_id'"),
    ],
)
def test_columns_that_cannot_be_opinions_are_refused(
    renamed: dict[str, str], configured: list[str] | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        add_opinion_columns(OPINIONS, DATA, renamed, configured)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inputs": LOG, "labels": {"opinions": ["llm"]}}, "inputs.opinions, which is not set"),
        ({"inputs": LOG | {"opinions": {"path": "o"}}, "conventions": {"unjudged": "zero"}}, "unjudged posterior"),
        (
            {"inputs": {name: {"path": name} for name in ("rankings", "judgments", "opinions")}},
            "labels that the run makes from a log",
        ),
        ({"inputs": LOG, "labels": {"opinions": ["llm", "llm"]}}, "llm is listed twice"),
    ],
)
def test_opinions_need_a_posterior(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config.model_validate(values)


def test_the_configuration_of_labels_alone_has_no_opinions() -> None:
    values = {"inputs": LOG | {"opinions": {"path": "o"}}, "labels": {"opinions": ["llm"]}}
    log = Config.model_validate(values).select_log()
    assert Config.model_validate(log.model_dump(mode="json")) == log


def test_a_reading_says_what_opinions_add() -> None:
    config = Config.model_validate({"inputs": LOG, "metrics": ["ndcg@10"]})
    row = dict.fromkeys(("p_value", "delta", "label_share"), 0.5) | {
        "baseline": "a",
        "candidate": "b",
        "segment": "all",
        "metric": "ndcg_at_10",
    }
    gains = (OpinionGain(("llm", "bm25"), 0.1, 1.0), OpinionGain(("llm",), 0.08, 0.9), OpinionGain(("bm25",), 0.02, 1))
    context = ReadingContext([row], (), 1.0, behaviour=True, config=config, gains=gains)
    # 1 − 1/√(1 − .5 + .5/.9²) = .0542
    assert opinions_narrow_labels(ComparedPair("a", "b", context)) == (
        "opinions (llm, bm25) narrow the labels by 10.0% (llm beside the others by 8.0%, bm25 beside the others by "
        "2.0%), and the interval of ndcg@10 by up to 5.4%."
    )
    useless = replace(context, gains=(OpinionGain(("llm",), 0.001, 0.4),))
    assert "add nothing" in (opinions_narrow_labels(ComparedPair("a", "b", useless)) or "")
    assert opinions_narrow_labels(ComparedPair("a", "b", replace(context, gains=()))) is None


def test_a_judge_narrows_the_labels_and_a_partial_one_hardly_moves_the_answer() -> None:
    rows = []
    for seed in (1, 2):
        world = draw_world("plain", seed, 10_000)
        evidence, fair = gather(world, "plain"), draw_judge(world, 0.5, seed)
        judges = {
            "none": {},
            "fair": {"llm": fair},
            "good": {"llm": draw_judge(world, 0.7, seed)},
            "partial": {"llm": favour(world, fair, "equal")},
        }
        for judge, opinions in judges.items():
            estimates, spread = estimate_differences(world, evidence, seed, opinions)
            rows.append({"seed": seed, "judge": judge, "spread": spread, **estimates["equal"]})
    table = pd.DataFrame(rows)
    spreads = table.groupby("judge")["spread"].mean()
    assert spreads["fair"] < 0.97 * spreads["none"]
    assert spreads["good"] < 0.90 * spreads["none"]
    by_judge = table.pivot(index="seed", columns="judge", values=["estimate", "width"])
    moved = (by_judge["estimate"]["partial"] - by_judge["estimate"]["fair"]).abs()
    assert (moved < by_judge["width"]["partial"] / 5).all()
