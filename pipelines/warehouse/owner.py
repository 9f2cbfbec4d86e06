"""Which process owns a temporary file or folder, so that what a killed process left can be removed at once.

An owner is named by a token: this machine, the process id, and when the process started, since ids are reused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

State = Literal["running", "ended", "unknown"]
OWNER = "owner.json"  # the file in a folder that names its owner
PREFIX = "assay-"  # of folders for temporary files on the local disk


def name_process() -> str:
    """Return the token of this process."""
    return f"{_name_machine()}-{os.getpid()}-{_read_start(os.getpid())}"


def describe_process() -> str:
    """Return the content of an owner file: the token, and what a person needs to find the process."""
    return json.dumps({"process": name_process(), "host": socket.gethostname(), "pid": os.getpid()})


def read_owner(content: str) -> str:
    """Return the token of an owner file; empty if it has none."""
    try:
        return str(json.loads(content)["process"])
    except (ValueError, KeyError, TypeError):
        return ""


def find_state(token: str) -> State:
    """Whether the process of a token runs or has ended; unknown for one of another machine."""
    machine, _, rest = token.partition("-")
    pid, _, start = rest.partition("-")
    if machine != _name_machine() or not pid.isdecimal():
        return "unknown"
    return "running" if _read_start(int(pid)) == start else "ended"


@contextmanager
def open_temporary_folder() -> Iterator[Path]:
    """Make a folder that is removed at the end; first remove those of processes that were killed."""
    remove_abandoned_folders()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        (folder / OWNER).write_text(describe_process(), encoding="utf-8")
        yield folder


def remove_abandoned_folders() -> list[str]:
    """Remove temporary folders whose process has ended, and return their names."""
    removed = []
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        try:
            if not _is_own_folder(folder):
                continue
            state = find_state(read_owner((folder / OWNER).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError):  # not ours, or just removed
            continue
        if state == "ended":
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(str(folder))
    return removed


def _is_own_folder(path: Path) -> bool:
    """Whether this is a folder of this user, and no link: others may put anything into a shared place, e.g. a pipe."""
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


@cache
def _name_machine() -> str:
    """The host and its space of process ids, which a container has for itself."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return _hash(f"{socket.gethostname()} {space}")


def _read_start(pid: int) -> str:
    """A digest of when a process started; empty if it does not run."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:  # no Linux: only the id can be compared
        return _hash("") if _runs(pid) else ""
    try:
        state, *fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return ""
    return "" if state in "ZX" else _hash(f"{boot} {fields[18]}")  # a zombie has ended


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
