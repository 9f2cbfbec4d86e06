"""A backfill: a range of dates, each with its outcome. A date whose data are bad does not stop the others."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from schemas.errors import AssayError, DataQualityError, GateError, InputError, PublishError, TrackingError

if TYPE_CHECKING:
    from pipelines.plan import Outcome

# Errors of one date, from the one that got furthest; any other error would probably stop the next date as well.
OF_ONE_DATE = (TrackingError, GateError, DataQualityError, InputError)
WORDS: Mapping[type[AssayError], str] = {
    InputError: "unusable input",
    DataQualityError: "refused by its checks",
    PublishError: "not published",
    GateError: "gate not passed",
    TrackingError: "not tracked",
}
NOT_RUN = "not run"


@dataclass(frozen=True)
class DateResult:
    """How one date ended; `run` is the published one, also where its gate fails."""

    date: dt.date
    outcome: str
    run: str = ""
    seconds: float = 0.0
    error: AssayError | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the command for this date alone; None where it did not end."""
        if self.error is not None:
            return self.error.exit_code
        return 0 if self.run else None

    def describe(self) -> dict[str, Any]:
        """The result as facts for JSON."""
        return {
            "date": self.date.isoformat(),
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "run": self.run or None,
            "seconds": round(self.seconds, 1),
            "message": None if self.error is None else str(self.error),
        }


@dataclass
class Backfill:
    """The dates of a range in their order, and the results so far."""

    dates: Sequence[dt.date]
    _results: dict[dt.date, DateResult] = field(default_factory=dict)

    @property
    def results(self) -> list[DateResult]:
        """One result for each date, also for those that were not reached."""
        return [self._results.get(date, DateResult(date, NOT_RUN)) for date in self.dates]

    def run(self, run: Callable[[dt.date], Outcome], finish: Callable[[Outcome], None]) -> None:
        """Run and finish each date, and end with the worst error; an error that is not about one date ends it at once.

        `finish` follows the commit of a date and raises what the command of that date alone would end with.
        """
        for date in self.dates:
            start, outcome, cause = time.monotonic(), None, None
            try:
                outcome = run(date)
                finish(outcome)
            except Exception as error:
                cause = find_assay_error(error)
                if not isinstance(cause, OF_ONE_DATE):
                    raise
            finally:
                self._results[date] = _describe_end(date, outcome, cause, time.monotonic() - start)
        self._raise_worst()

    def _raise_worst(self) -> None:
        failed = [result for result in self.results if result.error is not None]
        if failed:
            kind = next(kind for kind in reversed(OF_ONE_DATE) if any(isinstance(r.error, kind) for r in failed))
            worst = next(result for result in failed if isinstance(result.error, kind))
            raise kind(
                f"{len(failed)} of {len(self.dates)} dates did not pass, worst: {worst.outcome}",
                where=str(worst.date),
                hint="the same command tries them again, and skips dates that are committed",
            )


def find_assay_error(error: Exception) -> AssayError:
    """The error that a user can act on; where there is none, one that names what was raised."""
    if isinstance(error, AssayError):
        return error
    from schemas.spark_errors import find_cause

    return find_cause(error) or AssayError(f"unexpected: {type(error).__name__}")


def _describe_end(date: dt.date, outcome: Outcome | None, error: AssayError | None, seconds: float) -> DateResult:
    run = "" if outcome is None else outcome.manifest.run
    if error is not None:
        words = WORDS.get(type(error), "failed")
    elif outcome is None:
        words = "interrupted"
    else:
        words = "already committed" if outcome.reused else "committed"
    return DateResult(date, words, run, seconds, error)


def show_results(backfill: Backfill, output: str) -> None:
    """Print a table of the dates and their outcomes, then the message of each that failed; or all of it as JSON."""
    from jobs.support.grids import Grid, show_grid
    from jobs.support.terminal import open_console, print_line

    if output == "json":
        click.echo(json.dumps({"dates": [result.describe() for result in backfill.results]}, ensure_ascii=False))
        return
    console = open_console(wide=True)
    dates = [str(date) for date in backfill.dates]
    cells = [[result.outcome, result.run, f"{result.seconds:.1f}"] for result in backfill.results]
    show_grid(console, Grid("Dates", "date", dates, ["outcome", "run", "seconds"], cells))
    for result in backfill.results:
        if result.error is not None:
            print_line(console, f"✗ {result.date}: {result.error}")
