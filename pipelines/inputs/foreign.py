"""What presets share: times of any kind, positions that count from 0 or 1, and the text of a query as its id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

NEVER = ("", "null", "undefined", "(not set)")  # what clients log for a value they do not have


def parse_micros(value: Column) -> Column:
    """Microseconds since 1970 of ISO text with or without a zone, or of epoch seconds, milli-, micro- or nanoseconds.

    The unit of a number follows from its size: each is right for any time between 1973 and 2286.
    """
    from pyspark.sql import functions as F

    text = F.regexp_replace(F.trim(value), r"([+-]\d\d)(\d\d)$", "$1:$2")  # +0000 is +00:00
    number = F.when(text.rlike(r"^\d+(\.\d+)?$"), text.try_cast("decimal(38,6)"))
    scaled = (
        F.when(number < 1e11, number * 1_000_000)
        .when(number < 1e14, number * 1000)
        .when(number < 1e17, number)
        .otherwise(number / 1000)
    )
    return F.coalesce(scaled.try_cast("bigint"), F.unix_micros(text.try_cast("timestamp")))


def keep_value(value: Column) -> Column:
    """The value as text; null where it is one of those that stand for none."""
    from pyspark.sql import functions as F

    text = F.trim(value)
    return F.when(~F.lower(text).isin(*NEVER), text)


def parse_position(value: Column) -> Column:
    """A whole number, also where it is written as 3.0."""
    from pyspark.sql import functions as F

    number = value.try_cast("double")
    return F.when(number == F.floor(number), number.try_cast("int"))


def normalise_query(text: Column) -> Column:
    """The id of a query: its text in lower case, with single spaces."""
    from pyspark.sql import functions as F

    return keep_value(F.lower(F.regexp_replace(text, r"\s+", " ")))


def derive_id(parts: Iterable[Column]) -> Column:
    """An id for a row that has none; equal rows have equal ids."""
    from pyspark.sql import functions as F

    return F.sha2(F.concat_ws("\x1f", *[F.coalesce(part.cast("string"), F.lit("")) for part in parts]), 256)


def counts_from_zero(zeros: int, ones: int) -> bool:
    """Whether positions count from 0, by how many are 0 and 1.

    The first result is shown at least about as often as the second; fewer zeros are clients that do not know.
    """
    return zeros > 0 and 2 * zeros >= ones
