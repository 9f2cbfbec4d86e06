"""Kendall's rank correlation between a ranking and its labels."""

import numpy as np

from udfs.block import Block, safe_ratio
from udfs.inversions import count_pair_orders
from udfs.ragged import Floats
from udfs.registry import Parameter, metric


@metric(
    latex=r"\tau = \frac{\mathrm{concordant} - \mathrm{discordant}}{\mathrm{divisor}}",
    reference="Kendall, A new measure of rank correlation, Biometrika 1938; ties as in The treatment of ties, 1945",
    parameters={
        "variant": Parameter("b", "b = pairs of equal labels are left out of the divisor; a = all pairs", ("b", "a"))
    },
    defined="kernel",
)
def kendall_tau(block: Block, k: int | None, *, variant: str) -> Floats:
    """Whether the ranking has its labelled documents in the order of their labels: +1 the same, −1 the reverse.

    Formula: (concordant − discordant) / divisor over the pairs of labelled documents in the top k. A pair is
    concordant if the one with the larger label stands higher. The divisor is the number n of pairs for
    variant a, and √(n · pairs with different labels) for variant b.

    Edges: null with fewer than two labelled documents in the list, and for variant b if all labels are equal.
    Labels are compared as they are, negative ones too.

    Use it: to compare a scoring function with a full order of real-valued labels.
    Not: for search results; it weighs the bottom of a list like its top.
    """
    mask = block.judged & block.within(k)
    lists = block.ranked.keep(mask)
    rising, falling = block.cached(("pairs", k), lambda: count_pair_orders(lists, block.grade[mask]))
    pairs = lists.lengths * (lists.lengths - 1) / 2.0
    divisor = np.sqrt(pairs * (rising + falling)) if variant == "b" else pairs
    return safe_ratio(falling - rising, divisor, empty=np.nan)
