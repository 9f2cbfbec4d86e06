"""A check is one registered function from what is known of the tables to findings. It starts no Spark job.

@check(tables="impressions", severity="warn", threshold=0.5, measures="smallest share …", advice="look at …")
def volume(facts: Facts, threshold: float) -> Iterator[Finding]:
    \"\"\"One line: why the check exists.\"\"\"
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

Severity = Literal["error", "warn", "ignore"]
Figures = Mapping[str, Any]  # what is known of one table: counts and the like, never rows


@dataclass(frozen=True)
class Finding:
    """What a check found in one table."""

    table: str
    passed: bool
    observed: str
    allowed: str
    column: str | None = None
    rows: int | None = None
    failed_rows: int | None = None
    sample: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What is known of every table of this run, and of the runs of the dates before it, newest first."""

    date: dt.date
    tables: Mapping[str, Figures]
    past: Sequence[Mapping[str, Figures]] = ()

    def having(self, *figures: str) -> Iterator[tuple[str, Figures]]:
        """The tables of which all these figures are known."""
        for name, known in self.tables.items():
            if all(known.get(figure) is not None for figure in figures):
                yield name, known

    def usual(self, table: str, figure: Callable[[Figures], float | None]) -> float | None:
        """The median of a figure over the past runs that have it; None where there are none."""
        found = [value for run in self.past if table in run and (value := figure(run[table])) is not None]
        return median(found) if found else None

    def previous(self, table: str, figure: str) -> Any:
        """A figure of the newest past run that has it; None where there is none."""
        return next((run[table][figure] for run in self.past if run.get(table, {}).get(figure)), None)


Function = Callable[[Facts, float], Iterator[Finding]]


@dataclass(frozen=True)
class Check:
    """A check as it was declared: its defaults, what its threshold means, why it exists and what to do about it."""

    name: str
    tables: str
    severity: Severity
    threshold: float
    measures: str
    advice: str
    run: Function
    drawn: bool = False

    @property
    def reason(self) -> str:
        return inspect.cleandoc(self.run.__doc__ or "").partition("\n")[0]


CHECKS: dict[str, Check] = {}


def check(
    *, tables: str, severity: Severity, threshold: float, measures: str, advice: str, drawn: bool = False
) -> Callable[[Function], Function]:
    """Register the decorated function under its own name; its docstring is the reason for it.

    What it says is of `drawn` rows where tables are long: it looks at keys and references.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        CHECKS[name] = Check(name, tables, severity, threshold, measures, advice, function, drawn)
        return function

    return register


def at_most(
    threshold: float,
    table: str,
    part: int,
    whole: int,
    what: str,
    *,
    column: str | None = None,
    sample: Iterable[str] = (),
) -> Finding:
    """A finding about the share of some rows among all that were looked at; `what` says what is wrong with them."""
    found = share(part, whole)
    return Finding(
        table,
        found <= threshold,
        observed=f"{part:,} of {whole:,} {what} ({percent(found)})",
        allowed=f"at most {percent(threshold)}",
        column=column,
        rows=whole,
        failed_rows=part,
        sample=tuple(sample),
    )


def share(part: float, whole: float) -> float:
    """The part of the whole; nothing of nothing is nothing."""
    return part / whole if whole else 0.0


def percent(value: float) -> str:
    """A share as people read it: two digits that say something."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"
