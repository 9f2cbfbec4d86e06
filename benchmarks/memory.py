"""Peak memory and processor time of this process and its descendants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread


def measure_peaks() -> dict[str, int]:
    """Return the peak per kind of process: this Python, the JVM, and the largest Python worker."""
    peaks = {"driver (Python)": _peak(os.getpid())}
    for pid in list_descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue  # it has ended since
        # Workers have the command line of the daemon that forked them, Spark's or ours.
        kind = "driver (JVM)" if b"java" in command else "worker (Python)" if b".daemon\0" in command else None
        if kind:
            peaks[kind] = max(peaks.get(kind, 0), _peak(pid))
    return peaks


@contextmanager
def watch_peaks(every: float = 1.0) -> Iterator[dict[str, int]]:
    """Collect the peaks while a block runs: Spark ends idle workers, and their peaks with them."""
    peaks: dict[str, int] = {}
    ended = Event()

    def watch() -> None:
        while True:
            for kind, peak in measure_peaks().items():
                peaks[kind] = max(peaks.get(kind, 0), peak)
            if ended.wait(every):
                return

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def measure_processor_seconds() -> float:
    """Return the processor time so far, also of children that have ended; it varies less by load than time does."""
    ticks = 0
    for pid in (os.getpid(), *list_descendants(os.getpid())):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended since
        ticks += sum(map(int, fields[11:15]))  # user and system, of the process and of its ended children
    return ticks / os.sysconf("SC_CLK_TCK")


def list_descendants(root: int) -> list[int]:
    """List the descendants of a process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    pids = [root]
    for pid in pids:
        pids += [child for child, parent in parents.items() if parent == pid]
    return pids[1:]


def _peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)
