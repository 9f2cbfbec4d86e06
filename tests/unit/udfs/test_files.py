"""Rows of Parquet files in workers: counted where they fit their contract, divided by query, scored as bundles."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import assay
from assay.computed import InMemoryRun
from pipelines.inputs.contracts import resolve_contract
from pipelines.inputs.plain_files import list_repeated
from pipelines.scoring.score import build_query_metrics_contract
from schemas.inputs import IMPRESSIONS, INTERACTIONS, JUDGMENTS, QUERIES, RANKINGS
from schemas.table import Table
from tests.unit.assay.test_evaluate import simulate
from udfs.spark.bundles import build_bundles, read_bundles
from udfs.spark.divide import divide_files
from udfs.spark.file_counts import (
    SKETCHED,
    FileCount,
    FileRequest,
    UnitSample,
    count_part,
    count_parts,
    estimate_distinct,
    merge_counts,
    merge_sketches,
    sketch_hashes,
)
from udfs.spark.files import FilePart, narrow_numbers
from udfs.spark.score import ScoreRequest, score_bundles
from udfs.tables import encode_ids
from udfs.xxhash import hash_like_spark

IDS = ("query_id", "doc_id")


def sample_queries(columns: tuple[str, ...] = ("query_id",), below: int = 1 << 20, limit: int = 10) -> FileRequest:
    return FileRequest((UnitSample("query_id", columns, below=below, limit=limit, ids=IDS, doubtful="Ã", longest=40),))


SAMPLE = sample_queries((*IDS, "document"), below=1 << 19, limit=1000)


def write_part(folder: Path, contract: Table, columns: dict[str, Any], group: int = 3) -> FilePart:
    """A file with row groups of a few rows, all of them in one part."""
    path = folder / f"{contract.name}.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=group)
    types = {name: contract[name].type for name in columns}
    groups = tuple(range(pq.ParquetFile(path).num_row_groups))
    rows, names = len(next(iter(columns.values()))), {name: name for name in columns}
    return FilePart(contract.name, str(path), groups, rows, names, types, list_repeated(contract, columns))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1, -128], pa.int32()), pa.int8()),
        (pa.array([1, 128], pa.int32()), pa.int16()),
        (pa.array([1, 1 << 20], pa.int32()), pa.int32()),
        (pa.array([1, None], pa.int32()), pa.int32()),
        (pa.array([0.0, 3.0]), pa.int8()),
        (pa.array([0.0, 1000.0]), pa.int16()),
        (pa.array([0.5, 1e6]), pa.float32()),
        (pa.array([0.0, -0.0]), pa.float32()),
        (pa.array([0.1]), pa.float64()),
    ],
)
def test_numbers_take_the_smallest_type_that_has_the_same_ones(values: pa.Array, kind: pa.DataType) -> None:
    narrow = narrow_numbers(pa.chunked_array([values]))
    assert narrow.type == kind
    assert narrow.cast(values.type).to_pylist() == values.to_pylist()


def test_bundles_with_narrow_and_wide_numbers_are_read_as_one_table() -> None:
    narrow = pa.table({"rank": pa.array([1], pa.int8()), "grade": pa.array([2], pa.int8())})
    wide = pa.table({"rank": pa.array([300], pa.int32()), "grade": pa.array([0.1])})
    rows = read_bundles([build_bundles(np.array([0, 0]), [narrow, wide])])[0]
    assert rows.to_pylist() == [{"rank": 1, "grade": 2.0}, {"rank": 300, "grade": 0.1}]


def test_dictionaries_and_texts_are_encoded_as_one() -> None:
    first = pa.chunked_array([pa.array(["b", "a", "b"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()])
    (one, other), texts = encode_ids(first, pa.chunked_array([pa.array(["c", "d"])]))
    assert [texts[code].as_py() for code in (*one, *other)] == ["b", "a", "b", "c", "c", "d"]
    assert len(texts) == 4


def test_rows_that_fit_are_counted(tmp_path: Path) -> None:
    rankings = {
        "system": ["s", "s", "t", "t", "t"],
        "query_id": ["q1", "q1", "q2", "größe", "größe"],
        "doc_id": ["d1", "d22", "d1", "d1", "d2"],
        "rank": pa.array([1, 2, None, 1, 2], pa.int64()),
        "score": [None, 0.5, 0.5, 0.5, 0.5],
    }
    count = count_part(write_part(tmp_path, RANKINGS, rankings), RANKINGS, SAMPLE)
    assert count is None, "a row may have neither a rank nor a score"
    rankings["score"] = [0.5] * 5
    count = count_part(write_part(tmp_path, RANKINGS, rankings), RANKINGS, SAMPLE)
    assert count is not None
    assert (count.rows, count.systems, count.text_bytes) == (5, frozenset("st"), 5 + 20 + 11)
    assert count.nulls == {"system": 0, "query_id": 0, "doc_id": 0, "rank": 1, "score": 0}
    hashes = hash_like_spark(pa.array(rankings["query_id"], pa.large_string()))
    inside = [at for at, number in enumerate(hashes.tolist()) if number % (1 << 20) < 1 << 19]
    documents = hash_like_spark(pa.array(rankings["doc_id"], pa.large_string())).tolist()
    assert 0 < len(inside) < 5
    assert count.samples["query_id"].select(["system", "query_id", "doc_id", "document"]).to_pylist() == [
        {
            "system": rankings["system"][at],
            "query_id": rankings["query_id"][at],
            "doc_id": rankings["doc_id"][at],
            "document": documents[at],
        }
        for at in inside
    ]


def test_grades_are_counted_by_whole_numbers(tmp_path: Path) -> None:
    grades = [0.0, 1.5, -3.0, 12.0, 1.0]
    part = write_part(tmp_path, JUDGMENTS, {"query_id": ["q"] * 5, "doc_id": list("abcde"), "grade": grades})
    count = count_part(part, JUDGMENTS, FileRequest())
    assert count is not None and count.max_grade == 12.0
    assert {grade: rows for grade, rows in count.grades.items() if rows} == {-1: 1, 0: 1, 1: 2, 10: 1}


@pytest.mark.parametrize(
    ("contract", "changes"),
    [
        (JUDGMENTS, {"query_id": ["q", None]}),
        (JUDGMENTS, {"query_id": ["q", ""]}),
        (JUDGMENTS, {"query_id": ["q", " "]}),
        (JUDGMENTS, {"doc_id": ["d", "x" * 100_000]}),
        (JUDGMENTS, {"doc_id": ["d", "x" * 41]}),
        (JUDGMENTS, {"doc_id": ["d", "Ã"]}),
        (JUDGMENTS, {"grade": [1.0, None]}),
        (JUDGMENTS, {"grade": [1.0, float("nan")]}),
        (JUDGMENTS, {"grade": [1.0, float("inf")]}),
        (RANKINGS, {"system": ["s", "s"], "rank": [1, -1]}),
        (RANKINGS, {"system": ["s", "s"], "rank": [1, 1 << 40]}),
        (QUERIES, {"weight": [1.0, -1.0]}),
    ],
)
def test_a_row_that_may_not_fit_is_left_to_spark(tmp_path: Path, contract: Table, changes: dict[str, Any]) -> None:
    columns: dict[str, Any] = {"query_id": ["q", "p"]}
    columns |= {"doc_id": ["d", "e"]} if contract is not QUERIES else {}
    columns |= {"grade": [1.0, 0.0]} if contract is JUDGMENTS else {}
    part = write_part(tmp_path, contract, columns | changes)
    assert count_part(part, contract, sample_queries()) is None


def build_log(**changes: Any) -> dict[str, Any]:
    noon = np.datetime64("2026-11-01T12:00", "us")
    columns = {
        "event_id": list("abcd"),
        "kind": ["click", "cart", "click", "purchase"],
        "doc_id": list("ddee"),
        "user_id": ["ann", None, "ann", "bob"],
        "ts": noon + np.array([0, 1, 86_400_000_000, 2]),
        "serp_id": ["p", None, "q", None],
        "dwell_seconds": [1.5, None, 80.0, None],
    }
    return columns | changes


def test_events_are_counted_by_kind_and_day(tmp_path: Path) -> None:
    sample = UnitSample("serp_id", ("serp_id", "doc_id"), below=1 << 20, limit=9, ids=IDS, doubtful="Ã", longest=40)
    request = FileRequest((sample,), distinct=("doc_id",))
    count = count_part(write_part(tmp_path, INTERACTIONS, build_log()), INTERACTIONS, request)
    assert count is not None and count.rows == 4
    assert count.choices == {("kind", "click"): 2, ("kind", "cart"): 1, ("kind", "purchase"): 1}
    day = 20_758  # 2026-11-01
    assert count.days == {day: 3, day + 1: 1}
    assert count.largest["dwell_seconds"] == 80.0 and count.smallest["dwell_seconds"] == 1.5
    assert count.largest["ts"] - count.smallest["ts"] == 86_400_000_000
    assert estimate_distinct(count.sketches["doc_id"]) == 2
    rows = sorted(count.samples["serp_id"].to_pylist(), key=str)
    assert rows == [{"serp_id": "p", "doc_id": "d"}, {"serp_id": "q", "doc_id": "e"}], "no event without a page"
    twice = merge_counts([count, count])
    assert (twice.rows, twice.days[day], twice.largest["ts"]) == (8, 6, count.largest["ts"])
    assert twice.samples["serp_id"].num_rows == 4 and estimate_distinct(twice.sketches["doc_id"]) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": ["click", "cart", "click", "hover"]},
        {"kind": ["click", None, "click", "cart"]},
        {"event_id": ["a", "b", "c", " "]},
        {"dwell_seconds": [1.0, -1.0, None, None]},
        {"ts": np.array(["2026-11-01", "1889-12-31", "2026-11-01", "2026-11-01"], "datetime64[us]")},
        {"ts": np.array(["2026-11-01", "2300-01-01", "2026-11-01", "2026-11-01"], "datetime64[us]")},
        {"ts": np.array(["2026-11-01", "NaT", "2026-11-01", "2026-11-01"], "datetime64[us]")},
    ],
)
def test_an_event_that_may_not_fit_is_left_to_spark(tmp_path: Path, changes: dict[str, Any]) -> None:
    part = write_part(tmp_path, INTERACTIONS, build_log(**changes))
    assert count_part(part, INTERACTIONS, FileRequest()) is None


def test_users_may_be_unknown_and_pages_repeat(tmp_path: Path) -> None:
    page = {"serp_id": ["p"] * 3, "query_id": ["q"] * 3, "user_id": [None, "", " "], "doc_id": list("abc")}
    columns = page | {"position": [1, 2, 3], "ts": np.full(3, np.datetime64("2026-11-01", "ms"))}
    count = count_part(write_part(tmp_path, IMPRESSIONS, columns), IMPRESSIONS, FileRequest(distinct=("serp_id",)))
    assert count is not None and (count.nulls["user_id"], count.largest["position"]) == (1, 3)
    assert estimate_distinct(count.sketches["serp_id"]) == 1


@pytest.mark.parametrize("values", [10, SKETCHED - 1, 200_000])
def test_distinct_values_are_estimated_from_parts_that_share_some(values: int) -> None:
    hashes = hash_like_spark(pa.array([f"page {at}" for at in range(values)], pa.large_string()))
    parts = [{"serp_id": sketch_hashes([part, part])} for part in (hashes[::2], hashes[1::2], hashes[: values // 3])]
    estimate = estimate_distinct(merge_sketches(parts)["serp_id"])
    assert estimate == (values if values < SKETCHED else pytest.approx(values, rel=0.05))


def test_a_sample_over_its_limit_is_left_to_spark(tmp_path: Path) -> None:
    part = write_part(tmp_path, JUDGMENTS, {"query_id": ["q"] * 4, "doc_id": list("abcd"), "grade": [1.0] * 4}, group=9)
    for limit, rows in ((4, 4), (3, None)):
        count = count_part(part, JUDGMENTS, sample_queries(IDS, limit=limit))
        assert (None if count is None else count.samples["query_id"].num_rows) == rows


def test_a_worker_counts_the_parts_that_it_is_given(tmp_path: Path) -> None:
    part = write_part(tmp_path, QUERIES, {"query_id": ["p", "q"]})
    run = count_parts([[part], [part]], {"queries": QUERIES}, {"queries": FileRequest()})
    (batch,) = run([pa.RecordBatch.from_pydict({"id": [1]})])
    name, count = pickle.loads(batch["counted"][0].as_py())
    assert name == "queries" and isinstance(count, FileCount) and count.rows == 2


@pytest.mark.parametrize("decimals", [9, 0])
def test_bundles_of_files_give_equal_bits(tmp_path: Path, decimals: int) -> None:
    """With whole scores most lists have ties, which the texts of ids decide."""
    tables = simulate()
    tables["rankings"]["score"] = tables["rankings"]["score"].round(decimals)
    tables["rankings"] = tables["rankings"].sample(frac=1, random_state=3)
    got = assay.evaluate(**tables, metrics=["ndcg@5", "recall@5", "map"], baseline="old", segments=["device"])
    config, systems = got.config, got.run.systems
    assert isinstance(got.run, InMemoryRun)
    columns = tuple(build_query_metrics_contract(config.query_columns, config.specs).names)
    names = tuple(spec.name for spec in config.specs)
    request = ScoreRequest(names, got.run.run.conventions, systems, config.query_columns, columns)
    parts = [
        write_part(tmp_path, resolve_contract(name, config), {c: frame[c].to_list() for c in frame.columns}, group=700)
        for name, frame in tables.items()
    ]
    numbers = [pa.RecordBatch.from_pydict({"id": list(range(len(parts)))})]
    bundles = pa.Table.from_batches(divide_files(parts, systems, 3)(numbers))
    scored = []
    for bucket in bundles["bucket"].unique():
        own = bundles.filter(pa.compute.equal(bundles["bucket"], bucket))
        scored += list(score_bundles(request)(own.to_batches()))
    keys = ["system", "query_id"]
    of_files = pa.Table.from_batches(scored).to_pandas().sort_values(keys, ignore_index=True)
    expected = got.query_metrics.sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(expected, of_files, check_exact=True)
    assert (of_files["tied"].sum() > 0) == (decimals == 0)
