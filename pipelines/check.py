"""Bring the inputs to their contracts and count what fits, in one pass over each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from pipelines.complaints import input_errors
from pipelines.config import Config
from pipelines.read import Input
from schemas.conform import Conformed, conform
from schemas.errors import ConfigurationError, DataQualityError, InputError, did_you_mean
from schemas.inputs import INPUTS
from schemas.outputs import QUARANTINE
from schemas.table import Column, Table

TOP_GRADE = 3.0  # of labels made from behaviour
MOST_GROUPS = 1000  # reasons and systems of one input; their counts are all that reaches the driver


@dataclass(frozen=True)
class Count:
    """What was read of one input: every row is either kept or rejected for one reason."""

    read: int
    kept: int
    rejected: Mapping[str, int]


@dataclass(frozen=True)
class Checked:
    """The inputs, each in the shape of its contract, and what was found on the way."""

    tables: Mapping[str, Conformed]
    counts: Mapping[str, Count]
    systems: tuple[str, ...]
    max_grade: float
    from_behaviour: bool  # whether the labels are made from what people did

    def rows(self, name: str) -> DataFrame:
        """The usable rows of an input."""
        return self.tables[name].rows

    def quarantine(self) -> DataFrame:
        """Every row of every input that does not fit its contract; inputs that all fit are not read again."""
        dirty = [self.tables[name].rejected for name, count in self.counts.items() if count.rejected]
        nothing = next(iter(self.tables.values())).rejected.where(F.lit(False))
        return reduce(DataFrame.unionByName, dirty, nothing).select(*QUARANTINE.names)


def check(inputs: Mapping[str, Input], config: Config) -> Checked:
    """Conform every input, and refuse one that is empty or largely unusable."""
    tables: dict[str, Conformed] = {}
    groups: dict[str, list[Row]] = {}
    for name, source in config.sources().items():
        with input_errors(f"inputs.{name}: {', '.join(inputs[name].places)}"):
            tables[name] = conform(inputs[name].raw, contract(name, config), columns=source.columns)
            groups[name] = _groups(tables[name])
    counts = {name: _count(found) for name, found in groups.items()}
    for name, count in counts.items():
        # Where checks are made, they judge the rejected rows, and say more of them.
        _believe(name, count, inputs[name], config.max_rejected if config.checks == "off" else 1.0)
    served = groups["rankings" if "rankings" in groups else "impressions"]
    named = {group["system"] for group in served if group["reason"] is None}
    systems = tuple(sorted(system for system in named if system is not None))
    _require_named(config, systems)
    from_behaviour = "impressions" in groups or config.labels_of is not None
    return Checked(
        tables,
        counts,
        systems=systems,
        max_grade=TOP_GRADE if from_behaviour else _top(groups["judgments"]),
        from_behaviour=from_behaviour,
    )


def _require_named(config: Config, systems: Sequence[str]) -> None:
    """Refuse a system that the configuration names and nobody ranks with, before anything is scored."""
    named = {"earlier": config.earlier, "compare.baseline": config.compare.baseline}
    named |= {f"gate[{place}].candidate": condition.candidate for place, condition in enumerate(config.gate)}
    for where, name in named.items():
        if name is not None and systems and name not in systems:
            hint = did_you_mean(name, systems)
            raise ConfigurationError(f"the system {name!r} has no rankings", where=where, hint=hint)


def _top(groups: list[Row]) -> float:
    return max(float(group["top"]) for group in groups if group["reason"] is None)


def contract(name: str, config: Config) -> Table:
    """The contract of an input, with the columns that this configuration adds to it."""
    table = INPUTS[name]
    if name == "rankings" and config.conventions.order != "rank":  # then a row without a score has no place
        return replace(
            table, columns=tuple(replace(c, optional=c.optional and c.name != "score") for c in table.columns)
        )
    if name == "judgments" and config.statistics.label_draws and not config.behaviour:
        return table.plus([Column("grade_sd", "double", "uncertainty of the grade", nullable=True, minimum=0)])
    if name == "impressions":
        return table.plus(Column(context, "string", "a context", nullable=True) for context in config.labels.contexts)
    added = config.query_columns if name == "queries" else ()
    return table.plus(Column(column, "string", "a segment", nullable=True) for column in added)


def _groups(table: Conformed) -> list[Row]:
    """Rows by reason, with the largest grade; where there are systems, by system too."""
    by = [table.reason.alias("reason")]
    if "system" in table.table.names:
        by.append(F.when(table.reason.isNull(), F.col("system")).alias("system"))
    top = F.max("grade") if "grade" in table.table.names else F.lit(None)
    counted = table.marked.groupBy(*by).agg(F.count("*").alias("rows"), top.alias("top"))
    groups = counted.limit(MOST_GROUPS + 1).collect()
    if len(groups) > MOST_GROUPS:
        raise DataQualityError(
            f"{table.table.name} has about {MOST_GROUPS} systems or more",
            hint=f"check which column inputs.{table.table.name}.columns gives for system",
        )
    return groups


def _count(groups: list[Row]) -> Count:
    rejected: dict[str, int] = {}
    for group in groups:
        if group["reason"] is not None:
            rejected[group["reason"]] = rejected.get(group["reason"], 0) + group["rows"]
    read = sum(group["rows"] for group in groups)
    return Count(read, read - sum(rejected.values()), dict(sorted(rejected.items())))


def _believe(name: str, count: Count, source: Input, most: float) -> None:
    """Refuse an input from which no honest number can come."""
    where = f"inputs.{name}: {', '.join(source.places)}"
    if not count.read:
        raise InputError(f"{name} is empty", where=where, hint="check path, where and --date")
    reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in count.rejected.items())
    if not count.kept:
        raise InputError(f"none of the {count.read:,} rows of {name} can be used", where=where, hint=reasons)
    if count.read - count.kept > most * count.read:
        raise DataQualityError(
            f"{count.read - count.kept:,} of {count.read:,} rows of {name} cannot be used, "
            f"more than max_rejected = {most:g} allows",
            where=where,
            hint=f"{reasons}. Mend the data, or raise max_rejected",
        )
