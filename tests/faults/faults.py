"""What can go wrong: each fault runs the command, disturbs it, and says which ends are documented."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from pipelines.warehouse.vacuum import find_removable, remove_runs
from tests.faults.commands import Finished
from tests.faults.loops import Loop
from tests.faults.plan import FAIL_READS, FAIL_WRITES, KILL_AT_WRITE, Plan
from tests.faults.servers import SERVERS
from tests.faults.world import SECRET, World

STAGES = ("read", "check", "inspect", "label", "score", "conclude", "inspect results")
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Ending:
    """How a disturbed command ended, and the ends that are documented: exit code → part of the message."""

    finished: Finished
    allowed: Mapping[int, str]


@dataclass(frozen=True)
class Fault:
    """A fault with its arguments drawn; `inject` runs the command, or several."""

    name: str
    inject: Callable[[World], list[Ending]]


def draw_fault(random: Random, *, with_shim: bool) -> Fault:
    """Draw one fault; those in the system calls of the command need the shim."""
    kinds: list[Callable[[Random], Fault]] = [*PLAIN, *(WITH_SHIM if with_shim else ())]
    return random.choice(kinds)(random)


def _kill_at_boundary(random: Random) -> Fault:
    stage, state = random.choice(STAGES), random.choice(("begin", "end"))
    group = random.random() < 0.5

    def inject(world: World) -> list[Ending]:
        command = world.start(debug=True)
        reached = command.wait_until(lambda err: _mark(stage, state) in err)
        command.kill(group=group)
        return [Ending(command.wait(), {KILLED: "", **({} if reached else {0: ""})})]

    return Fault(f"kill {'all' if group else 'Python'} at the {state} of {stage}", inject)


def _kill_at_random(random: Random) -> Fault:
    share = random.random()

    def inject(world: World) -> list[Ending]:
        seconds = share * world.seconds
        command = world.start()
        time.sleep(seconds)
        command.kill()
        return [Ending(command.wait(), {KILLED: "", 0: ""})]

    return Fault(f"kill after {share:.0%} of the time", inject)


def _kill_while_tracking(random: Random) -> Fault:
    seconds = 3 * random.random()

    def inject(world: World) -> list[Ending]:
        with SERVERS["silent"]() as address:
            command = world.start(*_track(address, required=False), debug=True)
            command.wait_until(lambda err: _mark("inspect results", "end") in err)
            time.sleep(seconds)
            command.kill()
            return [Ending(command.wait(), {KILLED: "", 0: ""})]

    return Fault(f"kill {seconds:.1f} s after the last stage, while tracking", inject)


def _stop(random: Random) -> Fault:
    stage = random.choice(STAGES)
    number = random.choice((signal.SIGINT, signal.SIGTERM))

    def inject(world: World) -> list[Ending]:
        command = world.start(debug=True)
        command.wait_until(lambda err: _mark(stage, "begin") in err)
        command.kill(number, group=number == signal.SIGINT)
        return [Ending(command.wait(), {128 + number: "interrupted", 0: ""})]

    return Fault(f"{number.name} in {stage}", inject)


def _truncate_input(random: Random) -> Fault:
    name, share = random.choice(("rankings", "judgments", "queries")), random.random()

    def inject(world: World) -> list[Ending]:
        (path,) = (world.folder / "data" / name).rglob("*.parquet")
        whole = path.with_suffix(".whole")
        shutil.move(path, whole)
        try:
            content = whole.read_bytes()
            path.write_bytes(content[: int(share * len(content))])
            done = world.run()
        finally:
            shutil.move(whole, path)
        return [Ending(done, {3: f"inputs.{name}"})]

    return Fault(f"{name} truncated to {share:.0%}", inject)


def _use_bad_server(random: Random) -> Fault:
    kind, required = random.choice(list(SERVERS)), random.random() < 0.5

    def inject(world: World) -> list[Ending]:
        with SERVERS[kind]() as address:
            done = world.run(*_track(address, required=required))
        return [Ending(done, {7: "track"} if required else {0: "could not be reached"})]

    return Fault(f"{kind} tracking server, {'required' if required else 'optional'}", inject)


def _run_together(random: Random) -> Fault:
    count, share = random.choice((2, 3)), random.random()
    killed = random.random() < 0.3

    def inject(world: World) -> list[Ending]:
        seconds = share * world.seconds / 4 if killed else 0.0
        commands = [world.start_warm(number=number) for number in range(count)]
        if killed:
            time.sleep(seconds)
            world.kill_warm(count - 1)
        return [Ending(command.wait(), {0: "", **({KILLED: ""} if killed else {})}) for command in commands]

    return Fault(f"{count} runs at once{', one killed' if killed else ''}", inject)


def _vacuum_meanwhile(random: Random) -> Fault:
    pause = random.choice((0.01, 0.1))

    def inject(world: World) -> list[Ending]:
        def vacuum() -> None:
            remove_runs(world.storage, find_removable(world.storage, keep=1000, hours=0.001))

        with Loop(vacuum, pause=pause):
            done = world.run()
        return [Ending(done, {0: ""})]

    return Fault(f"vacuum every {pause} s", inject)


def _kill_at_write(random: Random) -> Fault:
    share, last = random.random(), random.randrange(20)
    at_end = random.random() < 0.5  # where tables move to their place and the manifest is written

    def inject(world: World) -> list[Ending]:
        total = world.count_calls("warehouse")
        after = total - 1 - last if at_end else int(share * total)
        plan = Plan(KILL_AT_WRITE, f"{world.folder}/warehouse/", after=after)
        return [Ending(world.start(plan=plan).wait(), {KILLED: "", 0: ""})]

    return Fault(f"kill at {f'{last} writes before the end' if at_end else f'{share:.0%} of the writes'}", inject)


def _fill_warehouse(random: Random) -> Fault:
    share, last = random.random(), random.randrange(20)
    at_end = random.random() < 0.5

    def inject(world: World) -> list[Ending]:
        total = world.count_calls("warehouse")
        after = total - 1 - last if at_end else int(share * total)
        done = world.run(plan=Plan(FAIL_WRITES, f"{world.folder}/warehouse/", after=after))
        return [Ending(done, {5: f"{world.folder}/warehouse", 0: ""})]

    return Fault(f"warehouse full {f'{last} writes before the end' if at_end else f'at {share:.0%}'}", inject)


def _fill_local_disk(random: Random) -> Fault:
    share = random.random()

    def inject(world: World) -> list[Ending]:
        place = f"{world.folder}/warm/0"
        done = world.run(plan=Plan(FAIL_WRITES, f"{place}/", after=int(share * world.count_calls("warm/0"))))
        world.close_warm()  # Spark does not promise to survive this
        return [Ending(done, {5: place, 0: ""})]

    return Fault(f"local disk full at {share:.0%} of the writes", inject)


def _break_reads(random: Random) -> Fault:
    share = random.random()

    def inject(world: World) -> list[Ending]:
        plan = Plan(FAIL_READS, f"{world.folder}/data/", after=int(share * world.count_calls("data")))
        return [Ending(world.run(plan=plan), {3: "/data/", 0: ""})]

    return Fault(f"inputs unreadable at {share:.0%} of the reads", inject)


def _break_warehouse_reads(random: Random) -> Fault:
    share = random.random() ** 2  # what is read first has more readers

    def inject(world: World) -> list[Ending]:
        place = f"{world.folder}/warehouse"
        plan = Plan(FAIL_READS, f"{place}/", after=int(share * world.count_calls("warehouse, reads")))
        return [Ending(world.run(plan=plan), {3: place, 5: place, 0: ""})]

    return Fault(f"warehouse unreadable at {share:.0%} of the reads", inject)


def _jump_clock(random: Random) -> Fault:
    shift, after = random.choice((-1, 1)) * random.randrange(60, 10 * 86_400), 5 * random.random()

    def inject(world: World) -> list[Ending]:
        return [Ending(world.run(plan=Plan(shift=shift, shift_after=after)), {0: ""})]

    return Fault(f"clock jumps by {shift} s after {after:.1f} s", inject)


def _mark(stage: str, state: str) -> str:
    """What the log has when a stage begins or ends."""
    return f'"stage": "{stage}", "state": "{state}"'


def _track(address: str, *, required: bool) -> list[str]:
    uri = address.replace("://", f"://user:{SECRET}@")
    return ["tracking.enabled=true", f"tracking.uri={uri}", f"tracking.required={str(required).lower()}"]


# Kills are drawn more often than the others: there are many moments to be killed at.
PLAIN = (
    *(_kill_at_boundary, _kill_at_boundary, _kill_at_boundary, _kill_at_random, _kill_while_tracking, _stop),
    *(_truncate_input, _use_bad_server, _use_bad_server, _run_together, _vacuum_meanwhile),
)
WITH_SHIM = (
    *(_kill_at_write, _kill_at_write, _fill_warehouse, _fill_warehouse, _fill_local_disk),
    *(_break_reads, _break_warehouse_reads, _jump_clock),
)
