"""The tally of packed cells is that of their single rows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.labels.denoise.cell_arrays import ADDED, KEPT, PLACE, ROW, WITHDRAWN, pack_rows, unpack_rows
from pipelines.labels.denoise.cells import _name_origin
from pipelines.labels.denoise.pair_arrays import read_numbers
from pipelines.labels.denoise.pairs import COUNTS, tally_kept
from pipelines.labels.denoise.settings import DenoiseSettings, OneUserDominates

SETTINGS = DenoiseSettings(one_user_dominates=OneUserDominates(clicks=3))
TEXTS = ("query_id", "doc_id", "context", "system")
Rows = list[dict[str, object]]


def draw_rows(size: int, seed: int) -> Rows:
    """Impressions of few pairs and fewer users, so that one user dominates some pairs."""
    random = np.random.default_rng(seed)
    rows: Rows = []
    for _ in range(size):
        query, document, day = random.integers(4), random.integers(3), int(random.integers(3))
        row: dict[str, object] = {
            "key": int(query * 3 + document) - 5,  # hashes may be negative
            "query_id": f"q{query}",
            "doc_id": f"d{document}",
            "context": random.choice(["a", "b"]),
            "position": int(random.integers(1, 4)),
            "history": 0,
            "system": "s" if random.random() < 0.5 else None,
            "day": day,
            "draw": day * 100,
            "page_mark": int(random.integers(2)),
            "person": int(random.integers(6)),
            "page": int(random.integers(size // 3)),
            "clicks": int(random.random() < 0.4),
            "carts": int(random.random() < 0.1),
            "purchases": int(random.random() < 0.05),
        }
        rows.append(row)
    return rows


def build_table(rows: Rows) -> pa.Table:
    types = {name: pa.string() if name in TEXTS else pa.int64() for name in (*PLACE, *ROW)}
    return pa.Table.from_pylist(rows, schema=pa.schema(types))


def tally_flat(rows: Rows) -> Rows:
    table = _name_origin(build_table(rows), shuffled=("s",), limit=150, learned=())
    numbers = {name: read_numbers(build_table(rows)[name]) for name in ROW} | {
        COUNTS[0]: np.ones(len(rows), dtype=np.int64)
    }
    return sort(tally_kept(table, numbers, SETTINGS))


def pack(rows: Rows, change: int, buckets: int, divided: int | None = None) -> pa.Table:
    """The rows as `cells` has them, once for each of the `divided` buckets that their pairs may be in."""
    table = build_table(rows)
    bucket = pa.array(read_numbers(table["key"]) % buckets)
    packed = pack_rows(table.append_column("bucket", bucket), buckets)
    parts = []
    for first in range(0, divided or buckets, buckets):
        child = pa.array(read_numbers(packed["bucket"]) + first, pa.int32())
        size = pa.array(np.full(packed.num_rows, divided or buckets), pa.int32())
        part = packed.set_column(0, "bucket", child).set_column(1, "buckets", size)
        parts.append(part.append_column("change", pa.array(np.full(packed.num_rows, change), pa.int32())))
    return pa.concat_tables(parts)


def tally_packed(*tables: pa.Table) -> Rows:
    kept = unpack_rows(pa.concat_tables(tables))
    numbers = kept.numbers | {COUNTS[0]: np.ones(len(kept.place), dtype=np.int64)}
    places = _name_origin(kept.places, shuffled=("s",), limit=150, learned=())
    return sort(tally_kept(places, numbers, SETTINGS, kept.place))


def sort(table: pa.Table) -> Rows:
    return sorted(table.to_pylist(), key=str)


def test_cells_give_the_tally_of_their_rows() -> None:
    rows = draw_rows(600, seed=1)
    expected = tally_flat(rows)
    assert any(row["bits"] for row in expected), "a user dominates a pair"
    assert {row["day"] for row in expected} == {0, 1, None}, "the day is kept where it is inspected"
    assert tally_packed(pack(rows[:250], KEPT, 4), pack(rows[250:], KEPT, 4)) == expected


def test_days_with_fewer_buckets_are_divided() -> None:
    rows = draw_rows(600, seed=3)
    parts = pack(rows[:250], KEPT, 2, divided=8), pack(rows[250:], KEPT, 8)
    assert parts[0].num_rows == 8
    assert tally_packed(*parts) == tally_flat(rows)
    both = pa.concat_tables(parts)
    by_bucket = [row for n in range(8) for row in tally_packed(both.filter(pc.equal(both["bucket"], n)))]
    assert sorted(by_bucket, key=str) == tally_flat(rows), "each bucket has all rows of its pairs"


def test_withdrawn_pages_count_as_they_are_added_again() -> None:
    rows = draw_rows(600, seed=2)
    touched = {row["page"] for row in rows if int(str(row["page"])) % 7 == 0}
    stale = [row | {"clicks": 1, "person": 9} if row["page"] in touched else row for row in rows]
    withdrawn = [row for row in rows if row["page"] in touched]
    added = [row for row in withdrawn if row["position"] != 2]  # the others are dropped now
    expected = tally_flat([row for row in rows if row["page"] not in touched] + added)
    parts = pack(stale[:300], KEPT, 4), pack(withdrawn, WITHDRAWN, 4), pack(stale[300:], KEPT, 4), pack(added, ADDED, 4)
    assert tally_packed(*parts) == expected
