"""Describe how far human judgments and behaviour agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ORDERS = {
    "behaviour_order": "behaviour's order by the judges' grades",
    "judges_order": "the judges' order by behaviour's grades",
}


def describe_agreement(agreement: Mapping[str, Any] | None) -> list[str]:
    """The agreement in a manifest as sentences; none where no pair has both labels."""
    if not agreement or not agreement["pairs"]:
        return []
    kappa = "undefined" if agreement["weighted_kappa"] is None else f"{agreement['weighted_kappa']:.2f}"
    lines = [
        f"Behaviour and judges agree on {agreement['equal']:.0%} of {agreement['pairs']:,} pairs, weighted κ {kappa}"
    ]
    for name, words in _ORDERS.items():
        if agreement.get(name) is not None:
            chance, queries = agreement[f"{name}_by_chance"], agreement[f"{name}_queries"]
            lines.append(f"{words}: NDCG@10 {agreement[name]:.3f} over {queries:,} queries, {chance:.3f} by chance")
    return lines
