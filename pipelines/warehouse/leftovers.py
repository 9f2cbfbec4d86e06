"""What attempts leave in a warehouse when they are killed: found by the owner that each attempt names.

An attempt's folder `_attempts/RUN` has a file that names the process. Where that process has ended, the folder, and
tables of the run that no manifest commits, are removed at once; where it cannot be known, because it ran on another
machine, after some hours. A folder gets its name when it has that file and loses it before the file goes, so a process
that is killed in between leaves a folder that is named as an unfinished file, after its process.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress

from pipelines.warehouse.owner import OWNER, State, describe_process, find_state, name_process, read_owner
from pipelines.warehouse.runs import REPORTS, RUNS, manifest_path, table_path
from pipelines.warehouse.storage import PART, Storage
from schemas.errors import AssayError, PublishError

logger = logging.getLogger(__name__)

ATTEMPTS = "_attempts"
DATE = "date"
_PLACES_OF_PARTS = (RUNS, REPORTS, "tracking", "data_docs", "mlflow", ATTEMPTS)
_open_attempts: set[tuple[str, str]] = set()  # of this process
_unfinished: list[tuple[Storage, str, str]] = []  # ended here without a commit


def attempt_path(run: str) -> str:
    """Return the folder of an attempt in the warehouse."""
    return f"{ATTEMPTS}/{run}"


def claim_attempt(storage: Storage, date: str, run: str) -> None:
    """Name this process as the owner of an attempt."""
    _open_attempts.add((storage.uri, run))
    content = json.dumps(json.loads(describe_process()) | {DATE: date})
    if not storage.renames:
        storage.put(f"{attempt_path(run)}/{OWNER}", content)
        return
    part = _name_part(run)
    try:
        storage.put(f"{part}/{OWNER}", content)
        storage.move(part, attempt_path(run))
    except (OSError, AssayError) as error:
        with suppress(OSError, AssayError):
            storage.delete(part)
        if isinstance(error, AssayError):
            raise
        hint = "check that the warehouse is writable"
        raise PublishError(f"cannot write: {error}", where=storage.path(attempt_path(run)), hint=hint) from error


def remove_attempt(storage: Storage, date: str, run: str) -> None:
    """Remove the folder of an attempt, and its tables unless a manifest commits them; the owner file goes last."""
    _open_attempts.discard((storage.uri, run))
    if not storage.exists(manifest_path(date, run)):
        _unfinished.append((storage, date, run))
        for folder in list_run_folders(storage, date, run):
            storage.delete(folder)
    for name in storage.list(attempt_path(run)):
        if not name.endswith(f"/{OWNER}"):
            storage.delete(name)
    storage.delete(_hide_attempt(storage, run))


def _hide_attempt(storage: Storage, run: str) -> str:
    """Rename the folder of an attempt after this process, which removes it, and return its name."""
    if storage.renames and storage.exists(attempt_path(run)):
        with suppress(OSError):  # another process removes it too, or the disk is full
            storage.move(attempt_path(run), _name_part(run))
            return _name_part(run)
    return attempt_path(run)


def _name_part(run: str) -> str:
    """The folder of an attempt while this process makes or removes it."""
    return f"{attempt_path(run)}.{name_process()}{PART}"


def remove_unfinished_attempts() -> None:
    """Remove once more what attempts of this process left, after Spark has stopped writing."""
    attempts = list(_unfinished)
    for storage, date, run in attempts:
        try:
            remove_attempt(storage, date, run)
        except (OSError, AssayError) as error:
            logger.debug("could not remove the attempt %s: %s", run, error)
    _unfinished.clear()


def remove_leftovers(storage: Storage) -> list[str]:
    """Remove the attempts whose process has ended, and return their runs; another process may remove them too."""
    removed = []
    for run, date, state in list_attempts(storage):
        if state == "ended":
            try:
                remove_attempt(storage, date, run)
            except (OSError, AssayError) as error:
                logger.debug("could not remove the attempt %s: %s", run, error)
            else:
                removed.append(run)
    for part in storage.list(ATTEMPTS, suffix=PART):
        if _find_writer(part) == "ended":
            with suppress(OSError, AssayError):
                storage.delete(part)
    return removed


def list_attempts(storage: Storage) -> Iterator[tuple[str, str, State]]:
    """Yield run, date and state of the process of each attempt."""
    for folder in storage.list(ATTEMPTS):
        run = folder.rpartition("/")[2]
        if run.endswith(PART):  # being made or removed
            continue
        try:
            content = storage.get(f"{folder}/{OWNER}")
            date = str(json.loads(content)[DATE])
        except (OSError, ValueError, KeyError, TypeError):
            yield run, "", "unknown"
            continue
        owner = read_owner(content)
        state = find_state(owner)
        if owner == name_process() and (storage.uri, run) not in _open_attempts:
            state = "ended"
        yield run, date if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else "", state


def list_run_folders(storage: Storage, date: str, run: str) -> list[str]:
    """List the folders of a run's tables and pages, whether or not a manifest names them."""
    places = [table_path(top, date, run) for top in storage.list() if top not in (RUNS, ATTEMPTS)]
    return [place for place in places if date and storage.exists(place)]


def find_abandoned_parts(storage: Storage, *, hours: float) -> list[str]:
    """Find files that a process that has ended was writing; those of unknown processes if older than `hours`."""
    parts = [name for top in _PLACES_OF_PARTS for name in storage.list(top, suffix=PART, recursive=True)]
    states = {name: _find_writer(name) for name in parts}
    return [
        name
        for name, state in states.items()
        if state == "ended" or (state != "running" and storage.age(name) > hours * 3600)
    ]


def _find_writer(part: str) -> State:
    """The state of the process that writes a file, by the name of the unfinished file."""
    return find_state(part.removesuffix(PART).rpartition(".")[2])
