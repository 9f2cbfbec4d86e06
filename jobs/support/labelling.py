"""Describe what became of a log: rows kept and dropped, diagnostics of the curve, agreement with judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.labels.agreement import describe_agreement


def describe_labelling(facts: Mapping[str, Any]) -> list[str]:
    """The facts of a manifest on labels, line by line; none where the run labelled no log."""
    if "read" not in facts:
        return []
    lines = [
        f"{kind}: {read:,} read, {facts['kept'].get(kind, 0):,} kept, {facts['dropped'].get(kind, 0):,} dropped"
        for kind, read in facts["read"].items()
    ]
    if "days" in facts:
        lines.append(f"days of the log: {len(facts['days'])}, of which {facts['computed_days']} were read")
    lines += [f"{'!' if check['warning'] else ' '} {check['sentence']}" for check in facts["verdicts"]]
    return lines + describe_agreement(facts["agreement"])
