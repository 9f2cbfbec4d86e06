"""Registries load their package at the first lookup and refuse a second entry of the same name."""

from pathlib import Path

import pytest

from pipelines.inputs.format_registry import FORMATS, source_format
from pipelines.quality import checks
from pipelines.quality.registry import CHECKS, check
from schemas.errors import ConfigurationError
from schemas.registry import Registry


def test_every_file_of_a_package_is_registered() -> None:
    assert list(FORMATS) == [
        "beir", "csv", "ga4", "huggingface", "json", "msmarco", "parquet", "serp_arrays",
        "trec_diversity_qrels", "trec_qrels", "trec_run", "ubi",
    ]  # fmt: skip
    assert set(CHECKS) == {path.stem for path in Path(str(checks.__file__)).parent.glob("[a-z]*.py")}


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="format 'csv'"):
        source_format("csv")(FORMATS["json"].find_reader("rankings"))
    declare = check(tables="t", severity="warn", threshold=0, measures="m", advice="a")
    with pytest.raises(ValueError, match="check 'volume'"):
        declare(CHECKS["volume"].run)


def test_an_unknown_name_is_reported_with_the_closest_one() -> None:
    registry: Registry[int] = Registry("colour")
    registry.register("red", 1)
    with pytest.raises(ConfigurationError, match=r"unknown colour 'rde' \(paint\): did you mean 'red'\?"):
        registry.require("rde", where="paint")
