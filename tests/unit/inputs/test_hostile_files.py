"""`assay inspect` on files that no log should have: a profile or one message, never a stack trace or a secret."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from jobs.cli import assay, invoke
from pipelines.inputs.sample import MAX_BYTES, profile_columns, sample_file

SECRET = "hunter2hunter2"
UNREADABLE = {
    "empty.csv": b"",
    "blank.csv": b"  \n\n",
    "empty.parquet": b"",
    "truncated.parquet": b"PAR1 and no footer PAR1",
    "ragged.csv": b"a,b\n1,2,3\n4\n",
    "open-quote.csv": b'a,b\n"x\n',
    "latin.csv": b"query_id\n\xe9\n",
    "deep-objects.json": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "deep-arrays.json": b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "half-object.json": b'{\n"a":\n',
    "no-gzip.json.gz": b"no gzip",
    "cut-gzip.json.gz": gzip.compress(b'{"a": 1}\n' * 100)[:30],
}
# Each with the smallest value of its column `a`.
TEXTS = {
    "control.csv": (b"a\n\x1b[2Jred\n", "\x1b[2Jred"),
    "twice.csv": (b"a,a\n1,2\n", 1),
    "byte-order.csv": (b"\xef\xbb\xbfa\n7\n", 7),
    "byte-order.json": (b'\xef\xbb\xbf{"a": 7}\n', 7),
    "huge-number.json": (b'{"a": 99999999999999999999999}\n', "99999999999999999999999"),
    "half-character.json": (b'{"a": "\\ud800"}\n', "\\ud800"),
    "half-name.json": (b'{"a": 1, "\\udfff": 2}\n', 1),
    "kinds.json": (b'{"a": {"b": 1}}\n{"a": "x"}\n', "x"),
}
ARRAYS = {
    "duration": pa.array([1, 2], pa.duration("s")),
    "half": pa.array([1.0, 2.0], pa.float16()),
    "far": pa.array([2**50, -(2**50)], pa.timestamp("s")),
    "mars": pa.array([2**40, 5], pa.timestamp("s", "Mars/Olympus")),
    "infinite": pa.array([float("nan"), float("inf")]),
    "bytes": pa.array([b"\xff\xfe", b"\x00"]),
    "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    "nothing": pa.array([None, None]),
}


@pytest.fixture
def inspect(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(name: str, content: bytes | pa.Table, *options: str) -> tuple[int, str, str]:
        path = tmp_path / name
        if isinstance(content, pa.Table):
            pa.parquet.write_table(content, path)
        else:
            path.write_bytes(content)
        code = invoke(assay, ["inspect", str(path), *options])
        return code, *capfd.readouterr()

    return run


Inspect = Callable[..., tuple[int, str, str]]


def parse_strictly(text: str) -> dict[str, object]:
    """Parse JSON as its standard has it, without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    parsed: dict[str, object] = json.loads(text, parse_constant=refuse)
    return parsed


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_ends_with_3_and_its_name(name: str, inspect: Inspect) -> None:
    code, _, err = inspect(name, UNREADABLE[name])
    assert (code, name in err, "unexpected" in err) == (3, True, False), err


def test_a_first_line_beyond_the_sample_is_not_called_empty(inspect: Inspect) -> None:
    code, _, err = inspect("line.json.gz", gzip.compress(b'{"a": "' + b"x" * MAX_BYTES))
    assert code == 3
    assert "its first line has more than 16 MB" in err


@pytest.mark.parametrize("name", TEXTS)
def test_odd_text_is_profiled(name: str, tmp_path: Path, inspect: Inspect) -> None:
    content, smallest = TEXTS[name]
    code, out, err = inspect(name, content)
    assert (code, "\x1b" in out + err) == (0, False), err
    assert profile_columns(sample_file(str(tmp_path / name)).rows)[0].smallest == smallest


@pytest.mark.parametrize("name", ARRAYS)
def test_odd_types_are_profiled_and_their_json_is_json(name: str, inspect: Inspect) -> None:
    for table in (pa.table({name: ARRAYS[name]}), pa.table({name: ARRAYS[name]}).slice(0, 0)):
        assert inspect(f"{name}.parquet", table)[0] == 0
        code, out, err = inspect(f"{name}.parquet", table, "--output", "json")
        assert code == 0, err
        assert parse_strictly(out)["files"]


def test_two_columns_of_one_name_are_both_shown(tmp_path: Path) -> None:
    path = tmp_path / "twice.parquet"
    pa.parquet.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    assert [profile.smallest for profile in profile_columns(sample_file(str(path)).rows)] == [1, 2]


def test_a_value_of_a_megabyte_is_cut_in_json(inspect: Inspect) -> None:
    code, out, _ = inspect("long.json", json.dumps({"query_id": "x" * 1_000_000}).encode(), "--output", "json")
    assert (code, len(out) < 10_000) == (0, True)


@pytest.mark.parametrize("options", [(), ("--output", "json")])
def test_columns_with_secret_names_show_no_values(options: tuple[str, ...], inspect: Inspect) -> None:
    row = {"password": SECRET, "user": {"apiKey": SECRET}, "uri": f"https://me:{SECRET * 10}@host.example/"}
    code, out, err = inspect("secrets.json", json.dumps(row).encode(), *options)
    assert (code, SECRET in out + err) == (0, False)
    assert "password" in out
