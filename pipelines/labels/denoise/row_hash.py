"""A hash of all fields of an interaction: equal rows have equal outcomes, and quarantined ones are found by it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.denoise.columns import Texts, chain_texts, read_integers, read_micros
from schemas.inputs import INTERACTIONS
from udfs.ragged import Ints
from udfs.xxhash import SEED, hash_numbers_like_spark


def hash_row() -> Column:
    """The hash in Spark."""
    return F.xxhash64(*INTERACTIONS.names)


def hash_rows(table: pa.Table) -> Ints:
    """The same hash of the rows of an Arrow table."""
    hashes = np.full(table.num_rows, SEED, dtype=np.int64)
    for column in INTERACTIONS.columns:
        values = table[column.name]
        if column.type == "string":
            hashes = chain_texts(Texts.of(values), hashes)
            continue
        if column.type == "timestamp":
            numbers = read_micros(values)
        elif column.type == "double":
            numbers = np.asarray(values.fill_null(0.0).to_numpy(), dtype=np.float64)
        else:
            numbers = read_integers(values)
        valid = values.is_valid().to_numpy()
        hashes = np.where(valid, hash_numbers_like_spark(numbers, hashes), hashes)
    return hashes
