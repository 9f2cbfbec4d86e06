"""One pass over an input: its row counts, the requested aggregates, and the sample."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.inputs import count
from pipelines.inputs.count import Aggregate, CountRequest, RowAggregate, RowSample, SplitCount
from pipelines.inputs.validate import validate_inputs
from pipelines.quality.inspect import Inspection
from tests.helpers.small_data import DATE, LISTS, build_clean_tables, build_config, build_inputs


def test_a_sample_over_its_limit_is_dropped_and_the_rows_are_counted(spark: SparkSession) -> None:
    """Here the sample condition selects every row of a long query."""
    frames = {of: build_clean_tables()[of] for of in ("rankings", "judgments")}
    frames["rankings"] = pd.DataFrame(
        {"system": "a", "query_id": "größe 00", "doc_id": [f"d{n}" for n in range(1200)], "rank": range(1, 1201)}
    )
    inputs = build_inputs(spark, frames)
    config = build_config(list(inputs), quality={"sample_rows": 10})
    inspection = Inspection(config, DATE)
    everything = RowSample({"query_id": F.col("query_id"), "doc_id": F.col("doc_id")}, where=F.lit(True), limit=20)
    validated = validate_inputs(inputs, config, lambda tables: {
        name: replace(request, sample=everything) for name, request in inspection.request_counts(tables).items()
    })  # fmt: skip
    assert {name: (count.read, count.kept) for name, count in validated.counts.items()} == {
        "rankings": (1200, 1200), "judgments": (120, 120),
    }  # fmt: skip
    assert validated.results["rankings"].sample is None
    judgments = validated.results["judgments"].sample
    assert judgments is not None and judgments.column_names == ["query_id", "doc_id", "rows"]
    assert judgments.num_rows == 120


def test_values_come_back_under_the_keys_of_their_request(spark: SparkSession) -> None:
    inputs = build_inputs(spark, {of: build_clean_tables()[of] for of in LISTS})
    last = ("rank", "largest")
    aggregates: dict[Hashable, Aggregate] = {
        "first": RowAggregate(F.min("rank"), "min"),
        last: RowAggregate(F.max("rank"), "max"),
        ("rows", 1): RowAggregate(F.count_if(F.col("rank") == 1)),
        "none": RowAggregate(F.max(F.lit(None).cast("int")), "max"),
    }
    sample = RowSample({"query_id": F.col("query_id")}, where=F.col("rank") == 1, limit=100)
    request = CountRequest(aggregates, sample)
    result = validate_inputs(inputs, build_config(LISTS), lambda _: {"rankings": request}).results["rankings"]
    assert result.values == {"first": 1, last: 4, ("rows", 1): 48, "none": None}
    assert result.systems == {"a", "b"}
    frame = build_clean_tables()["rankings"]
    assert result.text_bytes == sum(len(str(v).encode()) for c in ("system", "query_id", "doc_id") for v in frame[c])
    assert result.sample is not None and result.sample.column_names == ["query_id", "system", "rows"]
    assert result.sample.num_rows == 48


def test_rows_are_counted_by_split_and_the_sample_and_the_systems_do_not_notice(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count, "MAX_GROUPS", 2)  # as many as there are systems; each has three splits
    inputs = build_inputs(spark, {of: build_clean_tables()[of] for of in LISTS})
    aggregates: dict[Hashable, Aggregate] = {
        "second": SplitCount("2"),
        "deepest": RowAggregate(F.max("rank"), "max"),
        "first": SplitCount("1"),
        "none": SplitCount("9"),
    }
    high = F.col("rank") <= 2
    sample = RowSample({"query_id": F.col("query_id")}, where=high, limit=100)
    request = CountRequest(aggregates, sample, split=F.when(high, F.col("rank").cast("string")))
    result = validate_inputs(inputs, build_config(LISTS), lambda _: {"rankings": request}).results["rankings"]
    assert result.values == {"second": 48, "deepest": 4, "first": 48, "none": 0}
    assert result.rows.read == len(build_clean_tables()["rankings"])
    assert result.systems == {"a", "b"}
    assert result.sample is not None and result.sample.column_names == ["query_id", "system", "rows"]
    assert result.sample["rows"].to_pylist() == [2] * 48, "both rows of a list are one of the sample"


def test_a_sample_of_some_rows_can_have_columns_that_are_never_null(spark: SparkSession) -> None:
    """As a hash: Spark declares it not nullable, while the rows outside the sample have none."""
    inputs = build_inputs(spark, {of: build_clean_tables()[of] for of in LISTS})
    sample = RowSample({"document": F.xxhash64("doc_id")}, where=F.col("query_id") == "größe 00", limit=100)
    request = CountRequest(sample=sample)
    result = validate_inputs(inputs, build_config(LISTS), lambda _: {"judgments": request}).results["judgments"]
    assert result.rows.read == 120
    assert result.sample is not None and result.sample["document"].null_count == 0
    assert result.sample.num_rows == 5


def test_a_sample_is_bounded_in_bytes(spark: SparkSession) -> None:
    frames = {of: build_clean_tables()[of] for of in ("rankings", "judgments")}
    for frame in frames.values():
        frame["doc_id"] = frame["doc_id"] + "x" * 9000
    inputs = build_inputs(spark, frames)
    config = build_config(list(inputs))
    inspection = Inspection(config, DATE)
    validated = validate_inputs(inputs, config, inspection.request_counts)
    sample = validated.results["judgments"].sample
    assert sample is not None and sample.num_rows == 120
    assert sample.nbytes / sample.num_rows < 400
    inspection.check_inputs(inputs, validated)
    assert inspection.figures["judgments"]["repeated"] == 0  # different ids stay different
    assert inspection.figures["rankings"]["unlabelled"] == 0
