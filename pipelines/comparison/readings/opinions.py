"""Readings of what outside opinions add."""

from __future__ import annotations

import math

from pipelines.comparison.readings.registry import ComparedPair, reading

_LITTLE = 0.005  # less is not worth the opinion


@reading
def opinions_narrow_labels(pair: ComparedPair) -> str | None:
    """How much narrower outside opinions make the labels, and with them the interval."""
    if not pair.context.gains:
        return None
    whole, *single = pair.context.gains
    names = ", ".join(whole.columns)
    if whole.narrowing < _LITTLE:
        return (
            f"opinions ({names}; {whole.covered:.0%} of the documents have one) add nothing to what ranks and clicks "
            "say: the labels are as uncertain without them."
        )
    parts = [f"{gain.columns[0]} beside the others by {gain.narrowing:.1%}" for gain in single]
    text = f"opinions ({names}) narrow the labels by {whole.narrowing:.1%}"
    text += f" ({', '.join(parts)})" if parts else ""
    share = None if pair.headline is None else pair.headline[1]["label_share"]
    if pair.headline is None or share is None:
        return f"{text}."
    spec, _ = pair.headline
    return f"{text}, and the interval of {spec.name} by up to {_narrow_interval(share, whole.narrowing):.1%}."


def _narrow_interval(share: float, narrowing: float) -> float:
    """The narrowing of an interval, of whose variance a share is from labels that became narrower.

    An upper limit: the part that comes from the prior's own error narrows less.
    """
    before = 1.0 - share + share / (1.0 - narrowing) ** 2
    return 1.0 - math.sqrt(1.0 / before)
