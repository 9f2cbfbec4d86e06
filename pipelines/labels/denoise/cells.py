"""Count the kept impressions of a day by place, with their users and pages as lists.

A window adds up the counts, and reads single rows only of users who have several on a pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.columns import join_chunks, read_integers
from pipelines.labels.denoise.hashes import find_repeated, is_among, mix_numbers
from pipelines.labels.denoise.keys import divide_kind
from pipelines.labels.denoise.pair_arrays import UserRows, combine_pair_rules, group_rows, number_user_rows
from pipelines.labels.denoise.settings import DenoiseSettings
from schemas.label_days import Kind
from udfs.ragged import Bools, Ints
from udfs.sorting import sort_distinct
from udfs.spark.bundles import BUNDLES, exchange, read_bundles
from udfs.spark.files import narrow_numbers
from udfs.spark.worker import run_in_worker

COUNTS = ("impressions", "clicks", "carts", "purchases")
KEYS = ("pair", "context", "system", "day", "position", "history", "page_mark")  # of a cell
TEXTS = ("context", "system")  # of the keys
LISTS = ("person", "page", "clicks", "carts", "purchases", "first")  # of a cell, per row


def count_cells(bundles: DataFrame, *, buckets: int, partitions: int) -> DataFrame:
    """Bundles of the cells and names of a day, from those of its kept rows and names."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        if Kind.KEPT in tables:
            yield divide_kind(build_cells(tables[Kind.KEPT]), buckets, Kind.CELLS)
        if Kind.NAMES in tables:
            names = tables[Kind.NAMES]
            first = np.flatnonzero(~pd.Series(read_integers(names["pair"])).duplicated().to_numpy())
            yield divide_kind(names.take(pa.array(first)), buckets, Kind.NAMES)

    chosen = bundles.where(F.col("kind").isin(int(Kind.KEPT), int(Kind.NAMES)))
    return exchange(chosen, buckets, partitions).mapInArrow(run_in_worker(count), BUNDLES)


def build_cells(kept: pa.Table) -> pa.Table:
    """Kept rows by pair and place: their counts, and as lists their users, pages and events."""
    rows = KeptRows.of(kept)
    keys = [read_codes(kept[name]) if name in TEXTS else read_integers(kept[name]) for name in KEYS]
    group, example = group_rows(keys)
    order = np.argsort(group, kind="stable")
    borders = pa.array(np.append(0, np.cumsum(np.bincount(group))).astype(np.int32))
    users = number_user_rows(rows.pair, rows.person, rows.page, rows.position, rows.clicks)
    rows = replace(rows, first=np.equal(users.number, 1).astype(np.int64))
    cells = {name: kept[name].take(pa.array(example)) for name in KEYS}
    for name in COUNTS:
        cells[name] = pa.array(sum_by(group, rows.count(name), len(example)))
    cells["users"] = pa.array(sum_by(group, rows.first, len(example)))
    by_cell = rows.take(order)
    for name in LISTS:
        values = pa.chunked_array([pa.array(getattr(by_cell, name))])
        narrow = values if name in ("person", "page") else narrow_numbers(values)
        cells[_name_list(name)] = pa.ListArray.from_arrays(borders, join_chunks(narrow))
    return pa.table(cells)


@dataclass(frozen=True)
class KeptRows:
    """Kept impressions one by one: their pair, user, page and position, and how many events they have.

    `first` is 1 for the rows of a day that are the first of their user on the pair.
    """

    pair: Ints
    person: Ints
    page: Ints
    position: Ints
    clicks: Ints
    carts: Ints
    purchases: Ints
    first: Ints

    @classmethod
    def of(cls, table: pa.Table | None) -> KeptRows:
        size = 0 if table is None else table.num_rows
        numbers = {name: np.zeros(size, dtype=np.int64) for name in _FIELDS}
        if table is not None:
            numbers |= {name: read_integers(table[name]) for name in _FIELDS if name != "first"}
        return cls(**numbers)

    @classmethod
    def of_cells(cls, cells: pa.Table, owner: Ints, rows: Ints) -> KeptRows:
        """Some rows of the cells; `owner` has the cell of each of these rows."""
        lists = {name: read_integers(_flatten_list(cells, name).take(pa.array(rows))) for name in LISTS}
        chosen = {name: read_integers(cells[name])[owner] for name in ("pair", "position")}
        return cls(**lists, **chosen)

    def count(self, name: str) -> Ints:
        """Per row its impressions, which is one, or its events."""
        return np.ones(len(self.pair), dtype=np.int64) if name == "impressions" else getattr(self, name)

    def take(self, rows: Ints) -> KeptRows:
        return KeptRows(**{name: getattr(self, name)[rows] for name in _FIELDS})

    @classmethod
    def join(cls, parts: Sequence[KeptRows]) -> KeptRows:
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS})


_FIELDS = tuple(field.name for field in fields(KeptRows))


def choose_rows(
    cells: pa.Table,
    borders: Ints,
    pair: Ints,
    pair_clicks: Ints,
    others: Sequence[KeptRows],
    settings: DenoiseSettings,
) -> Ints:
    """The rows of cells whose user has more rows on the pair, and those that a rule would drop alone, in order."""
    seed = np.repeat(read_integers(cells["pair"]), np.diff(borders))
    hashes = [mix_numbers(read_integers(_flatten_list(cells, "person")), seed)]
    hashes += [mix_numbers(rows.person, rows.pair) for rows in others]
    repeated = find_repeated(np.concatenate(hashes))
    clicks_of_rows = _flatten_list(cells, "clicks").to_numpy()
    clicked = np.flatnonzero(clicks_of_rows)  # few
    pair_of_clicked = pair[np.searchsorted(borders, clicked, side="right") - 1]
    dropped = clicked[_drop_alone(clicks_of_rows[clicked].astype(np.int64), pair_clicks[pair_of_clicked], settings)]
    chosen = [repeated[repeated < borders[-1]], dropped]
    unclicked = np.flatnonzero(_drop_alone(np.zeros_like(pair_clicks), pair_clicks, settings))
    if len(unclicked):  # only by a rule that drops users without clicks
        rows = np.flatnonzero(np.repeat(is_among(pair, unclicked), np.diff(borders)))
        chosen.append(rows[clicks_of_rows[rows] == 0])
    return sort_distinct(np.concatenate(chosen))


def _drop_alone(clicks: Ints, pair_clicks: Ints, settings: DenoiseSettings) -> Bools:
    """Whether the rules on pairs would drop each row if it were the only one of its user on the pair."""
    one = np.ones_like(clicks)
    return np.not_equal(combine_pair_rules(UserRows(one, one, clicks), pair_clicks, settings), 0)


def _flatten_list(cells: pa.Table, name: str) -> pa.Array:
    """The values of all lists of a column, one after the other."""
    return join_chunks(cells[_name_list(name)]).flatten()


def _name_list(name: str) -> str:
    return f"{name}_of_rows"


def read_codes(column: pa.ChunkedArray) -> Ints:
    """The numbers of the texts of a dictionary, −1 for null."""
    return read_integers(join_chunks(column).indices, null=-1)


def sum_by(group: Ints, values: Ints, size: int) -> Ints:
    """The sum of the values of each group."""
    rows = np.flatnonzero(values)  # few, of events
    return np.bincount(group[rows], weights=values[rows], minlength=size).astype(np.int64)
