"""What can go wrong: each fault runs the command, disturbs it, and says which ends are documented."""

from __future__ import annotations

import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from tests.faults.world import SECRET, Finished, World

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
        mark = f'"stage": "{stage}", "state": "{state}"'
        reached = command.wait_until(lambda err: mark in err)
        command.kill(group=group)
        return [Ending(command.wait(), {KILLED: "", **({} if reached else {0: ""})})]

    return Fault(f"kill {'all' if group else 'Python'} at the {state} of {stage}", inject)


def _kill_at_random(random: Random) -> Fault:
    share = random.random()

    def inject(world: World) -> list[Ending]:
        command = world.start()
        time.sleep(share * world.seconds)
        command.kill()
        return [Ending(command.wait(), {KILLED: "", 0: ""})]

    return Fault(f"kill after {share:.0%} of the time", inject)


def _stop(random: Random) -> Fault:
    stage = random.choice(STAGES)
    number = random.choice((signal.SIGINT, signal.SIGTERM))

    def inject(world: World) -> list[Ending]:
        command = world.start(debug=True)
        command.wait_until(lambda err: f'"stage": "{stage}", "state": "begin"' in err)
        command.kill(number, group=number == signal.SIGINT)
        return [Ending(command.wait(), {128 + number: "interrupted", 0: ""})]

    return Fault(f"{number.name} in {stage}", inject)


def _fill_warehouse(random: Random) -> Fault:
    after = random.randrange(60)

    def inject(world: World) -> list[Ending]:
        place = f"{world.folder}/warehouse/"
        done = world.run(FAULT_CALL="write", FAULT_PREFIX=place, FAULT_AFTER=str(after))
        return [Ending(done, {5: "warehouse", 0: ""})]

    return Fault(f"warehouse full after {after} writes", inject)


def _fill_local_disk(random: Random) -> Fault:
    after = random.randrange(20)

    def inject(world: World) -> list[Ending]:
        place = f"{world.folder}/temporary/"
        command = world.start(FAULT_CALL="write", FAULT_PREFIX=place, FAULT_AFTER=str(after))
        done = command.wait()
        return [Ending(done, {5: str(command.folder), 0: ""})]

    return Fault(f"local disk full after {after} writes", inject)


def _break_reads(random: Random) -> Fault:
    after = random.randrange(30)

    def inject(world: World) -> list[Ending]:
        done = world.run(FAULT_CALL="read", FAULT_PREFIX=f"{world.folder}/data/", FAULT_AFTER=str(after))
        return [Ending(done, {3: "/data/", 0: ""})]

    return Fault(f"inputs unreadable after {after} reads", inject)


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


def _use_dead_server(random: Random) -> Fault:
    required = random.random() < 0.5

    def inject(world: World) -> list[Ending]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]  # closed again when the command runs
        done = world.run(*_track(port, required=required))
        return [Ending(done, {7: "track"} if required else {0: ""})]

    return Fault(f"dead tracking server, {'required' if required else 'optional'}", inject)


def _use_slow_server(random: Random) -> Fault:
    drip = random.random() < 0.5

    def inject(world: World) -> list[Ending]:
        with _serve_slowly(drip=drip) as port:
            done = world.run(*_track(port, required=False))
        return [Ending(done, {0: ""})]

    return Fault(f"tracking server that {'drips' if drip else 'never answers'}", inject)


def _jump_clock(random: Random) -> Fault:
    shift, after = random.choice((-1, 1)) * random.randrange(60, 10 * 86_400), random.randrange(10)

    def inject(world: World) -> list[Ending]:
        done = world.run(FAULT_SHIFT=str(shift), FAULT_SHIFT_AFTER=str(after))
        return [Ending(done, {0: ""})]

    return Fault(f"clock jumps by {shift} s after {after} s", inject)


def _run_together(random: Random) -> Fault:
    count, killed = random.choice((2, 3)), random.random() < 0.3

    def inject(world: World) -> list[Ending]:
        commands = [world.start() for _ in range(count)]
        if killed:
            time.sleep(world.seconds)
            commands[0].kill()
        return [Ending(command.wait(), {0: "", **({KILLED: ""} if killed else {})}) for command in commands]

    return Fault(f"{count} runs at once{', one killed' if killed else ''}", inject)


def _track(port: int, *, required: bool) -> list[str]:
    uri = f"http://user:{SECRET}@127.0.0.1:{port}"
    return ["tracking.enabled=true", f"tracking.uri={uri}", f"tracking.required={str(required).lower()}"]


@contextmanager
def _serve_slowly(*, drip: bool) -> Iterator[int]:
    """A server that accepts connections and sends one byte every 0.2 s, or nothing."""
    closed = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            while not closed.wait(0.2):
                try:
                    connection.sendall(b"H" if drip else b"")
                except OSError:
                    return

    def accept() -> None:
        while not closed.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        closed.set()
        server.close()


# Kills are drawn more often than the others: there are many moments to be killed at.
PLAIN = (
    *(_kill_at_boundary, _kill_at_boundary, _kill_at_boundary, _kill_at_random, _kill_at_random, _stop),
    *(_truncate_input, _use_dead_server, _use_slow_server, _run_together),
)
WITH_SHIM = (_fill_warehouse, _fill_warehouse, _fill_local_disk, _break_reads, _jump_clock)
