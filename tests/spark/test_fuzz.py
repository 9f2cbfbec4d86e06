"""Corrupted logs end in a clean verdict: refused with a reason, told with a warning, or harmless. Never a stack trace.

Slight is what changes a few rows and breaks no contract: the thresholds of the checks let it pass without a word, as
they must with data that changes from day to day. A fixed 60 corruptions are tried; `make fuzz` tries 500 of another
seed, and says how many came to which end.
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

from pipelines.check import Checked, check
from pipelines.complaints import input_errors
from pipelines.config import Source
from pipelines.quality.inspect import Inspection, record
from pipelines.quality.results import refusal
from pipelines.read import Input, read
from schemas.errors import AssayError
from tests.spark.corruptions import FORMATS, Draft, corrupt, write
from tests.spark.small_data import DATE, LOG, clean, failing, setting

CASES = int(os.environ.get("FUZZ_CASES", "60"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
FIRST = int(os.environ.get("FUZZ_FIRST", "0"))  # to try them in slices
SLIGHT = 0.05  # of the rows: what the thresholds of the checks let pass without a word
PAIRS = (LOG, ("rankings", "judgments"))


@dataclass
class Clean:
    """Clean tables, read and inspected once: what corrupted ones are compared with."""

    inputs: dict[str, Input] = field(default_factory=dict)
    columns: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # a format has its own types
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def known(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    made, folder = Clean(), tmp_path_factory.mktemp("clean")
    for name in (name for pair in PAIRS for name in pair):
        for form in FORMATS:
            place = folder / f"{name}.{form}"
            write(Draft(name, clean()[name], form, random.Random(0)), place)
            made.inputs[name] = found = read(spark, name, Source(path=str(place), format=form), DATE)
            made.columns[name, form] = {column.name: column.dataType.simpleString() for column in found.raw.schema}
    for pair in PAIRS:
        inputs, inspection = {name: made.inputs[name] for name in pair}, Inspection(setting(pair), DATE)
        checked = check(inputs, inspection.config, inspection.ask)
        made.rows |= {name: contents(checked, name) for name in pair}
        inspection.inputs(inputs, checked)
        assert failing(inspection.results) == set()
        made.figures |= {name: record(inputs[name], checked, name) | inspection.figures[name] for name in pair}
    return made


def contents(checked: Checked, name: str) -> list[str]:
    """The rows that would be used; of ranks only the order counts, since no metric looks at more."""
    rows = checked.rows(name)
    if name == "rankings":
        rows = rows.selectExpr("system", "query_id", "doc_id", "rank - min(rank) OVER (PARTITION BY system, query_id)")
    return sorted(map(str, rows.collect()))


@pytest.mark.parametrize("case", range(FIRST, FIRST + CASES))
def test_a_corruption_is_refused_told_or_harmless(
    spark: SparkSession, known: Clean, tmp_path: Path, record_property: Callable[[str, object], None], case: int
) -> None:
    name, form, place, said = corrupt(1000 * SEED + case, tmp_path)
    pair = next(pair for pair in PAIRS if name in pair)
    past = {of: known.figures[of] for of in pair}
    past[name] = past[name] | {"columns": known.columns[name, form]}
    inspection = Inspection(setting(pair), DATE, [past])
    try:
        with input_errors("while checking"):
            inputs = {of: known.inputs[of] for of in pair}
            inputs[name] = read(spark, name, Source(path=place, format=form), DATE)
            checked = check(inputs, inspection.config, inspection.ask)
            inspection.inputs(inputs, checked)
        error: AssayError | None = refusal(inspection.results, "the corrupted table")
    except AssayError as refused:
        error = refused
    if error is not None:
        assert error.exit_code in (3, 4), said
        assert str(error) and "Traceback" not in str(error), said
        record_property("end", "refused")
    elif failing(inspection.results):
        record_property("end", "told")
    else:
        before, after = Counter(known.rows[name]), Counter(contents(checked, name))
        part = max((before - after).total(), (after - before).total()) / before.total()
        assert part <= SLIGHT, f"{said}: {part:.0%} of the rows changed and nothing was said of it"
        record_property("end", "slight" if part else "harmless")
