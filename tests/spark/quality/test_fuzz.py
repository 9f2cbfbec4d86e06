"""Corrupted logs end in a clean verdict: refused with a reason, reported with a warning, or harmless; no stack trace.

A corruption is slight if it changes a few rows and breaks no contract: the thresholds of the checks tolerate it, since
data changes from day to day. 60 fixed corruptions are tried; `make fuzz` tries 500 of another seed, and prints how many
had which outcome.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.inputs.read import InputTable, read_input
from pipelines.inputs.settings import InputSource
from pipelines.inputs.validate import ValidatedInputs, describe_input, validate_inputs
from pipelines.quality.inspect import Inspection
from pipelines.quality.results import build_refusal
from schemas.errors import AssayError
from schemas.spark_errors import raise_input_errors
from tests.helpers.corruptions import FORMATS, Draft, corrupt, write
from tests.helpers.small_data import DATE, LOG, build_clean_tables, build_config, list_failing

CASES = int(os.environ.get("FUZZ_CASES", "60"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
FIRST = int(os.environ.get("FUZZ_FIRST", "0"))  # to run them in slices
SLIGHT = 0.05  # share of changed rows that the thresholds of the checks tolerate
PAIRS = (LOG, ("rankings", "judgments"))


@dataclass
class CleanData:
    """Clean tables, read and inspected once, to compare corrupted ones with."""

    inputs: dict[str, InputTable] = field(default_factory=dict)
    columns: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # a format has its own types
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def baseline(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CleanData:
    data, folder = CleanData(), tmp_path_factory.mktemp("clean")
    for name in (name for pair in PAIRS for name in pair):
        for form in FORMATS:
            place = folder / f"{name}.{form}"
            write(Draft(name, build_clean_tables()[name], form, random.Random(0)), place)
            table = read_input(spark, name, InputSource(path=str(place), format=form), DATE)
            data.inputs[name] = table
            data.columns[name, form] = {column.name: column.dataType.simpleString() for column in table.raw.schema}
    for pair in PAIRS:
        inputs, inspection = {name: data.inputs[name] for name in pair}, Inspection(build_config(pair), DATE)
        validated = validate_inputs(inputs, inspection.config, inspection.request_counts)
        data.rows |= {name: list_rows(validated, name) for name in pair}
        inspection.check_inputs(inputs, validated)
        assert list_failing(inspection.results) == set()
        records = {name: describe_input(inputs[name], validated.counts[name]) for name in pair}
        data.figures |= {name: records[name] | inspection.figures[name] for name in pair}
    return data


def list_rows(validated: ValidatedInputs, name: str) -> list[str]:
    """The rows that would be used, with ranks from 0: metrics use only their order."""
    rows = validated.rows(name)
    if name == "rankings":
        rows = rows.selectExpr("system", "query_id", "doc_id", "rank - min(rank) OVER (PARTITION BY system, query_id)")
    return sorted(map(str, rows.collect()))


@pytest.mark.parametrize("case", range(FIRST, FIRST + CASES))
def test_a_corruption_is_refused_reported_or_harmless(
    spark: SparkSession, baseline: CleanData, tmp_path: Path, record_property: Callable[[str, object], None], case: int
) -> None:
    name, form, place, description = corrupt(1000 * SEED + case, tmp_path)
    pair = next(pair for pair in PAIRS if name in pair)
    past = {of: baseline.figures[of] for of in pair}
    past[name] = past[name] | {"columns": baseline.columns[name, form]}
    inspection = Inspection(build_config(pair), DATE, [past])
    try:
        with raise_input_errors("while checking"):
            inputs = {of: baseline.inputs[of] for of in pair}
            inputs[name] = read_input(spark, name, InputSource(path=place, format=form), DATE)
            validated = validate_inputs(inputs, inspection.config, inspection.request_counts)
            inspection.check_inputs(inputs, validated)
        error: AssayError | None = build_refusal(inspection.results, "the corrupted table")
    except AssayError as refused:
        error = refused
    if error is not None:
        assert error.exit_code in (3, 4), description
        assert str(error) and "Traceback" not in str(error), description
        record_property("end", "refused")
    elif list_failing(inspection.results):
        record_property("end", "reported")
    else:
        before, after = Counter(baseline.rows[name]), Counter(list_rows(validated, name))
        part = max((before - after).total(), (after - before).total()) / before.total()
        assert part <= SLIGHT, f"{description}: {part:.0%} of the rows changed and no check reported it"
        record_property("end", "slight" if part else "harmless")
