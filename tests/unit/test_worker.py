"""A worker that has settled forgets archives and keeps modules, and still imports and collects garbage as before."""

import gc
import subprocess
import sys
import zipfile
from pathlib import Path

SCRIPT = """
import gc, sys, weakref, zipimport
sys.path.insert(0, sys.argv[1])
import first_of_archive
assert isinstance(sys.path_importer_cache[sys.argv[1]], zipimport.zipimporter)

from udfs.worker import settled

def doubled(batches):
    for batch in batches:
        yield 2 * batch

assert list(settled(doubled)([1, 2])) == [2, 4]
assert not any(isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values())
kept = gc.get_freeze_count()
assert kept > 1000

import second_of_archive

class Ring:
    pass

ring = Ring()
ring.itself, gone = ring, weakref.ref(ring)
list(settled(doubled)([3]))
del ring
gc.collect()
assert gone() is None, "what a task leaves behind was kept"
assert gc.get_freeze_count() <= kept, "kept more than once"
print(first_of_archive.NAME, second_of_archive.NAME)
"""


def test_a_settled_worker_forgets_archives_and_keeps_modules(tmp_path: Path) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("first_of_archive.py", "NAME = 'one'")
        written.writestr("second_of_archive.py", "NAME = 'two'")
    before = gc.get_freeze_count()
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(archive)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("one two\n", "")
    assert gc.get_freeze_count() == before
