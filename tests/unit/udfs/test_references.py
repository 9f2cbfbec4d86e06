"""Bundles that a worker leaves in a file: the next stage reads what was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import PublishError
from udfs.spark.bundles import build_bundles, divide_rows, read_bundles
from udfs.spark.references import resolve_reference, store_bundles

ROWS = pa.table({"key": pa.array(np.arange(7) << 61), "text": list("abcdefg")})


def make_bundles(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield divide_rows(ROWS, ROWS["key"].to_numpy(), 4, kind=1)
    yield build_bundles(np.array([3]), [pa.table({"text": pa.array([], pa.string())})], kind=2)


def test_references_lead_to_the_bundles(tmp_path: Path) -> None:
    folder = tmp_path / "not there yet"
    written = list(store_bundles(make_bundles, str(folder))([]))
    (file,) = folder.iterdir()
    assert all(len(data.as_py()) < len(str(file)) + 40 for batch in written for data in batch["data"])
    for batch, plain in zip(written, make_bundles([]), strict=True):
        assert batch.drop_columns(["data"]).equals(plain.drop_columns(["data"]))
        for reference, data in zip(batch["data"], plain["data"], strict=True):
            buffer = resolve_reference(reference)
            assert buffer.to_pybytes() == data.as_py()
            assert buffer.address % 8 == 0
    assert sorted(read_bundles(written)[1]["text"].to_pylist()) == list("abcdefg")
    assert read_bundles(written)[2].num_rows == 0


def test_every_call_writes_a_file_of_its_own(tmp_path: Path) -> None:
    store = store_bundles(make_bundles, str(tmp_path))
    first, second = list(store([])), list(store([]))
    assert len(list(tmp_path.iterdir())) == 2
    assert read_bundles(first)[1].num_rows == read_bundles(second)[1].num_rows == 7


def test_without_a_folder_bundles_stay_as_they_are() -> None:
    assert store_bundles(make_bundles, None) is make_bundles


def test_a_reference_can_be_read_while_the_file_grows(tmp_path: Path) -> None:
    batches = iter(store_bundles(make_bundles, str(tmp_path))([]))
    assert read_bundles([next(batches)])[1].num_rows == 7


def test_an_error_of_the_disk_is_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError, match=r"cannot write: .*folder"):
        list(store_bundles(make_bundles, str(tmp_path / "file" / "folder"))([]))
