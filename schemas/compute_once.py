"""Compute columns once per row, however many expressions use them.

Spark pushes a filter below a projection by writing the projected expression into each use of its column. The checks of
a contract use a column many times, so that a parser or a cast would run many times for each row. Nothing is pushed
below a generator.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def add_once(rows: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Add these columns, each computed once per row."""
    return rows.select("*", F.inline(F.array(_pack(columns))))


def select_once(rows: DataFrame, columns: Mapping[str, Column], *, where: Column) -> DataFrame:
    """Select these columns of the rows that meet a condition, each computed once per row."""
    return rows.select(F.inline(F.when(where, F.array(_pack(columns)))))


def _pack(columns: Mapping[str, Column]) -> Column:
    return F.struct(*[value.alias(name) for name, value in columns.items()])
