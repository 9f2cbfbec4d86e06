"""Recognise user ids that name nobody: missing ones, placeholders, and an id that half of all pages share.

Rules on users step aside for them, each of their pages counts as one person, and an event without a page cannot be
attributed.
"""

import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.columns import Texts, decode_texts, read_flags, read_integers
from pipelines.labels.denoise.kinds import DRAWS, limit_draws
from schemas.label_days import Kind
from udfs.ragged import Bools, Ints
from udfs.spark.bundles import collect_bundles, exchange, unpack_rows
from udfs.spark.worker import run_in_worker

PLACEHOLDERS = ("", "anonymous", "anon", "guest", "unknown", "none", "null", "nan", "undefined", "0", "-1", "-")
SHARED_PAGES = 0.5  # an id with this share of the pages is no person
ENOUGH_PAGES = 50  # fewest pages of a log in which an id is compared with the others
_NEARLY = 0.4
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_INSPECTED = 1_000_000  # impressions; larger logs are sampled


@dataclass(frozen=True)
class SharedUser:
    """A user id that stands for many people, and its share of the pages."""

    user_id: str
    share: float


def choose_share(impressions: int | None) -> float:
    """The share of a log to inspect: all of it up to a million impressions, about a million of a larger one."""
    return min(1.0, _INSPECTED / max(impressions or 0, 1))


def hash_below(share: float, *columns: str) -> Column:
    """Whether the hash of the columns falls into a share of all hashes."""
    drawn = F.pmod(F.xxhash64(F.lit("inspect"), *columns), F.lit(DRAWS))
    return F.lit(True) if share >= 1 else drawn < limit_draws(share)


def find_shared_user(bundles: DataFrame, *, buckets: int, share: float = 1.0) -> SharedUser | None:
    """Find the id that has half of the pages or more, of at least 50 pages; runs a small Spark job.

    `share` is that of the pages to inspect, if an id may have half of them by the most frequent users of each task.
    """
    candidates = _find_candidates(bundles)
    if not candidates:
        return None
    codes = np.array(sorted(candidates), dtype=np.int64)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runs = collect_bundles(batches).read(Kind.PLACES, lambda table: table.select(["page", "suspect", "nameless"]))
        if runs is not None:
            yield _count_pages(runs, codes, share)

    places = bundles.where(F.col("kind") == int(Kind.PLACES)).select("bucket", "kind", "data")
    counts = exchange(places, buckets).mapInArrow(run_in_worker(count), "suspect bigint, pages bigint")
    pages = {row.suspect: row.pages for row in counts.groupBy("suspect").agg(F.sum("pages").alias("pages")).collect()}
    total = pages.pop(None, 0)
    if total < ENOUGH_PAGES or not pages:
        return None
    largest = max(pages, key=lambda code: (pages[code], candidates[code]))
    of_all = pages[largest] / total
    return SharedUser(candidates[largest], of_all) if of_all >= SHARED_PAGES else None


def _find_candidates(bundles: DataFrame) -> dict[int, str]:
    """The users (hash and id) that may have half of the pages; a page that several tasks read counts several times."""
    chosen = bundles.where(F.col("kind") == int(Kind.FREQUENT))
    rows = unpack_rows(chosen, "task bigint, suspect bigint, user_id string, pages bigint").collect()
    of_all = sum(row.pages for row in rows if row.suspect is None)
    listed = [row for row in rows if row.suspect is not None]
    pages = {(row.suspect, row.task): row.pages for row in listed}
    least: dict[int, int] = {}
    for row in listed:
        least[row.task] = min(row.pages, least.get(row.task, row.pages))
    most = {
        code: sum(pages.get((code, task), fewest) for task, fewest in least.items())
        for code in {row.suspect for row in listed}
    }
    names = {row.suspect: row.user_id for row in listed}
    return {code: names[code] for code, count in most.items() if count >= _NEARLY * of_all}


def _count_pages(runs: pa.Table, codes: Ints, share: float) -> pa.RecordBatch:
    """The pages of these users, and of all, of a share of the pages."""
    page, suspect = read_integers(runs["page"]), read_integers(runs["suspect"])
    nameless = read_flags(runs["nameless"])
    inspected = (page & (DRAWS - 1)) < limit_draws(share)
    pairs = pd.DataFrame({"suspect": suspect, "page": page, "nameless": nameless})[inspected].drop_duplicates()
    named = pairs.loc[~pairs["nameless"], "suspect"]
    pages = [int((named == code).sum()) for code in codes]
    columns = {"suspect": [*codes.tolist(), None], "pages": [*pages, len(pairs)]}
    return pa.RecordBatch.from_pydict(columns, schema=pa.schema([(name, pa.int64()) for name in columns]))


def find_nameless(users: Texts, shared: SharedUser | None = None) -> Bools:
    """Whether each user id names nobody: it is missing, a placeholder in any case, or that of many people."""
    longest = max(map(len, PLACEHOLDERS))
    nobody = [
        len(name := text.strip(" ")) <= longest and name.translate(_LOWER) in PLACEHOLDERS
        for text in decode_texts(users.distinct)
    ]
    nameless = users.spread(np.array(nobody, dtype=np.bool_), True)
    return nameless if shared is None else nameless | users.is_among([shared.user_id])
