"""The date of a run, as people give it."""

from __future__ import annotations

import datetime as dt

FIRST_YEAR, LAST_YEAR = 1900, 2200  # windows and checks count days before and after a date


def parse_date(text: str) -> dt.date:
    """A date such as 2026-11-01; a `ValueError` says what is wrong with another text."""
    try:
        date = dt.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date; write it as 2026-11-01") from None
    require_year(date)
    return date


def require_year(date: dt.date) -> None:
    """Refuse a date whose year is a mistake."""
    if not FIRST_YEAR <= date.year <= LAST_YEAR:
        raise ValueError(f"{date} is not in the years {FIRST_YEAR} to {LAST_YEAR}")
