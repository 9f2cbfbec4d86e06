"""Contracts in the Open Data Contract Standard: by the rules of its version 3.1, and from the same declarations."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from jobs.cli import assay, invoke
from schemas.inputs import INPUTS
from schemas.outputs import OUTPUTS

TEXT, FLAG = {"type": "string"}, {"type": "boolean"}
OPTIONS = {  # those that the standard has for each type, as far as we write them
    "string": {"pattern": TEXT},
    "integer": {"minimum": {"type": "number"}, "maximum": {"type": "number"}, "format": {"enum": ["i32", "i64"]}},
    "number": {"minimum": {"type": "number"}, "maximum": {"type": "number"}, "format": {"enum": ["f64"]}},
    "boolean": {},
    "timestamp": {},
    "array": {},
}
QUALITY = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": TEXT,
            "description": TEXT,
            "type": {"enum": ["text", "library"]},
            "dimension": {"enum": ["completeness", "conformity", "uniqueness"]},
            "metric": {"enum": ["invalidValues", "duplicateValues"]},
            "arguments": {"type": "object"},
            "mustBe": {},
        },
        "if": {"properties": {"type": {"const": "library"}}, "required": ["type"]},
        "then": {"required": ["metric", "mustBe"]},
        "additionalProperties": False,
    },
}
PROPERTY = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": TEXT,
        "logicalType": {"enum": list(OPTIONS)},
        "physicalType": TEXT,
        "description": TEXT,
        "required": FLAG,
        "primaryKey": FLAG,
        "primaryKeyPosition": {"type": "integer"},
        "partitioned": FLAG,
        "partitionKeyPosition": {"type": "integer"},
        "items": {"type": "object", "required": ["logicalType"]},
        "logicalTypeOptions": {"type": "object"},
        "quality": QUALITY,
        "customProperties": {"type": "array", "items": {"type": "object", "required": ["property", "value"]}},
    },
    "additionalProperties": False,
    "allOf": [
        {
            "if": {"properties": {"logicalType": {"const": kind}}},
            "then": {"properties": {"logicalTypeOptions": {"properties": options, "additionalProperties": False}}},
        }
        for kind, options in OPTIONS.items()
    ],
}
CONTRACT = {
    "type": "object",
    "required": ["version", "apiVersion", "kind", "id", "status"],
    "properties": {
        **dict.fromkeys(("version", "id", "name", "status", "domain"), TEXT),
        "apiVersion": {"const": "v3.1.0"},
        "kind": {"const": "DataContract"},
        "description": {"type": "object"},
        "schema": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    **dict.fromkeys(("name", "physicalName", "physicalType"), TEXT),
                    **dict.fromkeys(("description", "dataGranularityDescription"), TEXT),
                    "logicalType": {"const": "object"},
                    "properties": {"type": "array", "items": PROPERTY},
                    "quality": QUALITY,
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


@pytest.fixture
def contracts(tmp_path: Path) -> dict[str, dict[str, Any]]:
    assert invoke(assay, ["contract", "--format", "odcs", "--to", str(tmp_path / "contracts")]) == 0
    files = (tmp_path / "contracts").glob("*.odcs.yaml")
    return {file.name.partition(".")[0]: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}


def find_property(contract: dict[str, Any], table: str, column: str) -> dict[str, Any]:
    (declared,) = [entry for entry in contract["schema"] if entry["name"] == table]
    (entry,) = [entry for entry in declared["properties"] if entry["name"] == column]
    return dict(entry)


def test_the_documents_follow_the_standard(contracts: dict[str, dict[str, Any]]) -> None:
    assert set(contracts) == {"inputs", "outputs"}
    for contract in contracts.values():
        jsonschema.Draft201909Validator(CONTRACT).validate(contract)
    wrong = contracts["inputs"] | {"kind": "Contract"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft201909Validator(CONTRACT).validate(wrong)


def test_every_table_and_column_is_in_them_with_its_rules(contracts: dict[str, dict[str, Any]]) -> None:
    for name, tables in {"inputs": INPUTS, "outputs": OUTPUTS}.items():
        more = ["dt", "run"] if name == "outputs" else []
        columns = {entry["name"]: [p["name"] for p in entry["properties"]] for entry in contracts[name]["schema"]}
        assert columns == {table.name: [*table.names, *more] for table in tables.values()}
    position = find_property(contracts["inputs"], "impressions", "position")
    assert position["logicalTypeOptions"] == {"minimum": 1, "format": "i32"}
    assert (position["required"], position["primaryKeyPosition"]) == (True, 2)
    kind = find_property(contracts["inputs"], "interactions", "kind")
    assert kind["quality"][0]["arguments"] == {"validValues": ["click", "cart", "purchase"]}
    assert find_property(contracts["outputs"], "comparisons", "dt")["partitionKeyPosition"] == 1
    (rankings,) = [entry for entry in contracts["inputs"]["schema"] if entry["name"] == "rankings"]
    assert rankings["quality"][0]["arguments"] == {"properties": ["system", "query_id", "doc_id"]}
    assert rankings["quality"][1]["description"] == "a row has at least one of rank, score"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = tmp_path / "blocked" / "inner"
    (tmp_path / "blocked").write_text("a file where a folder should be")
    assert invoke(assay, ["contract", "--to", str(blocked)]) == 5
    assert str(blocked / "inputs.odcs.yaml") in capsys.readouterr().err
