"""Results of checks: rows of `validation_results`, their summary in the manifest, and the lines printed of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipelines.quality.registry import CHECKS, Check, Finding
from schemas.errors import DataQualityError
from schemas.printable import escape_line

MAX_FAILING = 50  # in the manifest; the table has all of them
MAX_SAMPLES = 3
USABLE_ROWS = "usable_rows"  # the check that counts the rows that fit their contract
MAX_SAMPLE_LENGTH = 200


@dataclass(frozen=True)
class Result:
    """One check of one table; the fields are the columns of `validation_results`."""

    table: str
    check: str
    column: str | None
    severity: Literal["error", "warn"]
    passed: bool
    rows: int | None
    failed_rows: int | None
    observed: str | None
    allowed: str | None
    sample: tuple[str, ...]
    reason: str
    advice: str

    @property
    def stops(self) -> bool:
        """Whether the run must not continue."""
        return not self.passed and self.severity == "error"


def build_result(check: Check, finding: Finding, severity: Literal["error", "warn"]) -> Result:
    """A finding with the declaration of its check."""
    return Result(
        table=finding.table,
        check=check.name,
        column=finding.column,
        severity=severity,
        passed=finding.passed,
        rows=finding.rows,
        failed_rows=finding.failed_rows,
        observed=finding.observed,
        allowed=finding.allowed,
        sample=() if finding.passed else format_samples(finding.sample),
        reason=check.reason,
        advice=check.advice.replace("TABLE", finding.table),
    )


def format_samples(values: Iterable[object]) -> tuple[str, ...]:
    """Up to three distinct values, each cut to a readable length."""
    return tuple(dict.fromkeys(str(value)[:MAX_SAMPLE_LENGTH] for value in values))[:MAX_SAMPLES]


def summarise_results(mode: str, results: Sequence[Result]) -> dict[str, Any]:
    """The summary in the manifest: counts per table, and the failing checks, those that stop the run first."""
    tables: dict[str, dict[str, int]] = {}
    for result in results:
        counts = tables.setdefault(result.table, {"passed": 0, "warned": 0, "failed": 0})
        counts["passed" if result.passed else "failed" if result.stops else "warned"] += 1
    failing = sorted((r for r in results if not r.passed), key=lambda r: (not r.stops, rank_cause(r, results)))
    return {"mode": mode, "tables": tables, "failing": [asdict(r) for r in failing[:MAX_FAILING]]}


def rank_cause(result: Result, results: Sequence[Result]) -> tuple[float, bool, bool]:
    """Sort key of failing checks, the root cause first.

    The table that loses most of its rows comes first: what fails elsewhere may follow from it. Within a table a
    declared check names a cause, and a contract only counts its effects.
    """
    lost = max((_find_lost_share(r) for r in results if r.table == result.table), default=0.0)
    return -lost, result.check not in CHECKS, result.check != USABLE_ROWS


def _find_lost_share(result: Result) -> float:
    """The share of a table's rows that cannot be used, of the check that counts them."""
    return (result.failed_rows or 0) / result.rows if result.check == USABLE_ROWS and result.rows else 0.0


def format_rejected_row(reason: str, row: str, columns: Mapping[str, str]) -> str:
    """A rejected row as a sample: the reason, then the row with the column that it is about first.

    Samples are cut to a readable length; `columns` has the names in the input of columns that are renamed.
    """
    column = reason.partition(":")[0]
    name = columns.get(column, column)
    try:
        values = json.loads(row)
    except ValueError:
        return f"{reason}: {row}"
    if isinstance(values, dict) and name in values:
        row = json.dumps({name: values[name]} | values, ensure_ascii=False, separators=(",", ":"))
    return f"{reason}: {row}"


def build_refusal(results: Sequence[Result], where: str) -> DataQualityError | None:
    """The error that stops a run; None where no result does."""
    stopping = [result for result in results if result.stops]
    if not stopping:
        return None
    first = min(stopping, key=lambda result: rank_cause(result, stopping))
    more = f" (the first of {len(stopping)} checks that fail)" if len(stopping) > 1 else ""
    alternative = f", or lower quality.{first.check}.severity" if first.check in CHECKS else ""
    return DataQualityError(
        f"{first.table} fails {first.check}{more}: {escape_line(first.observed or '')}; allowed: {first.allowed}",
        where=where,
        hint=f"{first.advice}{alternative}",
        details=format_results(summarise_results("", results)),
    )


def format_results(summary: Mapping[str, Any]) -> list[str]:
    """The lines to print: a verdict per table with its failing checks, unsafe characters escaped."""
    lines = []
    for table, counts in summary.get("tables", {}).items():
        mark = "✗" if counts["failed"] else "!" if counts["warned"] else "✓"
        parts = [f"{counts[kind]} {kind}" for kind in ("passed", "warned", "failed") if counts[kind]]
        lines.append(f"{mark} {table}: {', '.join(parts)}")
        for failing in (f for f in summary["failing"] if f["table"] == table):
            lines.extend(_format_failing(failing))
    return lines


def _format_failing(failing: Mapping[str, Any]) -> list[str]:
    mark = "✗" if failing["severity"] == "error" else "!"
    column = f" ({failing['column']})" if failing["column"] else ""
    observed = escape_line(failing["observed"] or "")
    sample = ", ".join(escape_line(value) for value in failing["sample"])
    return [
        f"  {mark} {failing['check']}{column}: {observed}; allowed: {failing['allowed']}",
        *([f"      such as {sample}"] if sample else []),
        f"      {failing['advice']}",
    ]
