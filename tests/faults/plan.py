"""What the preloaded library does to a command: failing calls, a kill at a call, a shifted clock."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

NOTHING, FAIL_WRITES, FAIL_READS, KILL_AT_WRITE = range(4)  # the actions of shim.c
PAGE = struct.Struct("<qqqqq4096s")
NEVER = 2**62


@dataclass(frozen=True)
class Plan:
    """Disturb the calls on files under `prefix` from number `after` on; shift the clock after some seconds."""

    action: int = NOTHING
    prefix: str = ""
    after: int = 0
    shift: int = 0
    shift_after: float = 0.0

    def write(self, page: Path) -> None:
        """Write the plan into the page that a command shares; in place, since the command has it in memory."""
        at = int(time.monotonic() + self.shift_after) if self.shift else 0
        content = PAGE.pack(self.action, 0, self.after, self.shift, at, self.prefix.encode())
        with page.open("r+b" if page.exists() else "wb") as file:
            file.write(content)


def count_calls(page: Path) -> int:
    """The number of calls so far that the action of a plan is about."""
    return int(PAGE.unpack(page.read_bytes())[1])


def build_shim(folder: Path) -> Path | None:
    """Build the library; None where there is no C compiler or another system than Linux."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    target = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", str(target), str(source), "-ldl"], check=True)
    return target
