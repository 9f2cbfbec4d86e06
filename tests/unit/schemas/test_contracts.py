"""A contract renders as a schema, a suite and documentation."""

import pytest

from schemas.inputs import INPUTS, INTERACTIONS, RANKINGS
from schemas.outputs import OUTPUTS
from schemas.table import Column, Table

SMALL = Table(
    "small",
    "one thing",
    (
        Column("id", "string", "its name"),
        Column("place", "int", "where", minimum=1),
        Column("kind", "string", "which", optional=True, choices=("a", "b")),
        Column("code", "string", "what", nullable=True, pattern="[a-z]+"),
    ),
    key=("id",),
)


def test_a_table_renders_spark_types() -> None:
    assert SMALL.struct().simpleString() == "struct<id:string,place:int,kind:string,code:string>"
    assert [field.nullable for field in SMALL.struct()] == [False, False, True, True]


def test_a_table_renders_its_documentation() -> None:
    assert "| `place` | int | yes | ≥ 1 | where |" in SMALL.markdown()
    assert "Key: `id`." in SMALL.markdown()
    assert "one of rank, score" in RANKINGS.markdown()


def test_a_table_renders_expectations() -> None:
    kinds = [(check["type"], check["kwargs"]["column"]) for check in SMALL.expectations()]
    assert kinds == [
        ("expect_column_to_exist", "id"),
        ("expect_column_to_exist", "place"),
        ("expect_column_to_exist", "code"),
        ("expect_column_values_to_be_of_type", "id"),
        ("expect_column_values_to_not_be_null", "id"),
        ("expect_column_values_to_be_of_type", "place"),
        ("expect_column_values_to_not_be_null", "place"),
        ("expect_column_values_to_be_between", "place"),
        ("expect_column_values_to_be_of_type", "kind"),
        ("expect_column_values_to_be_in_set", "kind"),
        ("expect_column_values_to_be_of_type", "code"),
        ("expect_column_values_to_match_regex", "code"),
    ]
    assert SMALL["code"].expectations()[-1]["kwargs"] == {"column": "code", "regex": "^(?:[a-z]+)$"}
    assert INTERACTIONS["kind"].describe_values() == "click, cart, purchase"


def test_added_columns_do_not_replace_those_of_the_contract() -> None:
    wider = SMALL.add_columns([Column("id", "int", "another"), Column("extra", "double", "more")])
    assert wider.names == ["id", "place", "kind", "code", "extra"]
    assert wider["id"].type == "string"


@pytest.mark.parametrize("table", [*INPUTS.values(), *OUTPUTS.values()], ids=lambda table: table.name)
def test_every_contract_renders_and_its_key_exists(table: Table) -> None:
    assert len(table.struct()) == len(table.columns) == len(set(table.names))
    assert set(table.key) | set(table.one_of) <= set(table.names)
    assert all(column.meaning for column in table.columns)
