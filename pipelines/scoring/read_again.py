"""Read an input of a published run again: rankings and judgments are not published."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame, SparkSession

from pipelines.config.model import Config
from pipelines.inputs.contracts import resolve_contract
from pipelines.inputs.read import read_input
from pipelines.warehouse.runs import Manifest
from schemas.conform import conform
from schemas.errors import InputError


def read_again(spark: SparkSession, manifest: Manifest, config: Config, name: str) -> tuple[DataFrame, bool]:
    """The valid rows of an input of a run, and whether it has changed since the run."""
    source = config.sources()[name]
    try:
        table = read_input(spark, name, source, dt.date.fromisoformat(manifest.dt))
    except InputError as error:  # its hint is for who evaluates: keys and options that a reader of a run does not have
        raise InputError(
            f"the {name} of run {manifest.run} cannot be read again: {error.what}",
            where=error.where,
            hint="lists are read from the inputs of the run; put them back, or evaluate the date again",
        ) from None
    rows = conform(table.raw, resolve_contract(name, config), columns=source.columns).rows
    return rows, table.digest != manifest.inputs[name]["digest"]


def require_rankings(manifest: Manifest, purpose: str) -> None:
    """Refuse a run that evaluated the lists of its log, which are not kept."""
    if manifest.config["inputs"].get("rankings") is None:
        hint = f"give inputs.rankings to keep lists that can be {purpose}"
        raise InputError(f"run {manifest.run} evaluated the lists of its log, which are not kept", hint=hint)


def name_grade_column(config: Config) -> str:
    """The column of published labels that behaviour is scored by: the grade, or the lift if that is the scale."""
    return f"lift_{config.labels.grade.objective}" if config.labels.grade.scale == "lift" else "grade"
