"""The verdicts of a run for other programs: Markdown for a pull request, JUnit XML for a CI server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from pipelines.comparison.answers import CandidateAnswer
from pipelines.warehouse.runs import Manifest
from schemas.printable import escape_line

_ICONS = {"pass": "✅", "fail": "❌", "undecidable": "❔"}
_OUTCOMES = {"better": "✅", "worse": "❌", "unclear": "➖", "undecidable": "❔", "empty": "❌"}
_MARKUP = re.compile(r"[\\`*_\[\]~$<>&@|#]")


def render_markdown(
    manifest: Manifest, answers: Sequence[CandidateAnswer], compared: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> str:
    """The verdict on each candidate, the differences, and the conditions of the gate, to comment on a pull request."""
    from udfs.registry import parse_metric

    lines = [f"### Assay, {manifest.dt}", ""]
    for answer in answers:
        icon = _OUTCOMES[answer.outcome] if answer.gate is None else _ICONS[answer.gate]
        lines += [f"{icon} **{_escape(answer.sentence)}** {_escape(answer.advice)}", ""]
    if not answers:
        lines += ["No systems are compared: `compare.baseline` is not set.", ""]
    shown = {parse_metric(name).key: name for name in names}
    places = {key: place for place, key in enumerate(shown)}
    pairs = {(answer.baseline, answer.candidate): place for place, answer in enumerate(answers)}
    rows = [r for r in compared if r["metric"] in shown and (r["baseline"], r["candidate"]) in pairs]
    if rows:
        lines += ["| candidate | metric | Δ | interval | queries |", "|---|---|---:|---:|---:|"]
    for row in sorted(rows, key=lambda r: (pairs[r["baseline"], r["candidate"]], places[r["metric"]])):
        delta, low, high = ("–" if row[n] is None else f"{row[n]:+.4f}" for n in ("delta", "delta_low", "delta_high"))
        cells = (_escape(row["candidate"]), _escape(shown[row["metric"]]), delta, f"{low} to {high}")
        lines.append(f"| {' | '.join(cells)} | {row['queries']:,} |")
    if manifest.gate:
        lines += ["", "<details><summary>Conditions of the gate</summary>", ""]
        lines += [f"- {_ICONS[v['verdict']]} {_escape(_name_condition(v) + ': ' + v['reason'])}" for v in manifest.gate]
        lines += ["", "</details>"]
    return "\n".join([*lines, "", f"Run `{manifest.run}`"])


def render_junit(manifest: Manifest, answers: Sequence[CandidateAnswer]) -> str:
    """One test case per candidate and one per condition: a failed one fails, an undecidable one is an error."""
    suite = ElementTree.Element("testsuite", name=f"assay {manifest.dt}")
    for answer in answers:
        case = ElementTree.SubElement(
            suite, "testcase", classname=escape_line(answer.candidate), name=f"against {escape_line(answer.baseline)}"
        )
        if answer.outcome == "empty":
            ElementTree.SubElement(case, "error", type="empty", message=escape_line(answer.sentence))
        ElementTree.SubElement(case, "system-out").text = escape_line(f"{answer.sentence} {answer.advice}")
    for verdict in manifest.gate:
        name, candidate = escape_line(_name_condition(verdict)), escape_line(verdict["candidate"])
        case = ElementTree.SubElement(suite, "testcase", classname=candidate, name=name)
        if verdict["verdict"] != "pass":
            kind = "failure" if verdict["verdict"] == "fail" else "error"
            problem = escape_line(verdict["reason"])
            ElementTree.SubElement(case, kind, type=verdict["verdict"], message=problem).text = problem
    counts = {kind: len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "error")}
    totals = {"tests": len(suite), "failures": counts["failure"], "errors": counts["error"]}
    for key, total in totals.items():
        suite.set(key, str(total))
    whole = ElementTree.Element("testsuites", {key: str(total) for key, total in totals.items()})
    whole.append(suite)
    ElementTree.indent(whole)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(whole, encoding="unicode")


def _name_condition(verdict: Mapping[str, Any]) -> str:
    part = "" if verdict["segment"] == "all" else f" [{verdict['segment']} = {verdict['value']}]"
    return f"{verdict['condition']}{part} for {verdict['candidate']}"


def _escape(text: str) -> str:
    """Text of the data as plain text in Markdown: on one line, and without markup, tags and mentions."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", escape_line(text))
