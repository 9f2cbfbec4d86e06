"""An input that cannot be used is refused with the reason."""

import pytest

from pipelines.inputs.count import RowCount
from pipelines.inputs.validate import require_usable
from schemas.errors import InputError


def test_an_input_all_of_whose_rows_are_ignored_says_why() -> None:
    count = RowCount(read=0, kept=0, rejected={}, ignored={"action tap": 1_200, "action login": 3})
    with pytest.raises(InputError) as raised:
        require_usable("interactions", count, 1.0, where="inputs.interactions: ubi.ndjson")
    assert str(raised.value) == (
        "none of the 1,203 rows is for interactions (inputs.interactions: ubi.ndjson): action tap (1,200), "
        "action login (3); check path, and the options of the format"
    )


def test_an_input_without_a_usable_row_asks_for_its_format() -> None:
    count = RowCount(read=240, kept=0, rejected={"line cannot be parsed": 240})
    with pytest.raises(
        InputError, match=r"none of the 240 rows of judgments.*parsed \(240\); check format and columns"
    ):
        require_usable("judgments", count, 1.0, where="inputs.judgments: bm25.run")


def test_values_that_the_contract_does_not_know_ask_for_a_map() -> None:
    count = RowCount(read=632, kept=0, rejected={"kind: not one of click, cart, purchase": 632})
    with pytest.raises(InputError) as raised:
        require_usable("interactions", count, 1.0, where="inputs.interactions: events.json")
    assert raised.value.hint == (
        "kind: not one of click, cart, purchase (632); map its values, as in "
        "columns: {kind: {from: NAME, values: {theirs: click}}}"
    )


def test_an_input_without_a_row_is_empty() -> None:
    with pytest.raises(InputError, match="interactions is empty"):
        require_usable("interactions", RowCount(read=0, kept=0, rejected={}), 1.0, where="inputs.interactions: a.json")
