"""What is said of how far people's judgments and behaviour agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ORDERS = {
    "behaviour_order": "behaviour's order by the judges' grades",
    "judges_order": "the judges' order by behaviour's grades",
}


def agreement_lines(found: Mapping[str, Any] | None) -> list[str]:
    """The agreement of a manifest in sentences; nothing where no pair has both."""
    if not found or not found["pairs"]:
        return []
    kappa = "undefined" if found["weighted_kappa"] is None else f"{found['weighted_kappa']:.2f}"
    lines = [f"behaviour and judges agree on {found['equal']:.0%} of {found['pairs']:,} pairs, weighted κ {kappa}"]
    for name, words in _ORDERS.items():
        if found.get(name) is not None:
            chance, queries = found[f"{name}_by_chance"], found[f"{name}_queries"]
            lines.append(f"{words}: NDCG@10 {found[name]:.3f} over {queries:,} queries, {chance:.3f} by chance")
    return lines
