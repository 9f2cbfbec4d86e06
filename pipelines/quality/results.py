"""Results of checks: a row of `validation_results` each, and what the manifest and the screen say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipelines.quality.registry import CHECKS, Check, Finding
from schemas.errors import DataQualityError

MOST_FAILING = 50  # in the manifest; the table has all of them
MOST_SAMPLES = 3
LONGEST_SAMPLE = 200


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
        return not self.passed and self.severity == "error"


def result_of(check: Check, finding: Finding, severity: Literal["error", "warn"]) -> Result:
    """A finding with what was declared of its check."""
    return Result(
        finding.table,
        check.name,
        finding.column,
        severity,
        finding.passed,
        finding.rows,
        finding.failed_rows,
        finding.observed,
        finding.allowed,
        () if finding.passed else samples(finding.sample),
        check.reason,
        check.advice.replace("TABLE", finding.table),
    )


def samples(values: Iterable[object]) -> tuple[str, ...]:
    """Up to three different values, each of a length that one can look at."""
    return tuple(dict.fromkeys(str(value)[:LONGEST_SAMPLE] for value in values))[:MOST_SAMPLES]


def summary(mode: str, results: Sequence[Result]) -> dict[str, Any]:
    """What the manifest keeps: counts per table, and the checks that failed, those that stop the run first."""
    tables: dict[str, dict[str, int]] = {}
    for result in results:
        counts = tables.setdefault(result.table, {"passed": 0, "warned": 0, "failed": 0})
        counts["passed" if result.passed else "failed" if result.stops else "warned"] += 1
    failing = sorted((r for r in results if not r.passed), key=lambda r: not r.stops)
    return {"mode": mode, "tables": tables, "failing": [asdict(r) for r in failing[:MOST_FAILING]]}


def refusal(results: Sequence[Result], where: str) -> DataQualityError | None:
    """The error that stops a run; None where nothing does."""
    stopping = [result for result in results if result.stops]
    if not stopping:
        return None
    # What names a cause comes before what counts its effects.
    first = min(stopping, key=lambda result: (result.check not in CHECKS, result.check != "usable_rows"))
    more = f" (the first of {len(stopping)} checks that fail)" if len(stopping) > 1 else ""
    milder = f", or lower quality.{first.check}.severity" if first.check in CHECKS else ""
    return DataQualityError(
        f"{first.table} fails {first.check}{more}: {visible(first.observed or '')}; allowed: {first.allowed}",
        where=where,
        hint=f"{first.advice}{milder}",
        details=lines(summary("", results)),
    )


def lines(summary: Mapping[str, Any]) -> list[str]:
    """The verdict per table and, below it, what failed: as it is printed, with nothing in it that a terminal obeys."""
    said = []
    for table, counts in summary.get("tables", {}).items():
        mark = "✗" if counts["failed"] else "!" if counts["warned"] else "✓"
        parts = [f"{counts[kind]} {kind}" for kind in ("passed", "warned", "failed") if counts[kind]]
        said.append(f"{mark} {table}: {', '.join(parts)}")
        for failing in (f for f in summary["failing"] if f["table"] == table):
            said.extend(_told(failing))
    return said


def _told(failing: Mapping[str, Any]) -> list[str]:
    mark = "✗" if failing["severity"] == "error" else "!"
    column = f" ({failing['column']})" if failing["column"] else ""
    found = f"  {mark} {failing['check']}{column}: {visible(failing['observed'] or '')}; allowed: {failing['allowed']}"
    such = ", ".join(visible(value) for value in failing["sample"])
    return [found, *([f"      such as {such}"] if such else []), f"      {failing['advice']}"]


def visible(text: str) -> str:
    """Text from the data with everything that cannot be seen written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
