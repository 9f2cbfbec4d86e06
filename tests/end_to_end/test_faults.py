"""A few faults of the fault suite, drawn by a fixed seed; `make faults` draws many."""

from pathlib import Path

from tests.faults.driver import Tally, inject_faults
from tests.faults.world import World

FAULTS = 3


def test_whatever_happens_readers_see_whole_runs_and_nothing_is_left(tmp_path: Path) -> None:
    world, tally = World.create(tmp_path), Tally()
    try:
        for fault, problems in inject_faults(world, tally, seed=16, count=FAULTS):
            assert not problems, fault.name
    finally:
        world.close()
    assert tally.injected == FAULTS + 1
