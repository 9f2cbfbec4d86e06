"""A prepared worker forgets archives and keeps modules; reading ahead returns the same batches, in order."""

import gc
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from udfs.spark.worker import read_ahead

SCRIPT = """
import gc, sys, weakref, zipimport
sys.path.insert(0, sys.argv[1])
import first_of_archive
assert isinstance(sys.path_importer_cache[sys.argv[1]], zipimport.zipimporter)

from udfs.spark.worker import run_in_worker

def doubled(batches):
    for batch in batches:
        yield 2 * batch

assert list(run_in_worker(doubled)([1, 2])) == [2, 4]
assert not any(isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values())
kept = gc.get_freeze_count()
assert kept > 1000

import second_of_archive

class Ring:
    pass

ring = Ring()
ring.itself, gone = ring, weakref.ref(ring)
list(run_in_worker(doubled)([3]))
del ring
gc.collect()
assert gone() is None, "what a task leaves behind was kept"
assert gc.get_freeze_count() <= kept, "kept more than once"
print(first_of_archive.NAME, second_of_archive.NAME)
"""


def test_a_prepared_worker_forgets_archives_and_keeps_modules(tmp_path: Path) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("first_of_archive.py", "NAME = 'one'")
        written.writestr("second_of_archive.py", "NAME = 'two'")
    before = gc.get_freeze_count()
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(archive)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("one two\n", "")
    assert gc.get_freeze_count() == before


def test_what_is_read_ahead_comes_in_order_and_is_bounded() -> None:
    read: list[int] = []

    def source() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    got = []
    for number in read_ahead(source(), most=3):
        got.append(number)
        assert len(read) <= len(got) + 3 + 1  # those that wait, and the one that waits to be let in
    assert got == list(range(100))


def test_an_error_while_reading_ahead_comes_after_what_was_read_before() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise OSError("cut off")

    batches = read_ahead(source())
    assert next(batches) == 1
    with pytest.raises(OSError, match="cut off"):
        next(batches)


def test_whoever_stops_early_leaves_no_reader_behind() -> None:
    before = set(threading.enumerate())
    batches = read_ahead(iter(range(1000)), most=2)
    assert next(batches) == 0
    (reader,) = set(threading.enumerate()) - before
    batches.close()  # type: ignore[attr-defined]
    reader.join(timeout=10)
    assert not reader.is_alive()
