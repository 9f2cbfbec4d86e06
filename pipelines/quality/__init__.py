"""Data quality: what must be true of the data before anyone believes a number that comes from it.

`registry` says what a check is, `checks/` holds one file for each, `suite` runs the contracts as suites of Great
Expectations, `figures`, `relations` and `outcomes` gather what the checks look at, and `inspect` puts it together.
"""
