"""The most memory that this process and those it started have held."""

from __future__ import annotations

import os
from pathlib import Path


def peak_megabytes() -> dict[str, int]:
    """Per kind of process, the largest peak: this Python, the JVM, and the largest Python worker."""
    peaks = {"driver (Python)": _peak(os.getpid())}
    for pid in descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue  # it has ended since
        kind = "driver (JVM)" if b"java" in command else "worker (Python)" if b"pyspark.daemon" in command else None
        if kind:
            peaks[kind] = max(peaks.get(kind, 0), _peak(pid))
    return peaks


def descendants(root: int) -> list[int]:
    """Every process that this one started, and that those started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)
