"""The functions that Spark runs in its workers, on rows spread over partitions, give the bits of `assay.evaluate`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import assay
from assay.computed import InMemoryRun
from pipelines.comparison.compare import adjust_p_values, build_p_value_rules
from pipelines.comparison.estimate import build_plan
from pipelines.scoring.score import build_query_metrics_contract
from tests.unit.assay.test_evaluate import simulate
from udfs.spark.score import LABEL, QUERY, ScoreRequest, score_queries
from udfs.statistics.finish import finish_estimates
from udfs.statistics.frame import NUMBERS
from udfs.statistics.frame import QUERY as QUERY_HASH
from udfs.statistics.partial import partial_sums
from udfs.xxhash import hash_like_spark

STREAM = pa.schema(
    {
        "query_id": pa.string(),
        "source": pa.int32(),
        "text": pa.string(),
        "rank": pa.int32(),
        "value": pa.float64(),
    }.items()
)


def build_stream(tables: dict[str, Any], systems: tuple[str, ...]) -> pa.Table:
    """The rows of all tables as one stream, as `score_lists` sends it to the workers, in any order."""
    rankings, judgments, queries = (tables[name] for name in ("rankings", "judgments", "queries"))
    lines = [json.dumps({"device": device}) + "\n" for device in queries["device"]]
    parts = [
        rankings.assign(source=rankings["system"].map(systems.index), text=rankings["doc_id"], value=rankings["score"]),
        judgments.assign(source=LABEL, text=judgments["doc_id"], value=judgments["grade"].astype(float)),
        queries.assign(source=QUERY, text=lines, value=queries["weight"]),
    ]
    stream = pd.concat(parts, ignore_index=True).assign(rank=None).sample(frac=1, random_state=3)
    return pa.Table.from_pandas(stream[STREAM.names], STREAM, preserve_index=False)


def test_partitions_of_workers_give_equal_bits() -> None:
    tables = simulate()
    got = assay.evaluate(**tables, metrics=["ndcg@5", "recall@5", "map"], baseline="old", segments=["device"])
    config, systems = got.config, got.run.systems
    assert isinstance(got.run, InMemoryRun)
    columns = tuple(build_query_metrics_contract(config.query_columns, config.specs).names)
    names = tuple(spec.name for spec in config.specs)
    request = ScoreRequest(names, got.run.run.conventions, systems, config.query_columns, columns)
    stream = build_stream(tables, systems)
    part = hash_like_spark(stream["query_id"].cast(pa.large_string()).combine_chunks()) % 3
    plan = build_plan(config, systems, config.specs)
    scored, partials = [], []
    for number in range(3):
        rows = pa.Table.from_batches(score_queries(request)(stream.filter(pa.array(part == number)).to_batches()))
        scored.append(rows)
        numbers = np.stack([rows[name].cast(pa.float64()).to_numpy() for name in plan.numbers], axis=1)
        hashes = hash_like_spark(rows["query_id"].cast(pa.large_string()).combine_chunks())
        sums = {QUERY_HASH: hashes, NUMBERS: list(numbers)}
        sums |= {name: rows[name] for name in ("system", "weight", *plan.columns)}
        partials += list(partial_sums(plan, whole=False)(pa.table(sums).to_batches()))
    of_workers = pa.concat_tables(scored).to_pandas()
    keys = ["system", "query_id"]
    pd.testing.assert_frame_equal(
        got.query_metrics.sort_values(keys, ignore_index=True),
        of_workers.sort_values(keys, ignore_index=True),
        check_exact=True,
    )
    estimates = pa.Table.from_batches(list(finish_estimates(plan)(partials)))
    pairs = estimates.filter(estimates["baseline"].is_valid())
    compared = pa.Table.from_batches(list(adjust_p_values(build_p_value_rules(config))(pairs.to_batches())))
    shared = [name for name in compared.column_names if name in got.comparisons.columns]
    keys = ["segment", "value", "metric"]
    pd.testing.assert_frame_equal(
        got.comparisons[shared].sort_values(keys, ignore_index=True),
        compared.to_pandas()[shared].sort_values(keys, ignore_index=True),
        check_exact=True,
    )
    assert len(got.comparisons) == 9
