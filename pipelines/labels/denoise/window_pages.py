"""What a window changes about the pages of its days: their outcomes in their days are withdrawn, and computed again.

The outcome of a page depends on its own rows and on the users in them. It is the same in the window and in its day
unless the page has rows in the files of several days, one of its events belongs to another page in the window, or the
window drops one of its users for another reason. These pages are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame

from pipelines.labels.denoise.columns import read_integers
from pipelines.labels.denoise.compact_places import expand_places
from pipelines.labels.denoise.hashes import find_repeated, is_among_sorted
from pipelines.labels.denoise.keys import divide_kind
from pipelines.labels.denoise.kinds import LOG_DAY
from pipelines.labels.denoise.pages import COUNTED, apply_page_rules, count_dropped, list_kept, read_places
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.window_users import FILE_DAY
from pipelines.labels.history import History
from schemas.label_days import Kind
from udfs.ragged import Ints
from udfs.sorting import sort_distinct
from udfs.spark.bundles import BUNDLES, UNLABELLED, PackedBundles, collect_bundles, divide_rows, exchange
from udfs.spark.worker import run_in_worker

_JUDGED = (Kind.PLACES, Kind.ACTS, Kind.MARKS, Kind.MOVED)
_MARKED = ["page", "suspect", "day"]  # what a mark is for

Tables = Mapping[int, pa.Table]


def rejudge_pages(
    bundles: DataFrame, settings: DenoiseSettings, *, history: History | None, buckets: int, tasks: int
) -> DataFrame:
    """Bundles of withdrawn, kept and dropped rows, from those of pages of days and what `correct_users` changes.

    `WITHDRAWN` and `KEPT` have rows of touched pages only, `DROPS` those of all pages.
    """

    def rejudge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packed = collect_bundles(batches, LOG_DAY)
        touched = find_touched_pages(packed)
        of_touched = _read_pages(packed, touched)
        of_days: Tables = {kind: _select_labelled(table) for kind, table in of_touched.items()}
        places = read_places(of_days, apart=LOG_DAY)
        withdrawn = list_kept(places, apply_page_rules(places, of_days, settings, history, apart=LOG_DAY))
        if withdrawn.num_rows:
            yield divide_kind(withdrawn, buckets, Kind.WITHDRAWN)
        of_window = correct_tables(of_touched)
        places = read_places(of_window)
        judged = apply_page_rules(places, of_window, settings, history)
        kept = list_kept(places, judged)
        if kept.num_rows:
            yield divide_kind(kept, buckets, Kind.KEPT)
        dropped = [count_dropped(places, judged, of_window.get(Kind.ACTS))]
        untouched = packed.read(Kind.DROPS, lambda table: _select_pages(table, touched, among=False))
        if untouched is not None:
            dropped.append(untouched)
        drops = _add_counts(dropped)
        yield divide_rows(drops, read_integers(drops["person"]), buckets, Kind.DROPS)

    return exchange(bundles, buckets, tasks).mapInArrow(run_in_worker(rejudge), BUNDLES)


def read_corrected(batches: Iterable[pa.RecordBatch]) -> Tables:
    """The rows of pages as a window has them, from those of its days and what `correct_users` changes."""
    return correct_tables(_read_pages(collect_bundles(batches, LOG_DAY)))


def _read_pages(packed: PackedBundles, pages: Ints | None = None) -> Tables:
    """What pages are judged by, of all pages or of some; the places of days are in a compact form."""

    def expand(table: pa.Table) -> pa.Table:
        return expand_places(table if pages is None else _select_pages(table, pages))

    tables = {int(kind): packed.read(kind, expand if kind == Kind.PLACES else None) for kind in _JUDGED}
    return {
        kind: table if pages is None or kind == Kind.PLACES else _select_pages(table, pages)
        for kind, table in tables.items()
        if table is not None
    }


def find_touched_pages(packed: PackedBundles) -> Ints:
    """The pages that users and events touch, and those with rows in the files of several days."""
    touched = [np.zeros(0, dtype=np.int64)]
    if (table := packed.read(Kind.TOUCHED)) is not None:
        touched.append(read_integers(table["page"]))
    if (table := packed.read(Kind.PAGES)) is not None:  # each once per day
        pages = read_integers(table["page"])
        touched.append(pages[find_repeated(pages)])
    return sort_distinct(np.concatenate(touched))


def correct_tables(tables: Tables) -> Tables:
    """The places, acts and marks of pages as a window has them; corrections are those without a day of files."""
    corrected = dict(tables)
    if Kind.ACTS in tables:
        acts = tables[Kind.ACTS]
        if Kind.MOVED in tables:
            moved = tables[Kind.MOVED].select(["row", FILE_DAY]).rename_columns(["row", LOG_DAY])
            acts = _remove_rows(acts, moved, ["row", LOG_DAY])
        corrected[Kind.ACTS] = acts
    if Kind.MARKS in tables:
        marks = tables[Kind.MARKS]
        of_window = pa.array(read_integers(marks[LOG_DAY]) == UNLABELLED)
        instead = marks.filter(of_window)
        others = _remove_rows(_select_labelled(marks), instead, _MARKED)
        corrected[Kind.MARKS] = pa.concat_tables([others, instead], promote_options="permissive")
    return corrected


def _remove_rows(table: pa.Table, removed: pa.Table, keys: list[str]) -> pa.Table:
    """The rows whose keys are not among those of other rows."""
    rows, others = (pd.DataFrame({name: read_integers(part[name]) for name in keys}) for part in (table, removed))
    matched = rows.merge(others.drop_duplicates().assign(matched=True), on=keys, how="left")["matched"]
    return table.filter(pa.array(matched.isna().to_numpy()))


def _select_pages(table: pa.Table, pages: Ints, *, among: bool = True) -> pa.Table:
    """The rows of these pages, which are in order, or of all others."""
    return table.filter(pa.array(is_among_sorted(read_integers(table["page"]), pages) == among))


def _select_labelled(table: pa.Table) -> pa.Table:
    """The rows of days, without corrections."""
    return table.filter(pa.array(read_integers(table[LOG_DAY]) != UNLABELLED))


def _add_counts(drops: list[pa.Table]) -> pa.Table:
    """Counts by rules and user, whatever their pages, and the quarantined events as they are."""
    names = ["bits", "person", *COUNTED, "row", "source"]
    joined = pa.concat_tables([part.select(names) for part in drops])
    counted = joined["row"].is_null()
    counts = joined.filter(counted).group_by(["bits", "person"]).aggregate([(name, "sum") for name in COUNTED])
    counts = counts.rename_columns({f"{name}_sum": name for name in COUNTED})
    nothing = {name: pa.nulls(counts.num_rows, pa.int64()) for name in ("row", "source")}
    for name, nulls in nothing.items():
        counts = counts.append_column(name, nulls)
    return pa.concat_tables([counts.select(names), joined.filter(joined["row"].is_valid())])
