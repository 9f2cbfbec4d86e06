"""The inputs of a run: rows read and rejected, and the quality checks that did not pass."""

from __future__ import annotations

from typing import Any

from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h, text
from pipelines.report.tables import Number, render_table

FAILURES = 50


def render_quality(data: ReportData) -> Markup:
    """Rows read, rows rejected and why, and the results of the checks."""
    manifest = data.manifest
    rows = []
    for name, counts in manifest.inputs.items():
        rejected = counts.get("rejected", {})
        reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in rejected.items())
        missing = ", ".join(counts.get("missing_days", ()))
        rows.append(
            [
                name,
                Number(counts.get("read"), ","),
                Number(sum(rejected.values()), ",", "worse" if rejected else ""),
                text(reasons or "–", 400),
                missing or "–",
                str(counts.get("digest", ""))[:12],
            ]
        )
    columns = ["input", "rows read", "rejected", "reasons", "missing days", "digest"]
    return h(
        "section", h("h2", "Data quality"), render_table(columns, rows), _render_checks(manifest.checks), id="quality"
    )


def _render_checks(checks: Any) -> Markup | None:
    if not checks:
        return None
    counts = [
        [name, *[Number(results.get(kind, 0), ",") for kind in ("passed", "warned", "failed")]]
        for name, results in checks.get("tables", {}).items()
    ]
    failing = [
        [
            h("span", row["severity"], class_=f"badge {'fail' if row['severity'] == 'error' else 'unsure'}"),
            row["table"],
            " ".join(filter(None, [row["check"], row.get("column")])),
            Number(row.get("failed_rows"), ","),
            f"{row.get('observed') or '–'}; allowed: {row.get('allowed') or '–'}",
            ", ".join(str(value) for value in row.get("sample") or ()),
            text(row.get("advice") or "", 300),
        ]
        for row in checks.get("failing", ())[:FAILURES]
    ]
    columns = ["severity", "table", "check", "rows", "observed", "sample", "advice"]
    return h(
        "div",
        h("h3", f"Checks ({checks.get('mode', 'full')})"),
        render_table(["table", "passed", "warned", "failed"], counts),
        [h("h3", "Not passed"), render_table(columns, failing, stack=True)] if failing else None,
        h("p", f"Every check as Data Docs: {checks['docs']}/index.html in the warehouse") if "docs" in checks else None,
    )
