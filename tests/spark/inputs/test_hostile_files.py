"""Files that no reader should be given: refused in one line that names the file, or read with the bad rows apart."""

import gzip
import io
import json
import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipelines.inputs.read import read_input
from pipelines.inputs.settings import InputSource
from schemas.conform import conform
from schemas.errors import InputError
from schemas.inputs import JUDGMENTS
from schemas.spark_errors import raise_input_errors
from tests.helpers.small_data import DATE

HEADER = "query_id,doc_id,grade\n"
GOOD = "q1,d1,2\nq1,d2,0\nq2,d1,1\n"
GOOD_JSON = '{"query_id":"q1","doc_id":"d1","grade":2}\n'


def write_parquet(**columns: pa.Array) -> bytes:
    table = pa.table({"query_id": ["q1", "q2"], "doc_id": ["d1", "d2"], "grade": [1.0, 2.0]} | columns)
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


READ: dict[str, tuple[str | bytes, int, int]] = {  # name -> content, rows that fit, rows that do not
    "byte_order_mark.csv": (b"\xef\xbb\xbf" + (HEADER + GOOD).encode(), 3, 0),
    "carriage_returns.csv": ((HEADER + GOOD).replace("\n", "\r"), 3, 0),
    "open_quote.csv": (HEADER + GOOD + '"q3,d1,1\nq4,d1,1\n', 4, 1),
    "nul.csv": (HEADER + GOOD + "q\0x,d\0,1\n", 4, 0),
    "controls.csv": (HEADER + GOOD + "q\u202e1,d\x1b[31m,1\nq\u2028x,d1,2\n", 5, 0),
    "long.csv": (HEADER + GOOD + f"q1,{'d' * 3_000_000},1\n", 3, 1),
    "numbers.csv": (
        HEADER + "".join(f"q,{n},{v}\n" for n, v in enumerate(["NaN", "inf", "1e400", "0x10", "١", "1_0", "+1"])),
        1,
        6,
    ),
    "compressed.csv.gz": (gzip.compress((HEADER + GOOD).encode()), 3, 0),
    "array.json": (json.dumps([{"query_id": "q1", "doc_id": "d1", "grade": 2}]), 1, 0),
    "deep.json": (GOOD_JSON + '{"query_id":' + "[" * 20_000 + "]" * 20_000 + "}\n", 1, 1),
    "mixed.json": (GOOD_JSON + '{"query_id":["q"],"doc_id":{"a":1},"grade":[2]}\n', 1, 1),
    "huge.json": (GOOD_JSON + '{"query_id":"q1","doc_id":"d2","grade":1' + "0" * 400 + "}\n", 1, 1),
    "surrogate.json": (GOOD_JSON + '{"query_id":"q1","doc_id":"\\ud800","grade":1}\n', 2, 0),
    "lists.parquet": (write_parquet(grade=pa.array([[1.0], [2.0]])), 0, 2),
    "times.parquet": (write_parquet(grade=pa.array([1, 2], pa.timestamp("us"))), 0, 2),
}
REFUSED: dict[str, tuple[str | bytes, str]] = {  # name -> content, what the message says besides the name
    "utf16.csv": ((HEADER + GOOD).encode("utf-16"), "The file seems to be UTF-16"),
    "semicolons.csv": ((HEADER + GOOD).replace(",", ";"), 'options: {sep: ";"}'),
    "binary.csv": (random.Random(2).randbytes(20_000), "judgments lacks query_id, doc_id, grade"),
    "wide.csv": (HEADER + GOOD + "x," * 30_000 + "\n", "cannot read the data"),
    "garbage.csv.gz": (random.Random(1).randbytes(2_000), "not a gzip file"),
    "truncated.csv.gz": (gzip.compress((HEADER + GOOD * 5_000).encode())[:200], "Unexpected end of input stream"),
    "twice.json": (GOOD_JSON + '{"query_id":"q1","doc_id":"d2","grade":1,"grade":3}\n', "`grade` already exists"),
    "pretty.json": (json.dumps([{"query_id": "q1"}], indent=2), "a JSON file has one object per line"),
    "truncated.parquet": (write_parquet()[:300], "is not a Parquet file"),
    "text.parquet": (HEADER + GOOD, "is not a Parquet file"),
    "footer.parquet": (b"PAR1" + b"\xff" * 500 + b"\xff\xff\xff\x7fPAR1", "corrupted file"),
    "nanoseconds.parquet": (write_parquet(grade=pa.array([1, 2], pa.timestamp("ns"))), "rewrite it with types"),
    "letters.parquet": (write_parquet(GRADE=pa.array([1.0, 2.0])), "`grade` already exists"),
}


def count(spark: SparkSession, path: Path) -> tuple[int, int]:
    """How many rows fit, and how many do not, as a run reads them."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    source = InputSource.model_validate({"path": str(path), "format": kind})
    with raise_input_errors(f"inputs.judgments: {path}"):
        conformed = conform(read_input(spark, "judgments", source, DATE).raw, JUDGMENTS)
        return conformed.rows.count(), conformed.rejected_rows.count()


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_is_and_the_rest_is_counted(spark: SparkSession, tmp_path: Path, name: str) -> None:
    content, kept, rejected = READ[name]
    assert count(spark, write(tmp_path / name, content)) == (kept, rejected)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line(spark: SparkSession, tmp_path: Path, name: str) -> None:
    content, reason = REFUSED[name]
    with pytest.raises(InputError) as caught:
        count(spark, write(tmp_path / name, content))
    message = str(caught.value)
    assert reason in message
    assert "\tat " not in message and "Exception" not in message
    assert len(message) < 1_000


def test_a_pipe_and_a_link_to_nothing_beside_the_data_do_not_stop_a_run(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.csv", HEADER + GOOD)
    os.mkfifo(tmp_path / "b.csv")
    (tmp_path / "c.csv").symlink_to(tmp_path / "nothing")
    source = InputSource(path=str(tmp_path), format="csv")
    with raise_input_errors("inputs.judgments"):
        assert conform(read_input(spark, "judgments", source, DATE).raw, JUDGMENTS).rows.count() == 3
