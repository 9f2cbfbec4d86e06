"""Draw faults by a seed, inject them one after the other, and check what must hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pipelines.warehouse.fsck import check_warehouse
from pipelines.warehouse.runs import Manifest, list_committed
from pipelines.warehouse.vacuum import find_removable, remove_runs
from tests.faults.faults import KILLED, Ending, Fault, draw_fault
from tests.faults.loops import Loop, Reader
from tests.faults.world import SECRET, World

TRACE = re.compile(r"Traceback \(most recent call last\)|^\s+at [\w.$]+\(|Exception in thread", re.MULTILINE)
OF_JAVA = "tmp/hsperfdata_"  # which Java removes at its next start
KEPT = 3  # runs between faults
PUBLISHED = (0, 7)  # exit codes of a command that committed its run
# The kinds of problems; each problem begins with its kind.
KINDS = (
    *("partial read", "lost rows", "wrong numbers", "stack trace", "secret"),
    *("leak", "exit code", "message", "driver"),
)


@dataclass
class Tally:
    """The faults injected so far, and every problem by its kind."""

    injected: int = 0
    reads: int = 0
    ends: Counter[int] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)

    def add(self, problems: Sequence[str]) -> None:
        """Count problems by what they begin with."""
        self.problems.update(problem.partition(":")[0] for problem in problems)


def inject_faults(
    world: World, tally: Tally, *, seed: int, count: int, only: str = ""
) -> Iterator[tuple[Fault, list[str]]]:
    """Inject `count` faults drawn by `seed`, then run once undisturbed; yields the problems of each.

    `only` is a pattern: of the faults drawn, those whose name has it are injected.
    """
    random = Random(seed)
    drawn = [draw_fault(random, with_shim=world.shim is not None) for _ in range(count)]
    for fault in (fault for fault in drawn if re.search(only, fault.name)):
        yield fault, _inject(world, fault, tally)
    calm = Fault("nothing", lambda world: [Ending(world.start().wait(), {0: ""})])
    problems = _inject(world, calm, tally)
    world.close()
    # The last command has removed what killed ones left.
    ours = [*(world.folder / "warehouse" / "_attempts").glob("*"), *(world.fresh.folder / "tmp").glob("assay-*")]
    left = [f"leak: {path}" for path in [*ours, *world.leaks]]
    tally.add(left)
    yield calm, [*problems, *left]


def _inject(world: World, fault: Fault, tally: Tally) -> list[str]:
    """Inject one fault while readers read, and check what must hold; then remove all but a few runs."""
    runs, files, first = list_committed(world.storage), world.fresh.list_files(), world.commands
    reader = Reader(world)
    endings: list[Ending] = []
    problems: list[str] = []
    try:
        with Loop(reader.read):
            endings = fault.inject(world)
    except Exception as error:  # the suite goes on; what is left of it is checked by the next faults
        problems.append(f"driver: {type(error).__name__}: {error}")
    problems += reader.problems
    problems += [problem for ending in endings for problem in check_ending(ending)]
    problems += _check_runs(world, runs, published=any(e.finished.code in PUBLISHED for e in endings))
    if not any(ending.finished.code == KILLED for ending in endings):
        problems += [f"leak: {file}" for file in _list_leaks(world, files)]
    problems += _find_secrets([world.folder / "warehouse", world.fresh.folder, *world.list_outputs(first)])
    remove_runs(world.storage, find_removable(world.storage, keep=KEPT, hours=24))
    tally.injected += 1
    tally.reads += reader.reads
    tally.ends.update(ending.finished.code for ending in endings)
    tally.add(problems)
    return problems


def check_ending(ending: Ending) -> Iterator[str]:
    """What is wrong with the end of a command: its exit code, or its message."""
    code, allowed, err = ending.finished.code, ending.allowed, ending.finished.err
    if code not in allowed:
        yield f"exit code: {code}, documented: {', '.join(map(str, allowed))}: {err[-500:]}"
    elif allowed[code] not in err:
        yield f"message: no {allowed[code]!r} in: {err[-500:]}"
    if TRACE.search(ending.finished.out + err):
        yield f"stack trace: {err[-2000:]}"


def _check_runs(world: World, before: Sequence[Manifest], *, published: bool) -> Iterator[str]:
    """What is wrong with the runs: one that was committed is gone, damaged, or not live."""
    state = check_warehouse(world.storage)
    yield from (f"lost rows: {problem.path} {problem.problem}" for problem in state.problems)
    after = [manifest.run for manifest in list_committed(world.storage)]
    yield from (f"lost rows: run {old.run} is gone" for old in before if old.run not in after)
    if published and after[0] in [old.run for old in before]:
        yield f"lost rows: a new run was committed, but {after[0]} is still the live one"


def _list_leaks(world: World, before: set[str]) -> list[str]:
    """New temporary files; Java removes its own at its next start."""
    return sorted(file for file in world.fresh.list_files() - before if not file.startswith(OF_JAVA))


def _find_secrets(places: Sequence[Path]) -> Iterator[str]:
    for path in (path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink()):
        try:
            if SECRET.encode() in path.read_bytes():
                yield f"secret: in {path}"
        except FileNotFoundError:  # a temporary file of a command that still ends
            continue
