"""What an error of Spark is about, from the texts that Spark reports."""

from __future__ import annotations

import errno
import tempfile

import pytest

from schemas.errors import AssayError, DataQualityError, InputError, PublishError
from schemas.spark_errors import find_cause, raise_cause, raise_input_errors

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/project/udfs/spark/score.py", line 88, in run
    yield _score_rows(pa.Table.from_batches(filled), specs, request)
  File "/opt/project/udfs/metrics/rbo.py", line 47, in rbo
    seen = harmonic[depth - 1]
           ~~~~~~~~^^^^^^^^^^^
{raised}
"""
FULL = """An error occurred while calling o158.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 5.0 failed 1 times, most recent \
failure: Lost task 1.0 in stage 5.0 (TID 11) (192.0.2.2 executor driver): java.io.IOException: No space left on device
	at java.base/java.io.FileOutputStream.writeBytes(Native Method)
	at {writer}(Writer.java:59)
Caused by: java.io.IOException: No space left on device
"""
BROKEN = """An error occurred while calling o68.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 2.0 (TID 2) (192.0.2.2 executor driver): org.apache.spark.SparkException: Exception \
thrown in awaitResult:{space}
	at org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:359)
Caused by: java.io.IOException: Input/output error
	at java.base/java.io.{stream}.{call}Bytes(Native Method)
	at java.base/java.io.{stream}.{call}({stream}.java:276)
	at org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileInputStream.read(RawLocalFileSystem.java:231)
"""


def test_a_device_that_fails_while_inputs_are_read_is_an_unreadable_input() -> None:
    message = r"^cannot read the data: Input/output error \(inputs.queries: /data/q\)"
    with pytest.raises(InputError, match=message), raise_input_errors("inputs.queries: /data/q"):
        raise RuntimeError(BROKEN.format(space=" ", stream="FileInputStream", call="read"))
    with pytest.raises(RuntimeError), raise_input_errors("inputs.queries: /data/q"):
        raise RuntimeError(BROKEN.format(space=" ", stream="FileOutputStream", call="write"))


def test_a_file_that_may_not_be_opened_is_an_unreadable_input() -> None:
    text = BROKEN.format(space=" ", stream="FileInputStream", call="read").replace("readBytes(", "open0(")
    text = text.replace(
        "IOException: Input/output error", "FileNotFoundException: /j/part-0.parquet (Permission denied)"
    )
    message = r"^cannot read the data: /j/part-0.parquet \(Permission denied\) \(inputs.judgments: /j\)"
    with pytest.raises(InputError, match=message), raise_input_errors("inputs.judgments: /j"):
        raise RuntimeError(text)


def test_where_java_names_no_file_the_places_that_were_read_are_named() -> None:
    places = ["file:///data/warehouse", "/data/q"]
    message = r"\(while evaluating, in one of file:///data/warehouse, /data/q\)"
    with pytest.raises(InputError, match=message), raise_input_errors("while evaluating", places):
        raise RuntimeError(BROKEN.format(space=" ", stream="FileInputStream", call="read"))
    for path in ("/j/part-0.parquet", "file:///j/part-0.parquet", "s3a://b/part-0.parquet"):
        text = f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {path}. SQLSTATE: KD001"
        with pytest.raises(InputError, match=r"\(while evaluating\)"), raise_input_errors("while evaluating", places):
            raise RuntimeError(text)


def test_a_file_that_is_not_parquet_asks_for_its_format() -> None:
    text = (
        "[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file file:/data/pages.json. "
        "Could not read footer. Please ensure that the file is in either ORC or Parquet format. SQLSTATE: KD001"
    )
    message = (
        r"reading file file:/data/pages.json.*\(inputs.impressions: pages.json\): Parquet is read where `format` says"
    )
    with pytest.raises(InputError, match=message), raise_input_errors("inputs.impressions: pages.json"):
        raise RuntimeError(text)


def test_files_with_other_types_are_reported_by_column() -> None:
    text = (
        "[CANNOT_MERGE_SCHEMAS] Failed merging schemas:\nInitial schema:\n"
        '"STRUCT<query_id: STRING, doc_id: STRING, grade: BIGINT, price: DECIMAL(10,2), tags: ARRAY<STRING>>"\n'
        "Schema that cannot be merged with the initial schema:\n"
        '"STRUCT<query_id: STRING, doc_id: STRING, grade: DOUBLE, price: DECIMAL(12,2), tags: ARRAY<STRING>>". '
        "SQLSTATE: 42KD9"
    )
    message = (
        r"^cannot read the data: the types of files differ: grade is BIGINT in some and DOUBLE in others, price is "
        r"DECIMAL\(10,2\) in some and DECIMAL\(12,2\) in others \(inputs.judgments: /j\): write the column with"
    )
    with pytest.raises(InputError, match=message), raise_input_errors("inputs.judgments: /j"):
        raise RuntimeError(text)


def test_a_compressed_file_that_was_cut_off_is_reported_with_the_fix() -> None:
    text = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///log.csv.gz. SQLSTATE: KD001\n"
        "Caused by: java.io.EOFException: Unexpected end of input stream"
    )
    with (
        pytest.raises(InputError, match=r"\(inputs\.impressions\): the file was cut off: copy it again$"),
        raise_input_errors("inputs.impressions"),
    ):
        raise RuntimeError(text)


def test_a_folder_with_files_in_subfolders_only_is_reported_with_the_fix() -> None:
    text = "[UNABLE_TO_INFER_SCHEMA] Unable to infer schema for Parquet. It must be specified manually. SQLSTATE: 42KD9"
    with (
        pytest.raises(
            InputError, match=r"\(inputs\.judgments: /j\): name the folder that has the files: subfolders are"
        ),
        raise_input_errors("inputs.judgments: /j"),
    ):
        raise RuntimeError(text)


def test_an_exception_in_a_worker_is_reported_with_its_place() -> None:
    error = find_cause(Exception(WORKER.format(raised="IndexError: index 17 is out of bounds for axis 0 with size 17")))
    assert type(error) is AssayError
    assert error.what == "IndexError: index 17 is out of bounds for axis 0 with size 17"
    assert error.where == "udfs/metrics/rbo.py, line 47, in rbo"
    assert error.exit_code == 1


def test_an_error_of_ours_in_a_worker_keeps_its_kind() -> None:
    raised = "schemas.errors.DataQualityError: the largest grade is 75: use gain=linear"
    with pytest.raises(DataQualityError, match=r"^the largest grade is 75: use gain=linear$"):
        raise_cause(Exception(WORKER.format(raised=raised)))
    with pytest.raises(DataQualityError), raise_input_errors("while evaluating"):
        raise RuntimeError(WORKER.format(raised=raised))


@pytest.mark.parametrize("raised", ["KeyError: 'a: b\nc'", "MemoryError", "StopIteration: ", "ExceptionGroup: x (2)"])
def test_any_exception_has_a_name(raised: str) -> None:
    error = find_cause(Exception(WORKER.format(raised=raised)))
    assert error is not None
    assert error.what.startswith(raised.split(":")[0])


def test_a_killed_worker_is_named() -> None:
    error = find_cause(Exception("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"))
    assert error is not None
    assert "for lack of memory" in str(error)


@pytest.mark.parametrize(
    "writer",
    [
        "org.apache.spark.storage.TimeTrackingOutputStream.write",
        "org.apache.spark.shuffle.sort.ShuffleWriter.write",
        "org.apache.spark.SparkContext.addFile",
        "org.apache.spark.util.Utils$.fetchFile",
    ],
)
def test_a_full_local_disk_names_the_folder(monkeypatch: pytest.MonkeyPatch, writer: str) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/small/disk")
    with pytest.raises(PublishError, match=r"^the disk of Spark's local files is full \(/small/disk\): free space"):
        raise_cause(Exception(FULL.format(writer=writer)))


def test_a_full_local_disk_is_reported_also_after_java_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    def refuse() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr(SparkSession, "getActiveSession", refuse)
    error = find_cause(Exception(FULL.format(writer="org.apache.spark.shuffle.sort.ShuffleWriter.write")))
    assert isinstance(error, PublishError)
    assert str(error).startswith(f"the disk of Spark's local files is full ({tempfile.gettempdir()})")


def test_a_full_disk_is_named_by_the_file_that_could_not_be_written() -> None:
    error = find_cause(OSError(errno.ENOSPC, "No space left on device", "/tmp/assay-1/assay.zip"))
    assert isinstance(error, PublishError)
    assert str(error).startswith("a disk is full (/tmp/assay-1/assay.zip): free space there")


def test_a_full_warehouse_is_left_to_the_writer() -> None:
    error = Exception(FULL.format(writer="org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write"))
    assert find_cause(error) is None
    raise_cause(error)


def test_errors_that_stand_for_themselves_are_raised_again() -> None:
    for error in (InputError("x"), Exception("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03")):
        with pytest.raises(type(error)) as caught:
            raise_cause(error)
        assert caught.value is error
