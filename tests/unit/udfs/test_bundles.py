"""Rows come out of bundles as they went in, each key in one bucket, and each bucket in a partition of its own."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from udfs.spark.bundles import collect_rows, divide_rows, find_buckets, hash_numbers, name_buckets, read_bundles
from udfs.spark.references import store_bundles


def build_rows(size: int, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    systems = pa.array(random.choice(["a", "b", "c"], size)).dictionary_encode()
    return pa.table(
        {
            "key": pa.array(random.integers(-(2**63), 2**63, size)),
            "number": pa.array(np.arange(size)),
            "system": systems,
            "list": pa.array([list(range(row % 3)) for row in range(size)], pa.list_(pa.int64())),
        }
    )


def sort_rows(table: pa.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.sort_by("number").to_pylist()
    return rows


@pytest.mark.parametrize("partitions", [1, 7, 256])
def test_divided_rows_are_the_same_rows(partitions: int) -> None:
    tables = [build_rows(500, 1), build_rows(300, 2)]
    batches = [divide_rows(table, table["key"].to_numpy(), partitions, kind=4) for table in tables]
    together = read_bundles(batches)
    assert list(together) == [4]
    assert sort_rows(together[4]) == sort_rows(pa.concat_tables(tables).unify_dictionaries())


def test_a_key_is_in_one_bucket_and_buckets_are_ranges() -> None:
    keys = np.random.default_rng(3).integers(-(2**63), 2**63, 10_000)
    fine, coarse = find_buckets(keys, 64), find_buckets(keys, 16)
    assert (fine // 4 == coarse).all()
    assert np.bincount(coarse, minlength=16).min() > 500
    assert np.bincount(find_buckets(keys, 1_000), minlength=1_000).max() < 30


def test_a_bundle_holds_the_rows_of_its_bucket_only() -> None:
    table = build_rows(400)
    batch = divide_rows(table, table["key"].to_numpy(), 8)
    for bucket, row in zip(batch["bucket"].to_pylist(), range(batch.num_rows), strict=True):
        rows = read_bundles([batch.slice(row, 1)])[0]
        assert set(find_buckets(rows["key"].to_numpy(), 8)) == {bucket}


def test_no_rows_make_no_bundles() -> None:
    table = build_rows(0)
    assert divide_rows(table, np.zeros(0, dtype=np.int64), 8).num_rows == 0
    assert read_bundles([]) == {}
    assert list(collect_rows([])) == []


def test_a_task_makes_tables_of_bounded_size() -> None:
    batches = build_rows(1_000).to_batches(max_chunksize=100)
    sizes = [table.num_rows for table in collect_rows(batches, most=250)]
    assert sizes == [300, 300, 300, 100]


def test_a_column_beside_the_bundles_becomes_one_of_their_rows() -> None:
    table = build_rows(10)
    batch = divide_rows(table, table["key"].to_numpy(), 1)
    labelled = batch.append_column("day", pa.array([17], pa.int32()))
    assert read_bundles([labelled], "day")[0]["day"].to_pylist() == [17] * 10


def test_numbers_are_hashed_as_spark_hashes_them() -> None:
    # SELECT hash(0), hash(1), hash(-1), hash(2147483647)
    numbers = np.array([0, 1, -1, 2**31 - 1], dtype=np.int32)
    assert hash_numbers(numbers).tolist() == [933211791, -559580957, -1604776387, 133916647]


@pytest.mark.parametrize("partitions", [1, 2, 16, 200, 1_000])
def test_every_bucket_has_a_partition_of_its_own(partitions: int) -> None:
    names = name_buckets(partitions)
    assert (hash_numbers(names).astype(np.int64) % partitions).tolist() == list(range(partitions))


def test_stored_bundles_are_read_where_they_are_referred_to(tmp_path: Path) -> None:
    folder, table = tmp_path / "ä folder", build_rows(500)
    bundles = divide_rows(table, table["key"].to_numpy(), 16, kind=2)
    stored = list(store_bundles(iter, str(folder))([bundles.slice(0, 5), bundles.slice(5)]))
    assert max(len(data) for part in stored for data in part["data"].to_pylist()) < 1_000
    read = read_bundles(stored)
    for file in folder.iterdir():
        file.unlink()  # what has been read stays
    assert sort_rows(read[2]) == sort_rows(table)
