"""What a user may do who is not the superuser: tests often run as one who may read and write everything."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
# What commands import late: nobody may not be able to read the files of Python, e.g. below the home of the superuser.
LATE = ("jobs.fsck", "jobs.runs", "jobs.vacuum", "rich.panel", "rich.text", "schemas.spark_errors")


@contextmanager
def become_nobody() -> Iterator[None]:
    """Give up the rights of the superuser."""
    for module in LATE:
        importlib.import_module(module)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def open_public_folder() -> Iterator[Path]:
    """A folder that every user can enter; those of pytest are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        try:
            yield Path(name)
        finally:
            for folder, folders, _ in os.walk(name):
                for inner in folders:
                    Path(folder, inner).chmod(0o755)
