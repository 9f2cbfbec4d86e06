"""The kinds of expectations that a contract can have, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.quality.results import USABLE_ROWS


@dataclass(frozen=True)
class ExpectationRule:
    """The name of a kind of expectation here, why a contract has it, and what to do when it fails."""

    name: str
    allowed: str  # empty where the contract of the column says it
    reason: str
    advice: str


USABLE = ExpectationRule(
    name=USABLE_ROWS,
    allowed="at most max_rejected = {:g} of the rows",
    reason="A row that does not fit its contract cannot be used, and the remaining rows may not be representative.",
    advice="fix the data, or raise max_rejected; a run within it publishes the rejected rows in quarantine",
)
_ADVICE = "check the sample, then fix the data or set the right column in inputs.TABLE.columns"
RULES: Mapping[str, ExpectationRule] = {
    "expect_column_to_exist": ExpectationRule(
        "column_exists", "the column", "A metric cannot be computed without a column that it needs.", _ADVICE
    ),
    "expect_column_values_to_be_of_type": ExpectationRule(
        "type", "", "Text sorts, sums and compares differently from numbers.", _ADVICE
    ),
    "expect_column_values_to_not_be_null": ExpectationRule(
        "not_null", "a value in every row", "A row without a required value cannot be joined or counted.", _ADVICE
    ),
    "expect_column_values_to_be_between": ExpectationRule(
        "range", "", "A value out of range is corrupt, or another quantity.", _ADVICE
    ),
    "expect_column_values_to_be_in_set": ExpectationRule(
        "values", "", "A row with an unknown value is not counted.", _ADVICE
    ),
    "expect_column_values_to_match_regex": ExpectationRule(
        "pattern", "", "A name of another form does not match the names in other tables.", _ADVICE
    ),
}
