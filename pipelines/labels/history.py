"""The part of a page's clicks that session models condition on, as an integer state of each result."""

from enum import IntEnum
from typing import Literal

# last_click: the position of the nearest click above the result, 0 for none. read: a state of `Read`.
History = Literal["last_click", "read"]
Outcome = Literal["click", "last_click"]  # which clicks count as success: all, or the lowest one of each page


class Read(IntEnum):
    """Where a result stands relative to the last click of its page, which is the lowest one."""

    NO_CLICK = 0  # the page has no click
    ABOVE = 1  # above the last click, or at the same position
    LAST = 2  # the last click itself
    BELOW = 3


def count_states(history: History | None, positions: int) -> int:
    """The number of states at each position."""
    if history == "last_click":
        return positions + 1
    return len(Read) if history == "read" else 1
