"""Bring the inputs to their contracts and count what fits, in one pass over each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
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
DRAWN = "drawn "  # begins the names of columns of drawn rows
MOST_GROUPS = 1000  # reasons and systems of one input; their counts are all that reaches the driver

Group = dict[str, Any]


@dataclass(frozen=True)
class Count:
    """What was read of one input: every row is either kept or rejected for one reason."""

    read: int
    kept: int
    rejected: Mapping[str, int]


@dataclass(frozen=True)
class Rider:
    """An aggregate over all rows of an input, made in the pass that counts them; null where there is nothing."""

    value: SparkColumn
    of_parts: Literal["sum", "min", "max"] = "sum"  # the rows are counted in groups


@dataclass(frozen=True)
class Asked:
    """What is asked of the rows of an input while they are counted: aggregates, and some of the rows themselves."""

    riders: Sequence[Rider] = ()
    drawn: Mapping[str, SparkColumn] = field(default_factory=dict)  # all null where a row is not wanted
    most: int = 0  # rows that may be drawn; where there are more, none are


Ask = Callable[[Mapping[str, Conformed]], Mapping[str, Asked]]


@dataclass(frozen=True)
class Checked:
    """The inputs, each in the shape of its contract, and what was found on the way."""

    tables: Mapping[str, Conformed]
    counts: Mapping[str, Count]
    ridden: Mapping[str, list[Any]]  # what came of the riders of each input
    drawn: Mapping[str, pa.Table]  # the rows that were asked for, and how many `rows` each stands for
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


def check(inputs: Mapping[str, Input], config: Config, ask: Ask = lambda _: {}) -> Checked:
    """Conform every input, and refuse one that is empty or largely unusable; `ask` looks at the same rows."""
    tables: dict[str, Conformed] = {}
    groups: dict[str, list[Group]] = {}
    ridden: dict[str, list[Any]] = {}
    drawn: dict[str, pa.Table] = {}
    for name, source in config.sources().items():
        with input_errors(_where(name, inputs)):
            tables[name] = conform(inputs[name].raw, contract(name, config), columns=source.columns)
    asked = ask(tables)
    for name, table in tables.items():
        with input_errors(_where(name, inputs)):
            mine = asked.get(name, Asked())
            counted = _counted(table, mine)
            groups[name] = _groups(name, counted, mine.riders)
            ridden[name] = [_whole(rider, groups[name], n) for n, rider in enumerate(mine.riders)]
            drawn[name] = _drawn(counted)
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
        ridden,
        drawn,
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


def _where(name: str, inputs: Mapping[str, Input]) -> str:
    return f"inputs.{name}: {', '.join(inputs[name].places)}"


def _top(groups: list[Group]) -> float:
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


def _counted(table: Conformed, asked: Asked) -> pa.Table:
    """Rows by reason, with the largest grade and what else is asked; where there are systems, by system too.

    A drawn row is a group of its own, so that it comes along in the same pass.
    """
    by = [table.reason.alias("reason")]
    if "system" in table.table.names:
        by.append(F.when(table.reason.isNull(), F.col("system")).alias("system"))
    by += [value.alias(DRAWN + name) for name, value in asked.drawn.items()]
    top = F.max("grade") if "grade" in table.table.names else F.lit(None).cast("double")
    more = [rider.value.alias(f"_{n}") for n, rider in enumerate(asked.riders)]
    counted = table.marked.groupBy(*by).agg(F.count("*").alias("rows"), top.alias("top"), *more)
    most = MOST_GROUPS + asked.most
    found = counted.limit(most + 1).toArrow()
    if asked.drawn and found.num_rows > most:  # a query that is longer than all that should be drawn
        return _counted(table, replace(asked, drawn={}, most=0))
    return found


def _groups(name: str, counted: pa.Table, riders: Sequence[Rider]) -> list[Group]:
    """The groups without what was drawn, each as a mapping."""
    by = [name for name in ("reason", "system") if name in counted.column_names]
    parts = {"rows": "sum", "top": "max"} | {f"_{n}": rider.of_parts for n, rider in enumerate(riders)}
    summed = counted.group_by(by).aggregate(list(parts.items()))
    if summed.num_rows > MOST_GROUPS:
        raise DataQualityError(
            f"{name} has about {MOST_GROUPS} systems or more",
            hint=f"check which column inputs.{name}.columns gives for system",
        )
    groups: list[Group] = summed.rename_columns({f"{name}_{how}": name for name, how in parts.items()}).to_pylist()
    return groups


def _drawn(counted: pa.Table) -> pa.Table:
    """The drawn rows with their columns, and their system where they have one."""
    names = [name for name in counted.column_names if name.startswith(DRAWN) or name in ("system", "rows")]
    return counted.select(names).rename_columns([name.removeprefix(DRAWN) for name in names])


def _whole(rider: Rider, groups: list[Group], n: int) -> Any:
    parts = [group[f"_{n}"] for group in groups if group[f"_{n}"] is not None]
    return sum(parts) if rider.of_parts == "sum" else (max if rider.of_parts == "max" else min)(parts, default=None)


def _count(groups: list[Group]) -> Count:
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
