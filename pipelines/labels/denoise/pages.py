"""Apply the rules on events and pages: from bundles by page to kept impressions and counts of dropped rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.kinds import DAY_MICROS, IMPRESSION
from pipelines.labels.denoise.pack import read_flags, read_integers
from pipelines.labels.denoise.page_arrays import PageOutcomes, PageRows, apply_rules, sort_rows
from pipelines.labels.denoise.registry import rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History
from schemas.label_days import Kind
from udfs.ragged import Ints
from udfs.spark.bundles import BUNDLES, divide_rows, exchange, read_bundles, unpack_rows
from udfs.spark.worker import run_in_worker

COUNTED = ("impressions", "clicks", "carts", "purchases")
DROPPED = "row bigint, source bigint"  # what events in the quarantine are found by
_MIXER = np.int64(-7046029254386353131)  # 2^64 over the golden ratio
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
        lists = {name: runs[name].combine_chunks() for name in ("document", "pair", "position")}
        arrays = {n: pa.concat_arrays(c.chunks) if isinstance(c, pa.ChunkedArray) else c for n, c in lists.items()}
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
    purpose: Literal["log", "day", "window"] = "log",
) -> DataFrame:
    """Bundles of kept and dropped rows from those of places, marks and acts.

    Of a day, drops are counted by page, and its pages are listed; of the touched pages of a window, their impressions
    are listed too, to be withdrawn from what the days have of them.
    """

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        if not tables:
            return
        places = read_places(tables)
        judged = apply_page_rules(places, tables, settings, history)
        yield from _divide_kept(places, judged, buckets, Kind.REJUDGED if purpose == "window" else Kind.KEPT)
        yield from _divide_dropped(places, judged, tables.get(Kind.ACTS), buckets, by_page=purpose == "day")
        if purpose == "day":
            yield from _divide_pages(places, tables.get(Kind.ACTS), buckets)
        if purpose == "window":
            page = read_integers(places.runs["page"])[places.owner]
            withdrawn = pa.table({"pair": pa.array(places.pair), "page": pa.array(page)})
            yield divide_rows(withdrawn, places.pair, buckets, Kind.WITHDRAWN)

    return exchange(_select_pages(bundles), buckets, partitions).mapInArrow(run_in_worker(judge), BUNDLES)


def _divide_pages(places: Places, acts: pa.Table | None, buckets: int) -> Iterator[pa.RecordBatch]:
    """The pages of impressions (`shown`), and those that only have events, be it one that belongs to no page."""
    shown = pd.unique(read_integers(places.runs["page"]))
    pages = shown
    if acts is not None:
        pages = np.concatenate([shown, np.setdiff1d(read_integers(acts["page"]), shown)])
    table = pa.table({"page": pa.array(pages), "shown": pa.array(np.arange(len(pages)) < len(shown))})
    yield divide_rows(table, pages, buckets, Kind.PAGES)


def select_last_pages(bundles: DataFrame, names: DataFrame, settings: DenoiseSettings, *, buckets: int) -> DataFrame:
    """The newest page of each logged system and query that no rule drops, as rankings."""

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        if Kind.PLACES in tables:
            places = read_places(tables)
            yield from _find_newest(places, apply_page_rules(places, tables, settings, None)).to_batches()

    shown = exchange(_select_pages(bundles), buckets).mapInArrow(run_in_worker(judge), _LAST)
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


def read_names(bundles: DataFrame) -> DataFrame:
    """The query and document of each pair."""
    chosen = bundles.where(F.col("kind") == int(Kind.NAMES))
    names = unpack_rows(chosen, "pair bigint, query_id string, doc_id string")
    return names.groupBy("pair").agg(F.first("query_id").alias("query_id"), F.first("doc_id").alias("doc_id"))


def _select_pages(bundles: DataFrame) -> DataFrame:
    return bundles.where(F.col("kind").isin(int(Kind.PLACES), int(Kind.MARKS), int(Kind.ACTS)))


def read_places(tables: Mapping[int, pa.Table]) -> Places:
    """The impressions, with the rules on users and their days in `bits` of their runs."""
    runs = tables.get(Kind.PLACES)
    if runs is None:
        none = np.zeros(0, dtype=np.int64)
        return Places(pa.table({"page": pa.array([], pa.int64())}), none, none, none, none)
    places = Places.of(runs)
    marks = tables.get(Kind.MARKS)
    return places if marks is None else Places(_add_marks(places.runs, marks), *_list_fields(places))


def _list_fields(places: Places) -> tuple[Ints, Ints, Ints, Ints]:
    return places.owner, places.document, places.pair, places.position


def _add_marks(runs: pa.Table, marks: pa.Table) -> pa.Table:
    """The runs with the bits of the marks of their page, user and day."""
    keys = ["page", "suspect", "day"]
    page, bits = read_integers(runs["page"]), read_integers(runs["bits"])
    of_marks = pd.DataFrame({name: read_integers(marks[name]) for name in (*keys, "bits")})
    marked = np.flatnonzero(np.isin(page, of_marks["page"].to_numpy()) & ~read_flags(runs["nameless"]))
    chosen = runs.take(pa.array(marked))
    rows = pd.DataFrame({"page": page[marked], "suspect": read_integers(chosen["suspect"])})
    rows["day"] = read_integers(chosen["ts"]) // DAY_MICROS
    # One mark of a page, user and day can come from each task that read some of its rows; they are equal.
    merged = rows.merge(of_marks.drop_duplicates(keys), on=keys, how="left")
    bits[marked] |= merged["bits"].fillna(0).to_numpy().astype(np.int64)
    return runs.set_column(runs.schema.get_field_index("bits"), "bits", pa.array(bits.astype(np.int32)))


def apply_page_rules(
    places: Places, tables: Mapping[int, pa.Table], settings: DenoiseSettings, history: History | None
) -> JudgedPages:
    """Sort impressions and events by page and document, and apply the rules to them."""
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

    page = _number_pages(places, acts)
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
    person = np.where(nameless, hashes ^ _MIXER, suspect)
    return JudgedPages(rows, apply_rules(rows, settings, history), order, person[order], hashes[order])


def _number_pages(places: Places, acts: pa.Table | None) -> Ints:
    """The pages of impressions and events as numbers."""
    of_runs = read_integers(places.runs["page"])
    of_acts = np.zeros(0, dtype=np.int64) if acts is None else read_integers(acts["page"])
    numbers = pd.factorize(np.concatenate([of_runs, of_acts]), sort=False)[0].astype(np.int64)
    return np.concatenate([numbers[: len(of_runs)][places.owner], numbers[len(of_runs) :]])


def _divide_kept(places: Places, judged: JudgedPages, buckets: int, kind: Kind) -> Iterator[pa.RecordBatch]:
    """The kept impressions as bundles by pair."""
    chosen = np.flatnonzero(~judged.rows.is_event & (judged.outcomes.bits == 0))
    if not len(chosen):
        return
    row = judged.order[chosen]
    run = places.owner[row]
    outcomes = judged.outcomes
    columns = {
        "pair": pa.array(places.pair[row]),
        "person": pa.array(judged.person[chosen]),
        "page": pa.array(judged.page[chosen]),
        "position": pa.array(places.position[row].astype(np.int32)),
        "day": pa.array((judged.rows.ts[chosen] // DAY_MICROS).astype(np.int32)),
        **{
            name: pa.array(getattr(outcomes, name)[chosen].astype(np.int32))
            for name in ("history", "page_mark", *COUNTED[1:])
        },
        **{name: places.runs[name].take(pa.array(run)) for name in ("context", "system")},
    }
    yield divide_rows(pa.table(columns), places.pair[row], buckets, kind)


def _divide_dropped(
    places: Places, judged: JudgedPages, acts: pa.Table | None, buckets: int, *, by_page: bool
) -> Iterator[pa.RecordBatch]:
    """Counts of the dropped rows by rules and user; the quarantined events stay apart."""
    outcomes, shown = judged.outcomes, len(places.owner)
    rows = np.flatnonzero(outcomes.bits != 0)
    if not len(rows):
        return
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
    dropped = pa.concat_tables(drops)
    yield divide_rows(dropped, read_integers(dropped[keys[-1]]), buckets, Kind.DROPS)


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
