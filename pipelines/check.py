"""Bring the inputs to their contracts and count what fits, in one pass over each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from pipelines.complaints import input_errors
from pipelines.config import Config
from pipelines.read import Input
from schemas.conform import Conformed, conform
from schemas.errors import DataQualityError, InputError, did_you_mean
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
class Rider:
    """An aggregate over all rows of an input, made in the pass that counts them."""

    value: SparkColumn
    of_parts: Callable[[list[Any]], Any] = sum  # the rows are counted in groups, and nulls are left out


Riders = Callable[[Conformed], Sequence[Rider]]


@dataclass(frozen=True)
class Checked:
    """The inputs, each in the shape of its contract, and what was found on the way."""

    tables: Mapping[str, Conformed]
    counts: Mapping[str, Count]
    ridden: Mapping[str, list[Any]]  # what came of the riders of each input
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


def check(inputs: Mapping[str, Input], config: Config, riders: Riders = lambda _: ()) -> Checked:
    """Conform every input, and refuse one that is empty or largely unusable; `riders` look at the same rows."""
    tables: dict[str, Conformed] = {}
    groups: dict[str, list[Row]] = {}
    ridden: dict[str, list[Any]] = {}
    for name, source in config.sources().items():
        with input_errors(f"inputs.{name}: {', '.join(inputs[name].places)}"):
            tables[name] = conform(inputs[name].raw, contract(name, config), columns=source.columns)
            asked = riders(tables[name])
            groups[name] = _groups(tables[name], [rider.value for rider in asked])
            ridden[name] = [_whole(rider, groups[name], n) for n, rider in enumerate(asked)]
    counts = {name: _count(found) for name, found in groups.items()}
    for name, count in counts.items():
        # Where checks are made, they judge the rejected rows, and say more of them.
        _believe(name, count, inputs[name], config.max_rejected if config.checks == "off" else 1.0)
    served = groups["rankings" if "rankings" in groups else "impressions"]
    named = {group["system"] for group in served if group["reason"] is None}
    systems = tuple(sorted(system for system in named if system is not None))
    if config.earlier is not None and config.earlier not in systems:
        hint = did_you_mean(config.earlier, systems)
        raise InputError(f"rankings has no system {config.earlier!r}, which earlier names", hint=hint)
    from_behaviour = "impressions" in groups or config.labels_of is not None
    return Checked(
        tables,
        counts,
        ridden,
        systems=systems,
        max_grade=TOP_GRADE if from_behaviour else _top(groups["judgments"]),
        from_behaviour=from_behaviour,
    )


def _top(groups: list[Row]) -> float:
    return max(float(group["top"]) for group in groups if group["reason"] is None)


def contract(name: str, config: Config) -> Table:
    """The contract of an input, with the columns that this configuration adds to it."""
    table = INPUTS[name]
    if name == "rankings" and config.conventions.order != "rank":  # then a row without a score has no place
        return replace(
            table, columns=tuple(replace(c, optional=c.optional and c.name != "score") for c in table.columns)
        )
    if name == "judgments" and config.statistics.label_draws:
        return table.plus([Column("grade_sd", "double", "uncertainty of the grade", nullable=True, minimum=0)])
    if name == "impressions":
        return table.plus(Column(context, "string", "a context", nullable=True) for context in config.labels.contexts)
    added = config.query_columns if name == "queries" else ()
    return table.plus(Column(column, "string", "a segment", nullable=True) for column in added)


def _groups(table: Conformed, asked: Sequence[SparkColumn]) -> list[Row]:
    """Rows by reason, with the largest grade and what else is asked; where there are systems, by system too."""
    by = [table.reason.alias("reason")]
    if "system" in table.table.names:
        by.append(F.when(table.reason.isNull(), F.col("system")).alias("system"))
    top = F.max("grade") if "grade" in table.table.names else F.lit(None)
    more = [value.alias(f"_{n}") for n, value in enumerate(asked)]
    counted = table.marked.groupBy(*by).agg(F.count("*").alias("rows"), top.alias("top"), *more)
    groups = counted.limit(MOST_GROUPS + 1).collect()
    if len(groups) > MOST_GROUPS:
        raise DataQualityError(
            f"{table.table.name} has about {MOST_GROUPS} systems or more",
            hint=f"check which column inputs.{table.table.name}.columns gives for system",
        )
    return groups


def _whole(rider: Rider, groups: list[Row], n: int) -> Any:
    return rider.of_parts([group[f"_{n}"] for group in groups if group[f"_{n}"] is not None])


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
