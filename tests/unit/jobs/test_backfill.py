"""A range of dates: every date has an outcome, and the command ends with the worst."""

import datetime as dt
from pathlib import Path

import click
import pytest

from jobs.support.backfill import Backfill, show_results
from jobs.support.options import expand_dates
from pipelines.plan import Outcome
from schemas.errors import AssayError, DataQualityError, GateError, InputError, PublishError
from tests.helpers.published_runs import publish

FIRST, LAST = dt.date(2026, 11, 1), dt.date(2026, 11, 4)
DATES = expand_dates(None, FIRST, LAST)


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    return Outcome(publish(tmp_path, run="aaaaaaaaaaaa-000001")[1], reused=False)


def test_a_range_has_every_date_and_needs_both_ends() -> None:
    assert [dt.date(2026, 11, day) for day in (1, 2, 3, 4)] == DATES
    assert expand_dates(FIRST, None, None) == [FIRST]
    for wrong in ((None, None, None), (FIRST, FIRST, LAST), (None, FIRST, None), (None, LAST, FIRST)):
        with pytest.raises(click.UsageError, match=r"either --date, or --from and --to|--from .* is after --to"):
            expand_dates(*wrong)


def test_bad_dates_do_not_stop_the_others_and_the_worst_ends_the_command(
    outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(date: dt.date) -> Outcome:
        if date.day == 2:
            raise InputError("rankings has no data", where="inputs.rankings")
        if date.day == 3:
            raise DataQualityError("a check failed")
        return outcome

    def finish(done: Outcome) -> None:
        if len(backfill.results[2].outcome) > len("not run"):  # the fourth date
            raise GateError("a condition is not met")

    backfill = Backfill(DATES)
    with pytest.raises(InputError, match=r"3 of 4 dates did not pass, worst: unusable input \(2026-11-02\)"):
        backfill.run(run, finish)
    assert [(result.outcome, result.exit_code, result.run) for result in backfill.results] == [
        ("committed", 0, "aaaaaaaaaaaa-000001"),
        ("unusable input", 3, ""),
        ("refused by its checks", 4, ""),
        ("gate not passed", 6, "aaaaaaaaaaaa-000001"),
    ]
    show_results(backfill, "table")
    printed = capsys.readouterr().out
    assert "✗ 2026-11-02: rankings has no data (inputs.rankings)" in printed
    assert "✗ 2026-11-04: a condition is not met" in printed


@pytest.mark.parametrize(
    ("error", "words"), [(PublishError("the disk is full"), "not published"), (KeyError("x"), "failed")]
)
def test_an_error_that_is_not_about_one_date_ends_the_range(outcome: Outcome, error: Exception, words: str) -> None:
    def run(date: dt.date) -> Outcome:
        if date.day == 2:
            raise error
        return outcome

    backfill = Backfill(DATES)
    with pytest.raises(type(error)):
        backfill.run(run, lambda _: None)
    assert [result.outcome for result in backfill.results] == ["committed", words, "not run", "not run"]
    assert [result.exit_code for result in backfill.results] == [0, 5 if words == "not published" else 1, None, None]
    assert isinstance(backfill.results[1].error, AssayError)
