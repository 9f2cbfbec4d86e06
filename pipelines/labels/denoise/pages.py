"""Apply the rules on events and pages: from bundles by page to kept impressions and counts of dropped rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.columns import join_chunks, read_flags, read_integers
from pipelines.labels.denoise.compact_places import compact_places, merge_runs
from pipelines.labels.denoise.hashes import MIXER, is_among, mix_numbers
from pipelines.labels.denoise.keys import divide_kind
from pipelines.labels.denoise.kinds import DAY_MICROS, IMPRESSION
from pipelines.labels.denoise.page_arrays import PageOutcomes, PageRows, apply_rules, sort_rows
from pipelines.labels.denoise.registry import rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History
from schemas.label_days import Kind
from udfs.ragged import Ints
from udfs.sorting import sort_distinct
from udfs.spark.bundles import (
    BUNDLES,
    ROWS_AT_ONCE,
    divide_rows,
    exchange,
    find_buckets,
    read_bundles,
    unpack_rows,
)
from udfs.spark.files import narrow_numbers
from udfs.spark.references import store_bundles
from udfs.spark.worker import run_in_worker

COUNTED = ("impressions", "clicks", "carts", "purchases")
DROPPED = "row bigint, source bigint"  # what events in the quarantine are found by
_LAST = "system string, query_id string, serp_id string, ts bigint, pair bigint, position int"


@dataclass(frozen=True)
class Places:
    """The impressions of whole pages: columns of runs, and per row its run and what it does not share with others."""

    runs: pa.Table
    owner: Ints  # per row, the number of its run
    document: Ints
    pair: Ints
    position: Ints

    @classmethod
    def of(cls, runs: pa.Table) -> Places:
        arrays = {name: join_chunks(runs[name]) for name in ("document", "pair", "position")}
        lengths = pc.list_value_length(arrays["pair"]).to_numpy()
        values = {name: read_integers(array.flatten()) for name, array in arrays.items()}
        return cls(runs.drop_columns(list(values)), np.repeat(np.arange(len(lengths)), lengths), **values)


@dataclass(frozen=True)
class JudgedPages:
    """Impressions and events of whole pages in the order of the rules, with their outcomes."""

    rows: PageRows
    outcomes: PageOutcomes
    order: Ints  # per row its number among the impressions, followed by the events
    person: Ints
    page: Ints  # its hash


def judge_pages(
    bundles: DataFrame,
    settings: DenoiseSettings,
    *,
    history: History | None,
    buckets: int,
    partitions: int | None = None,
    of_day: bool = False,
    folder: str | None = None,
) -> DataFrame:
    """Bundles of kept and dropped rows from those of places, marks and acts.

    Of a day, drops are counted by page, and what windows judge its pages by is returned too. Workers put bundles into
    files of the `folder`, where one is given.
    """

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        if not tables:
            return
        places = read_places(tables)
        judged = apply_page_rules(places, tables, settings, history)
        kept = list_kept(places, judged)
        if kept.num_rows:
            yield divide_kind(kept, buckets, Kind.KEPT)
        dropped = count_dropped(places, judged, tables.get(Kind.ACTS), by_page=of_day)
        if dropped.num_rows:
            yield divide_rows(dropped, read_integers(dropped["page" if of_day else "person"]), buckets, Kind.DROPS)
        if of_day:
            yield from _keep_pages(tables, buckets)

    run = run_in_worker(store_bundles(judge, folder))
    return exchange(_select_pages(bundles), buckets, partitions).mapInArrow(run, BUNDLES)


def _keep_pages(tables: Mapping[int, pa.Table], buckets: int) -> Iterator[pa.RecordBatch]:
    """The rows of a day in one bundle for each bucket, and its pages: those of impressions (`shown`) and of events."""
    if Kind.PLACES in tables:
        yield divide_kind(merge_runs(tables[Kind.PLACES]), buckets, Kind.PLACES, compact_places)
    for kind in (Kind.ACTS, Kind.MARKS):
        if kind in tables:
            yield divide_kind(tables[kind], buckets, kind)
    none = np.zeros(0, dtype=np.int64)
    shown = pd.unique(read_integers(tables[Kind.PLACES]["page"])) if Kind.PLACES in tables else none
    acted = sort_distinct(read_integers(tables[Kind.ACTS]["page"])) if Kind.ACTS in tables else none
    pages = np.concatenate([shown, acted[~is_among(acted, shown)]])
    table = pa.table({"page": pa.array(pages), "shown": pa.array(np.arange(len(pages)) < len(shown))})
    yield divide_kind(table, buckets, Kind.PAGES)


def select_last_pages(
    bundles: DataFrame,
    names: DataFrame,
    settings: DenoiseSettings,
    *,
    buckets: int,
    read: Callable[[Iterable[pa.RecordBatch]], Mapping[int, pa.Table]] = read_bundles,
) -> DataFrame:
    """The newest page of each logged system and query that no rule drops, as rankings; `read` reads its bundles."""

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for tables in divide_pages(read(batches)):
            places = read_places(tables)
            yield from _find_newest(places, apply_page_rules(places, tables, settings, None)).to_batches()

    shown = exchange(bundles, buckets).mapInArrow(run_in_worker(judge), _LAST)
    results = F.collect_list(F.struct("position", "pair")).alias("results")
    newest = F.max_by("results", F.struct("ts", "serp_id")).alias("results")
    return (
        shown.groupBy("system", "query_id", "serp_id")
        .agg(F.max("ts").alias("ts"), results)
        .groupBy("system", "query_id")
        .agg(newest)
        .select("system", "query_id", F.explode("results").alias("result"))
        .select("system", "query_id", F.col("result.pair").alias("pair"), F.col("result.position").alias("rank"))
        .join(names.select("pair", "doc_id"), on="pair", how="inner")
        .select("system", "query_id", "doc_id", "rank", F.lit(None).cast("double").alias("score"))
    )


def divide_pages(tables: Mapping[int, pa.Table]) -> Iterator[Mapping[int, pa.Table]]:
    """The rows of pages in pieces of whole pages: the rules need many times the memory of the rows."""
    if Kind.PLACES not in tables:
        return
    rows = pc.sum(pc.list_value_length(tables[Kind.PLACES]["pair"])).as_py() or 0
    pieces = rows // ROWS_AT_ONCE + 1
    of_pages = {kind: tables[kind] for kind in (Kind.PLACES, Kind.MARKS, Kind.ACTS) if kind in tables}
    piece = {kind: find_buckets(read_integers(table["page"]) << 32, pieces) for kind, table in of_pages.items()}
    for number in np.unique(piece[Kind.PLACES]):  # a piece may have none, where a page is long
        yield {kind: table.filter(pa.array(piece[kind] == number)) for kind, table in of_pages.items()}


def read_names(bundles: DataFrame) -> DataFrame:
    """The query and document of each pair."""
    chosen = bundles.where(F.col("kind") == int(Kind.NAMES))
    names = unpack_rows(chosen, "pair bigint, query_id string, doc_id string")
    return names.groupBy("pair").agg(F.first("query_id").alias("query_id"), F.first("doc_id").alias("doc_id"))


def _select_pages(bundles: DataFrame) -> DataFrame:
    return bundles.where(F.col("kind").isin(int(Kind.PLACES), int(Kind.MARKS), int(Kind.ACTS)))


def read_places(tables: Mapping[int, pa.Table], apart: str | None = None) -> Places:
    """The impressions, with the rules on users and their days in `bits` of their runs; `apart` as below."""
    runs = tables.get(Kind.PLACES)
    if runs is None or not runs.num_rows:
        none = np.zeros(0, dtype=np.int64)
        return Places(pa.table({"page": pa.array([], pa.int64())}), none, none, none, none)
    places = Places.of(runs)
    marks = tables.get(Kind.MARKS)
    return places if marks is None else Places(_add_marks(places.runs, marks, apart), *_list_fields(places))


def _list_fields(places: Places) -> tuple[Ints, Ints, Ints, Ints]:
    return places.owner, places.document, places.pair, places.position


def _add_marks(runs: pa.Table, marks: pa.Table, apart: str | None) -> pa.Table:
    """The runs with the bits of the marks of their page, user and day."""
    keys = ["page", "suspect", "day", *([] if apart is None else [apart])]
    page, bits = read_integers(runs["page"]), read_integers(runs["bits"])
    of_marks = pd.DataFrame({name: read_integers(marks[name]) for name in (*keys, "bits")})
    marked = np.flatnonzero(is_among(page, of_marks["page"].to_numpy()) & ~read_flags(runs["nameless"]))
    chosen = runs.select(["suspect", "ts", *keys[3:]]).take(pa.array(marked))
    rows = pd.DataFrame({"page": page[marked]} | {n: read_integers(chosen[n]) for n in ("suspect", *keys[3:])})
    rows["day"] = read_integers(chosen["ts"]) // DAY_MICROS
    # One mark of a page, user and day can come from each task that read some of its rows; they are equal.
    merged = rows.merge(of_marks.drop_duplicates(keys), on=keys, how="left")
    bits[marked] |= merged["bits"].fillna(0).to_numpy().astype(np.int64)
    return runs.set_column(runs.schema.get_field_index("bits"), "bits", pa.array(bits.astype(np.int32)))


def apply_page_rules(
    places: Places,
    tables: Mapping[int, pa.Table],
    settings: DenoiseSettings,
    history: History | None,
    apart: str | None = None,
) -> JudgedPages:
    """Sort impressions and events by page and document, and apply the rules to them.

    Rows of a page that differ in the column `apart` are judged as different pages.
    """
    acts, shown = tables.get(Kind.ACTS), len(places.owner)
    size = shown + (0 if acts is None else acts.num_rows)

    def join(name: str, of_acts: str | None = None) -> Ints:
        """A column of the runs, per row, followed by that of the events."""
        runs = read_integers(places.runs[name])[places.owner] if shown else np.zeros(0, dtype=np.int64)
        return runs if acts is None else np.concatenate([runs, read_integers(acts[of_acts or name])])

    def extend(values: Ints, of_acts: str | None) -> Ints:
        filled = np.zeros(size, dtype=np.int64)
        filled[:shown] = values
        if acts is not None and of_acts is not None:
            filled[shown:] = read_integers(acts[of_acts])
        return filled

    page = _number_pages(places, acts, apart)
    document, position = extend(places.document, "document"), extend(places.position, None)
    kind, ts, suspect = extend(np.full(shown, IMPRESSION), "kind"), join("ts"), join("suspect")
    order = sort_rows(page, document, kind, position, ts, (extend(places.pair, "event"), suspect))
    nameless = np.zeros(size, dtype=np.bool_)
    if shown:
        nameless[:shown] = read_flags(places.runs["nameless"])[places.owner]
    unplaced, dwell = np.zeros(size, dtype=np.bool_), np.full(size, np.nan)
    if acts is not None:
        nameless[shown:], unplaced[shown:] = read_flags(acts["nameless"]), read_flags(acts["unplaced"])
        dwell[shown:] = np.asarray(acts["dwell"].to_numpy(), dtype=np.float64)
    rows = PageRows(
        page=page[order],
        result=document[order],
        kind=kind[order],
        ts=ts[order],
        position=position[order],
        bits=join("bits")[order],
        nameless=nameless[order],
        event=extend(np.zeros(shown, dtype=np.int64), "event")[order],
        dwell=dwell[order],
        unplaced=unplaced[order],
    )
    hashes = join("page")
    person = np.where(nameless, hashes ^ MIXER, suspect)
    return JudgedPages(rows, apply_rules(rows, settings, history), order, person[order], hashes[order])


def _number_pages(places: Places, acts: pa.Table | None, apart: str | None) -> Ints:
    """The pages of impressions and events as numbers."""
    hashes = [np.zeros(0, dtype=np.int64)]
    for rows in (places.runs, acts):
        if rows is not None and rows.num_rows:
            page = read_integers(rows["page"])
            hashes.append(page if apart is None else mix_numbers(page, read_integers(rows[apart])))
    numbers = pd.factorize(np.concatenate(hashes), sort=False)[0].astype(np.int64)
    runs = places.runs.num_rows
    return np.concatenate([numbers[:runs][places.owner], numbers[runs:]])


def list_kept(places: Places, judged: JudgedPages) -> pa.Table:
    """The kept impressions one by one."""
    chosen = np.flatnonzero(~judged.rows.is_event & (judged.outcomes.bits == 0))
    row = judged.order[chosen]
    if not len(row):
        return pa.table({"pair": pa.array([], pa.int64())})
    run = pa.array(places.owner[row])
    small = {"position": places.position[row], "day": judged.rows.ts[chosen] // DAY_MICROS}
    small |= {name: getattr(judged.outcomes, name)[chosen] for name in ("history", "page_mark", *COUNTED[1:])}
    kept = {
        "pair": pa.array(places.pair[row]),
        "person": pa.array(judged.person[chosen]),
        "page": pa.array(judged.page[chosen]),
        **{name: narrow_numbers(pa.chunked_array([pa.array(values)])) for name, values in small.items()},
        **{name: places.runs[name].take(run) for name in ("context", "system")},
    }
    return pa.table(kept)


def count_dropped(places: Places, judged: JudgedPages, acts: pa.Table | None, *, by_page: bool = False) -> pa.Table:
    """Counts of the dropped rows by rules and user; the quarantined events stay apart."""
    outcomes, shown = judged.outcomes, len(places.owner)
    rows = np.flatnonzero(outcomes.bits != 0)
    table = pd.DataFrame({"bits": outcomes.bits[rows], "person": judged.person[rows]})
    table["impressions"] = ~judged.rows.is_event[rows]
    for name in COUNTED[1:]:
        table[name] = getattr(outcomes, name)[rows]
    is_quarantined = (outcomes.bits[rows] & rule_bit("no_impression")) != 0
    keys = ["bits", "person"]
    if by_page:
        table["page"] = judged.page[rows]
        keys.append("page")
    counts = table[~is_quarantined].groupby(keys, as_index=False)[list(COUNTED)].sum()
    alone = table[is_quarantined]
    if acts is not None:
        events = acts.select(["row", "source"]).take(pa.array(judged.order[rows[is_quarantined]] - shown))
        alone = alone.assign(**{name: read_integers(events[name]) for name in events.schema.names})
    schema = pa.schema([(name, pa.int64()) for name in (*keys, *COUNTED, "row", "source")])
    drops = [
        pa.Table.from_pandas(part.reindex(columns=schema.names), schema=schema, preserve_index=False)
        for part in (counts, alone)
    ]
    return pa.concat_tables(drops)


def _find_newest(places: Places, judged: JudgedPages) -> pa.Table:
    """The kept impressions of the newest page of each system and query, as far as these pages go."""
    named = places.runs["system"].is_valid().to_numpy()
    kept = ~judged.rows.is_event & (judged.outcomes.bits == 0)
    row = judged.order[kept]
    row = row[named[places.owner[row]]]
    run = places.owner[row]
    texts = {
        name: places.runs[name].cast(pa.string()).take(pa.array(run)) for name in ("system", "query_id", "serp_id")
    }
    ts = read_integers(places.runs["ts"])[run]
    pages = pd.DataFrame({name: column.to_pandas() for name, column in texts.items()} | {"ts": ts})
    pages["ts"] = pages.groupby(["system", "query_id", "serp_id"])["ts"].transform("max")
    heads = pages.drop_duplicates().sort_values(["ts", "serp_id"]).drop_duplicates(["system", "query_id"], keep="last")
    newest = pages.merge(heads.assign(newest=True), how="left")["newest"].notna().to_numpy()
    columns = texts | {
        "ts": pa.array(pages["ts"].to_numpy()),
        "pair": pa.array(places.pair[row]),
        "position": pa.array(places.position[row].astype(np.int32)),
    }
    return pa.table(columns).filter(pa.array(newest))
