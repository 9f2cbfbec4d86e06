"""Whether two runs can be compared: what changed between them that gives their numbers another meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.config.load import flatten
from pipelines.warehouse.runs import Manifest

_MISSING = object()
_FORMER: Mapping[str, Any] = {"depth": None}  # what conventions were before they could be set
LABEL_INPUTS = ("judgments", "impressions", "interactions")
# What decides which queries are evaluated and how they are labelled. Other systems or segments leave means comparable.
_SETTINGS = ("labels", "labels_of", "earlier", "max_rejected")


def find_differences(before: Manifest, after: Manifest) -> list[str]:
    """Each difference as a short phrase; empty where the runs can be compared as they are.

    Inputs that have another path for every date are expected to differ, logs as well as judgments. Labels count as
    changed where their settings did, or where judgments come from another place or were replaced.
    """
    differences = _compare_values("convention", *[_fill_conventions(run) for run in (before, after)])
    for key in _SETTINGS:
        first, second = (_add_prefix(key, dict(flatten(run.config.get(key)))) for run in (before, after))
        differences += _compare_values("configuration", first, second)
    sources = [_describe_label_source(run) for run in (before, after)]
    if sources[0] != sources[1]:
        differences.append(f"labels from {sources[0]} → {sources[1]}")
    first, second = (
        _add_prefix("inputs.judgments", (run.config.get("inputs") or {}).get("judgments") or {})
        for run in (before, after)
    )
    differences += _compare_values("configuration", first, second)
    if _judgments_replaced(before.inputs.get("judgments", {}), after.inputs.get("judgments", {})):
        differences.append("other judgments")
    if before.code != after.code:
        differences.append("another version of the code")
    return differences


def _fill_conventions(run: Manifest) -> dict[str, Any]:
    """The conventions of a run; one that is newer than the run is as it then always was."""
    return {**_FORMER, **run.conventions}


def _judgments_replaced(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the same files have another content."""
    if not before or not after:
        return False
    return before.get("places") == after.get("places") and bool(before["digest"] != after["digest"])


def _describe_label_source(run: Manifest) -> str:
    inputs = [name for name in LABEL_INPUTS if name in run.inputs]
    if run.labels.get("from_run"):
        return f"run {run.labels['from_run']}"
    return "behaviour" if "impressions" in inputs else "judgments" if inputs else "nowhere"


def _compare_values(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys([*before, *after])
    return [
        f"{kind} {name}: {_format_value(before.get(name, _MISSING))} → {_format_value(after.get(name, _MISSING))}"
        for name in names
        if before.get(name, _MISSING) != after.get(name, _MISSING)
    ]


def _add_prefix(key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{key}.{name}" if name else key: value for name, value in values.items()}


def _format_value(value: Any) -> str:
    return "not known" if value is _MISSING else "none" if value is None else str(value)
