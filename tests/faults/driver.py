"""Draw faults by a seed, inject them one after the other, and check what must hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.faults.faults import KILLED, Ending, Fault, draw_fault
from tests.faults.reader import LoopingReader
from tests.faults.world import SECRET, World

TRACE = re.compile(r"Traceback \(most recent call last\)|^\s+at [\w.$]+\(|Exception in thread", re.MULTILINE)
OF_JAVA = ("hsperfdata_",)  # which Java removes at its next start


@dataclass
class Tally:
    """The faults injected so far, and every problem by its kind."""

    injected: int = 0
    reads: int = 0
    ends: Counter[int] = field(default_factory=Counter)
    problems: list[tuple[str, str]] = field(default_factory=list)


def inject_faults(world: World, tally: Tally, *, seed: int, count: int) -> Iterator[tuple[Fault, list[str]]]:
    """Inject `count` faults drawn by `seed`, then run once undisturbed; yields the problems of each."""
    random = Random(seed)
    for _ in range(count):
        fault = draw_fault(random, with_shim=world.shim is not None)
        yield fault, _inject(world, fault, tally)
    calm = Fault("nothing", lambda world: [Ending(world.run(), {0: ""})])
    problems = _inject(world, calm, tally)
    left = [str(path) for path in (world.folder / "warehouse" / "_attempts").glob("*")]
    tally.problems += [(calm.name, f"leak: {path}") for path in left]
    yield calm, [*problems, *left]


def _inject(world: World, fault: Fault, tally: Tally) -> list[str]:
    with LoopingReader(world) as reader:
        endings = fault.inject(world)
    problems = [*reader.problems, *(problem for ending in endings for problem in check_ending(ending))]
    problems += _find_secrets(world.folder)
    tally.injected += 1
    tally.reads += reader.reads
    tally.ends.update(ending.finished.code for ending in endings)
    tally.problems += [(fault.name, problem) for problem in problems]
    return problems


def check_ending(ending: Ending) -> Iterator[str]:
    """What is wrong with the end of a command: its exit code, its message, or what it left behind."""
    done, allowed = ending.finished, ending.allowed
    if done.code not in allowed:
        yield f"exit code {done.code}, documented: {', '.join(map(str, allowed))}: {done.err[-500:]}"
    elif allowed[done.code] and allowed[done.code] not in done.err:
        yield f"no {allowed[done.code]!r} in the message: {done.err[-500:]}"
    if done.code == KILLED:  # nobody is left to clean up: the next run does
        return
    if TRACE.search(done.out + done.err):
        yield f"stack trace: {done.err[-500:]}"
    for path in (path for path in _list_left(done.folder) if not path.name.startswith(OF_JAVA)):
        yield f"leak: {path}"


def _list_left(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != "local"] + list((folder / "local").iterdir())


def _find_secrets(folder: Path) -> Iterator[str]:
    for path in (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".parquet"):
        try:
            if SECRET.encode() in path.read_bytes():
                yield f"secret in {path}"
        except FileNotFoundError:  # a temporary file of a command that still ends
            continue
