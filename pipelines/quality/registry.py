"""The registry of checks. A check is one function from the figures of the tables to findings; it starts no Spark job.

@check(tables="impressions", severity="warn", threshold=0.5, measures="smallest share …", advice="compare …")
def volume(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    \"\"\"One line: why the check exists.\"\"\"
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from schemas.registry import Registry

Severity = Literal["error", "warn", "ignore"]
Figures = Mapping[str, Any]  # the figures of one table: counts and the like, never rows


@dataclass(frozen=True)
class Finding:
    """What a check finds in one table."""

    table: str
    passed: bool
    observed: str
    allowed: str
    column: str | None = None
    rows: int | None = None
    failed_rows: int | None = None
    sample: tuple[str, ...] = ()


@dataclass(frozen=True)
class QualityFacts:
    """The figures of every table of this run, and of the runs of earlier dates, newest first."""

    date: dt.date
    tables: Mapping[str, Figures]
    past: Sequence[Mapping[str, Figures]] = ()

    def select_tables(self, *names: str) -> Iterator[tuple[str, Figures]]:
        """The tables that have all these figures."""
        for table, figures in self.tables.items():
            if all(figures.get(name) is not None for name in names):
                yield table, figures

    def compute_usual(self, table: str, compute: Callable[[Figures], float | None]) -> float | None:
        """The median of a value over the past runs that have it; None where there are none."""
        values = [value for run in self.past if table in run and (value := compute(run[table])) is not None]
        return median(values) if values else None

    def find_previous(self, table: str, name: str) -> Any:
        """A figure of the newest past run that has it; None where there is none."""
        return next((run[table][name] for run in self.past if run.get(table, {}).get(name)), None)


CheckFunction = Callable[[QualityFacts, float], Iterator[Finding]]


@dataclass(frozen=True)
class Check:
    """A declared check: its defaults, what its threshold measures, and what to do when it fails."""

    name: str
    tables: str
    severity: Severity
    threshold: float
    measures: str
    advice: str
    run: CheckFunction
    sampled: bool = False  # whether its figures come from a sample where tables are long

    @property
    def reason(self) -> str:
        """Why the check exists: the first line of the function's docstring."""
        return inspect.cleandoc(self.run.__doc__ or "").partition("\n")[0]


CHECKS: Registry[Check] = Registry("check", "pipelines.quality.checks")


def check(
    *, tables: str, severity: Severity, threshold: float, measures: str, advice: str, sampled: bool = False
) -> Callable[[CheckFunction], CheckFunction]:
    """Register the decorated function as a check under its own name."""

    def register(function: CheckFunction) -> CheckFunction:
        declared = Check(
            name=function.__name__,
            tables=tables,
            severity=severity,
            threshold=threshold,
            measures=measures,
            advice=advice,
            run=function,
            sampled=sampled,
        )
        CHECKS.register(declared.name, declared)
        return function

    return register


def check_share(
    threshold: float,
    table: str,
    part: int,
    whole: int,
    what: str,
    *,
    column: str | None = None,
    sample: Iterable[str] = (),
) -> Finding:
    """A finding about the share of rows that fail; `what` says how they fail."""
    share = share_of(part, whole)
    return Finding(
        table=table,
        passed=share <= threshold,
        observed=f"{part:,} of {whole:,} {what} ({format_percent(share)})",
        allowed=f"at most {format_percent(threshold)}",
        column=column,
        rows=whole,
        failed_rows=part,
        sample=tuple(sample),
    )


def share_of(part: float, whole: float) -> float:
    """The part divided by the whole; 0 where the whole is 0."""
    return part / whole if whole else 0.0


def format_percent(value: float) -> str:
    """A share in percent, with two significant digits."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"
