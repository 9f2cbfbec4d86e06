"""Places of days in a compact form: the same impressions, whatever the order of the log."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipelines.labels.denoise import pages
from pipelines.labels.denoise.compact_places import compact_places, expand_places, merge_runs
from pipelines.labels.denoise.pages import Places
from schemas.label_days import Kind
from udfs.spark.bundles import collect_bundles, divide_rows

LISTS = ("document", "pair", "position")


def draw_places(size: int, seed: int, *, scattered: bool) -> pa.Table:
    """Pages of three results, each page a run, or each result one of its own in no order."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for page in random.integers(-(1 << 63), (1 << 63) - 1, size).tolist():
        query = int(random.integers(5))
        documents = random.integers(-9, 9, 3).tolist()
        of_page = {
            "page": page,
            "suspect": int(random.integers(9)) - 4,
            "ts": int(random.integers(1_000)),
            "bits": int(random.integers(2)),
            "nameless": bool(random.random() < 0.2),
            "serp_id": f"s{page}",
            "query_id": None if query == 0 else f"q{query}",
            "context": "all",
            "system": None if random.random() < 0.3 else "a",
        }
        pairs = [(d << 40) + query for d in documents]
        lists = {"document": documents, "pair": pairs, "position": [1, 2, 300 if query else 3]}
        if scattered:
            rows += [of_page | {name: [lists[name][place]] for name in LISTS} for place in range(3)]
        else:
            rows.append(of_page | lists)
    if scattered:
        rows = [rows[place] for place in random.permutation(len(rows))]
    types = {"page": pa.int64(), "suspect": pa.int64(), "ts": pa.int64(), "bits": pa.int32(), "nameless": pa.bool_()}
    types |= dict.fromkeys(("serp_id", "query_id", "context", "system"), pa.string())
    types |= {"document": pa.list_(pa.int64()), "pair": pa.list_(pa.int64()), "position": pa.list_(pa.int32())}
    table = pa.Table.from_pylist(rows, schema=pa.schema(types))
    for name in ("context", "system"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].dictionary_encode())
    return table


def list_impressions(runs: pa.Table) -> list[tuple[Any, ...]]:
    """All impressions one by one, sorted."""
    places = Places.of(runs)
    of_runs = places.runs.take(pa.array(places.owner)).to_pylist()
    numbers = zip(places.document.tolist(), places.pair.tolist(), places.position.tolist(), strict=True)
    rows = [(*row.values(), *more) for row, more in zip(of_runs, numbers, strict=True)]
    return sorted(rows, key=str)


@pytest.mark.parametrize("scattered", [False, True])
def test_compact_places_have_the_same_impressions(scattered: bool) -> None:
    runs = draw_places(200, 1, scattered=scattered)
    merged = merge_runs(runs)
    bundles = divide_rows(merged, np.asarray(merged["page"].to_numpy()), 4, 7, compact_places)
    assert bundles.num_rows == 4
    packed = collect_bundles([bundles])
    assert list_impressions(packed.read(7, expand_places)) == list_impressions(runs)


def test_results_of_a_page_in_any_order_become_one_run() -> None:
    merged = merge_runs(draw_places(300, 2, scattered=True))
    assert merged.num_rows == 300
    assert list_impressions(merged) == list_impressions(draw_places(300, 2, scattered=False))


def test_runs_that_differ_stay_apart() -> None:
    runs = draw_places(50, 3, scattered=False)
    assert merge_runs(runs) is runs
    later = runs.set_column(2, "ts", pa.array(np.asarray(runs["ts"].to_numpy()) + 1))
    both = pa.concat_tables([runs, later]).unify_dictionaries()
    assert list_impressions(merge_runs(both)) == list_impressions(both)
    assert merge_runs(both).num_rows == 100


@pytest.mark.parametrize("most", [1, 40, 10_000])
def test_pages_are_judged_in_pieces_of_whole_pages(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROWS_AT_ONCE", most)
    runs = draw_places(100, 5, scattered=True)
    acts = pa.table({"page": pa.array([runs["page"][0].as_py()] * 2)})
    pieces = list(pages.divide_pages({Kind.PLACES: runs, Kind.ACTS: acts, Kind.NAMES: pa.table({"pair": [1]})}))
    assert len(pieces) == 1 if most > 300 else len(pieces) > 2
    of_pieces = [set(piece[Kind.PLACES]["page"].to_pylist()) for piece in pieces]
    assert all(of_pieces)
    assert sum(map(len, of_pieces)) == len(set().union(*of_pieces)) == 100
    assert sum(piece[Kind.PLACES].num_rows for piece in pieces) == 300
    assert sorted(piece[Kind.ACTS].num_rows for piece in pieces)[-1] == 2


def test_one_long_page_is_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROWS_AT_ONCE", 2)
    (piece,) = pages.divide_pages({Kind.PLACES: draw_places(1, 6, scattered=True)})
    assert piece[Kind.PLACES].num_rows == 3


def test_no_places_stay_none() -> None:
    none = draw_places(3, 4, scattered=False).slice(0, 0)
    assert expand_places(compact_places(merge_runs(none))).num_rows == 0
