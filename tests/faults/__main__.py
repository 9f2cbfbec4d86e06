"""Inject faults: `python -m tests.faults --count 200 --seed 1`; exits with 1 where something did not hold."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.driver import KINDS, Tally, inject_faults
from tests.faults.world import World


def main() -> int:
    """Print one line per fault and the totals."""
    parser = argparse.ArgumentParser(prog="tests.faults")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="kept afterwards (default: a temporary one)")
    parser.add_argument("--only", default="", help="a pattern; inject only the drawn faults whose names have it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        world = World.create(options.folder or Path(temporary))
        print(f"undisturbed: {world.seconds:.0f} s; failing system calls: {'yes' if world.shim else 'no compiler'}")
        tally, start = Tally(), time.monotonic()
        faults = inject_faults(world, tally, seed=options.seed, count=options.count, only=options.only)
        for fault, problems in faults:
            print(f"{time.monotonic() - start:6.0f} s  {'✗' if problems else '✓'} {fault.name}", flush=True)
            for problem in problems:
                print(f"          {problem}", flush=True)
    print(f"calls of an undisturbed run: {world.calls}")
    ends = ", ".join(f"{code}: {times}" for code, times in sorted(tally.ends.items()))
    print(f"{tally.injected} faults in {time.monotonic() - start:.0f} s, {tally.reads} reads, exit codes {ends}")
    print("problems: " + ", ".join(f"{tally.problems[kind]} {kind}" for kind in KINDS))
    return 1 if tally.problems.total() else 0


if __name__ == "__main__":
    sys.exit(main())
