"""Texts as numbers of their distinct values: from dictionaries and plain columns, with nulls, in several chunks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pipelines.labels.denoise.columns import Texts, combine_codes, hash_chained
from pipelines.labels.denoise.nameless import SharedUser, find_nameless
from pipelines.labels.denoise.pack import name_contexts
from udfs.xxhash import hash_like_spark

VALUES = ["b", None, "a", "b", "größe", "a"]
PLAIN = pa.chunked_array([pa.array(VALUES[:2]), pa.array(VALUES[2:])])
ENCODED = pa.chunked_array([pa.array(VALUES[:2]).dictionary_encode(), pa.array(VALUES[2:]).dictionary_encode()])
LARGE = pa.chunked_array([pa.array(VALUES, pa.large_string())])
COLUMNS = pytest.mark.parametrize("column", [PLAIN, ENCODED, LARGE], ids=["plain", "encoded", "large"])


@COLUMNS
def test_texts_are_those_of_the_column(column: pa.ChunkedArray) -> None:
    texts = Texts.of(column)
    assert texts.to_texts().to_pylist() == VALUES
    assert texts.to_arrow().to_pylist() == VALUES
    assert texts.is_null.tolist() == [value is None for value in VALUES]
    chosen = texts.take(np.array([4, 1]))
    assert chosen.to_texts().to_pylist() == ["größe", None]
    assert chosen.to_arrow().dictionary.to_pylist() == ["größe"], "values of other rows stay behind"


@COLUMNS
def test_a_hash_of_texts_is_that_of_spark_and_null_is_its_seed(column: pa.ChunkedArray) -> None:
    present = [value for value in VALUES if value is not None]
    hashes = iter(hash_like_spark(pa.array(present, pa.large_string())).tolist())
    assert Texts.of(column).hashes.tolist() == [42 if value is None else next(hashes) for value in VALUES]


@COLUMNS
def test_values_are_matched_once_and_null_matches_nothing(column: pa.ChunkedArray) -> None:
    texts = Texts.of(column)
    assert texts.is_among(["a", "größe", "x"]).tolist() == [False, False, True, False, True, True]
    assert texts.matches("^g|b$").tolist() == [True, False, False, True, True, False]


def test_combinations_are_numbered_with_their_first_row() -> None:
    other = Texts.of(pa.chunked_array([pa.array(["x", "x", None, "x", "y", None])]))
    codes, first = combine_codes([Texts.of(PLAIN), other])
    assert codes.tolist() == [0, 1, 2, 0, 3, 2]
    assert first.tolist() == [0, 1, 2, 4]


def test_a_null_changes_no_hash_of_several_columns() -> None:
    one, nothing = Texts.of(PLAIN), Texts.of(pa.chunked_array([pa.nulls(len(VALUES), pa.string())]))
    assert hash_chained([one, nothing]).tolist() == hash_chained([nothing, one]).tolist() == one.hashes.tolist()


def test_contexts_are_named_by_their_values() -> None:
    device, locale = (Texts.of(pa.chunked_array([pa.array(values)])) for values in (["ios", None], ["de", "en"]))
    assert name_contexts(["device", "locale"], [device, locale], 2).to_pylist() == [
        "device=ios, locale=de",
        "device=?, locale=en",
    ]
    assert name_contexts([], [], 2).to_pylist() == ["all", "all"]


def test_ids_that_name_nobody() -> None:
    users = ["ann", None, "", " Guest ", "NULL", "guesthouse", "-1", "ΑNON", "shared"]
    nameless = find_nameless(Texts.of(pa.chunked_array([pa.array(users)])), SharedUser("shared", 0.6))
    assert [user for user, flag in zip(users, nameless, strict=True) if not flag] == ["ann", "guesthouse", "ΑNON"]


def test_ids_that_are_not_utf_8_are_judged_like_others() -> None:
    content = pa.array([b"staff-\xff", b"\xfe", b"guest"])
    users = Texts.of(pa.chunked_array([pa.StringArray.from_buffers(3, *content.buffers()[1:])]))
    assert users.matches("^staff-").tolist() == [True, False, False]
    assert find_nameless(users).tolist() == [False, False, True]
    assert len(set(users.hashes.tolist())) == 3
    (context, *_) = name_contexts(["user"], [users], 3).to_pylist()
    assert context == "user=staff-\ufffd"
