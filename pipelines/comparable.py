"""What changed between two runs that makes their numbers mean something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.runs import Manifest

_MISSING = object()
LABEL_INPUTS = ("judgments", "impressions", "interactions")
# What decides which queries are asked and how they are judged; where systems or segments differ, means stay comparable.
_SETTINGS = ("labels", "labels_of", "earlier", "max_rejected")


def incomparable(before: Manifest, after: Manifest) -> list[str]:
    """Each difference as a short phrase; empty where the runs can be compared as they are.

    What lies under another path for every date is expected to differ, a log as well as judgments. So labels count as
    changed where the way of making them did, or where people's judgments come from elsewhere or were replaced.
    """
    found = _changed("convention", before.conventions, after.conventions)
    for key in _SETTINGS:
        first, second = (_flat(run.config.get(key)) for run in (before, after))
        found += _changed("configuration", _named(key, first), _named(key, second))
    kinds = [_source_of_labels(run) for run in (before, after)]
    if kinds[0] != kinds[1]:
        found.append(f"labels from {kinds[0]} → {kinds[1]}")
    first, second = ((run.config.get("inputs") or {}).get("judgments") or {} for run in (before, after))
    found += _changed("configuration", _named("inputs.judgments", first), _named("inputs.judgments", second))
    judged = [run.inputs.get("judgments", {}) for run in (before, after)]
    if (
        all(judged)
        and judged[0].get("places") == judged[1].get("places")
        and judged[0]["digest"] != judged[1]["digest"]
    ):
        found.append("other judgments")
    if before.code != after.code:
        found.append("another version of the code")
    return found


def _source_of_labels(run: Manifest) -> str:
    given = [name for name in LABEL_INPUTS if name in run.inputs]
    if run.labels.get("from_run"):
        return f"run {run.labels['from_run']}"
    return "behaviour" if "impressions" in given else "judgments" if given else "nowhere"


def _changed(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys([*before, *after])
    return [
        f"{kind} {name}: {_shown(before.get(name, _MISSING))} → {_shown(after.get(name, _MISSING))}"
        for name in names
        if before.get(name, _MISSING) != after.get(name, _MISSING)
    ]


def _named(key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{key}.{name}" if name else key: value for name, value in values.items()}


def _flat(value: Any) -> dict[str, Any]:
    from pipelines.configure import leaves

    return dict(leaves(value))


def _shown(value: Any) -> str:
    return "not known" if value is _MISSING else "none" if value is None else str(value)
