"""The outcomes of the rules on users, events and pages, row by row, with ids as texts again."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame

from pipelines.inputs.log_rows import LogRows
from pipelines.labels.build import pack_log
from pipelines.labels.denoise.pages import apply_page_rules, read_places
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.user_arrays import ATTRIBUTIONS, attribute_events
from pipelines.labels.denoise.users import judge_users, read_events
from pipelines.labels.settings import LabelSettings
from schemas.inputs import IMPRESSIONS, INTERACTIONS
from schemas.label_days import Kind
from schemas.table import Column
from udfs.ragged import Ints
from udfs.spark.bundles import read_bundles
from udfs.xxhash import hash_like_spark

KINDS = np.array(["impression", "click", "cart", "purchase"])
WINDOW_DAYS = 7
FIELDS = "serp_id string, doc_id string, kind string, position int, bits int, clicks int, carts int, purchases int"


def judge_rows(impressions: DataFrame, interactions: DataFrame, settings: DenoiseSettings) -> DataFrame:
    """Every impression, with the events that count, and every dropped event, with their rules in `bits`.

    The page of an event that belongs to none is `unattributed/` and its id.
    """
    packed = pack_log(*read_log(impressions, interactions), LabelSettings(denoise=settings), None, buckets=1)
    judged = judge_users(packed, settings, window_days=WINDOW_DAYS, buckets=1)
    tables = {kind: rows for bundles in (packed, judged) for kind, rows in read_bundles(_collect(bundles)).items()}
    places = read_places(tables)
    outcomes = apply_page_rules(places, tables, settings, None)
    events = [f"unattributed/{event}" for event in _list_texts(interactions, "event_id")]
    serps = _list_texts(impressions, "serp_id") | _list_texts(interactions, "serp_id") | set(events)
    documents = _list_texts(impressions, "doc_id") | _list_texts(interactions, "doc_id")
    rows = outcomes.rows
    table = pd.DataFrame(
        {
            "serp_id": name_hashes(outcomes.page, serps),
            "doc_id": name_hashes(rows.result, documents),
            "kind": KINDS[rows.kind],
            "position": pd.Series(rows.position).astype(object).where(~rows.is_event, None),
            **{name: getattr(outcomes.outcomes, name) for name in ("bits", "clicks", "carts", "purchases")},
        }
    )
    dropped = table[~rows.is_event | (outcomes.outcomes.bits != 0)]
    return impressions.sparkSession.createDataFrame(dropped, FIELDS)


def attribute_log(interactions: DataFrame) -> dict[str, tuple[str | None, str]]:
    """Per event its page and where that comes from; no page where it belongs to none."""
    impressions = interactions.sparkSession.createDataFrame([], IMPRESSION_FIELDS)
    packed = pack_log(*read_log(impressions, interactions), LabelSettings(), None, buckets=1)
    events = read_events(read_bundles(_collect(packed))[Kind.EVENTS])
    attribution = attribute_events(events, WINDOW_DAYS)
    names = name_hashes(events.event, _list_texts(interactions, "event_id"))
    pages = name_hashes(events.page[attribution.source], _list_texts(interactions, "serp_id"))
    origins = [ATTRIBUTIONS[origin] for origin in attribution.origin]
    return {
        str(name): (page if origin not in ("none", "no_user") else None, origin)
        for name, page, origin in zip(names, pages, origins, strict=True)
    }


IMPRESSION_FIELDS = (
    "serp_id string, query_id string, user_id string, session_id string, doc_id string, position int, ts timestamp, "
    "query string, system string, user_agent string, sponsored boolean"
)


def name_hashes(hashes: Ints, texts: Iterable[str]) -> list[str | None]:
    """The text of each hash; None where it is of none of these."""
    ordered = sorted(texts)
    names = dict(zip(hash_like_spark(pa.array(ordered, pa.large_string())).tolist(), ordered, strict=True))
    return [names.get(code) for code in hashes.tolist()]


def read_log(impressions: DataFrame, interactions: DataFrame) -> tuple[LogRows, LogRows]:
    """The tables of a log; further columns of impressions are contexts."""
    contexts = [Column(name, "string", "a context", optional=True) for name in impressions.columns]
    return LogRows(impressions, IMPRESSIONS.add_columns(contexts)), LogRows(interactions, INTERACTIONS)


def _collect(bundles: DataFrame) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = bundles.toArrow().to_batches()
    return batches


def _list_texts(table: DataFrame, name: str) -> set[str]:
    return {row[0] for row in table.select(name).distinct().collect() if row[0] is not None}
