"""The tally of kept impressions: that of a slow version, and the same where pages are withdrawn and judged again."""

import datetime as dt
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipelines.labels.denoise.cells import build_cells
from pipelines.labels.denoise.pairs import Origin, find_names, list_drops, tally_rows
from pipelines.labels.denoise.settings import DenoiseSettings, OneUserDominates
from schemas.errors import DataQualityError
from schemas.label_days import Kind

SETTINGS = DenoiseSettings(one_user_dominates=OneUserDominates(clicks=3))
NO_CAP = DenoiseSettings(one_user_dominates=OneUserDominates(enabled=False))
TEXTS = ("context", "system")
Rows = list[dict[str, Any]]


def draw_rows(size: int, seed: int) -> Rows:
    """Impressions of few pairs and fewer users, so that one user dominates some pairs."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "pair": int(random.integers(12)) - 5,  # hashes may be negative
            "person": int(random.integers(6)),
            "page": int(random.integers(size // 3)),
            "position": int(random.integers(1, 4)),
            "day": int(random.integers(20_000, 20_003)),
            "history": int(random.integers(2)),
            "page_mark": int(random.integers(2)),
            "clicks": int(random.random() < 0.4),
            "carts": int(random.random() < 0.1),
            "purchases": int(random.random() < 0.05),
            "context": str(random.choice(["a", "b"])),
            "system": "s" if random.random() < 0.5 else None,
        }
        for _ in range(size)
    ]
    return list({tuple(row[name] for name in ("pair", "person", "page", "position")): row for row in rows}.values())


def build_table(rows: Rows) -> pa.Table:
    types = {name: pa.string() if name in TEXTS else pa.int64() for name in rows[0]}
    table = pa.Table.from_pylist(rows, schema=pa.schema(types))
    for name in TEXTS:
        table = table.set_column(table.schema.get_field_index(name), name, table[name].dictionary_encode())
    return table


def build_names(rows: Rows) -> pa.Table:
    """The names of all pairs, as two tasks have them."""
    pairs = sorted({row["pair"] for row in rows})
    one = pa.table({"pair": pairs, "query_id": [f"q{p % 4}" for p in pairs], "doc_id": [f"d{p}" for p in pairs]})
    return pa.concat_tables([one, one])


def tally(rows: Rows, settings: DenoiseSettings = SETTINGS, origin: Origin | None = None) -> Rows:
    tables: dict[int, pa.Table] = {Kind.KEPT: build_table(rows), Kind.NAMES: build_names(rows)}
    return sort(tally_rows(tables, settings, origin or Origin()))


def tally_window(days: list[Rows], withdrawn: Rows, again: Rows, settings: DenoiseSettings) -> Rows:
    """The tally of a window from the cells of its days."""
    rows = [row for day in days for row in day]
    tables: dict[int, pa.Table] = {Kind.NAMES: build_names(rows)}
    cells = [build_cells(build_table(day)) for day in days]
    tables[Kind.CELLS] = pa.concat_tables(cells, promote_options="permissive").unify_dictionaries()
    for kind, more in ((Kind.WITHDRAWN, withdrawn), (Kind.KEPT, again)):
        if more:
            tables[kind] = build_table(more)
    return sort(tally_rows(tables, settings, Origin()))


def sort(table: pa.Table) -> Rows:
    rows: Rows = table.to_pylist()
    return sorted(rows, key=str)


def test_rows_are_counted_by_pair_and_place() -> None:
    rows = draw_rows(600, 1)
    keys = ("pair", "context", "system", "position", "history", "page_mark", "day")
    impressions: Counter[tuple[Any, ...]] = Counter()
    clicks: Counter[tuple[Any, ...]] = Counter()
    users: dict[int, set[int]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        impressions[key] += 1
        clicks[key] += row["clicks"]
        users.setdefault(row["pair"], set()).add(row["person"])
    tallied = tally(rows, NO_CAP)
    columns = ("context", "system", "position", "history", "page_mark", "day")
    cells = {(int(row["doc_id"][1:]), *(row[name] for name in columns)): row for row in tallied}
    assert {key: row["impressions"] for key, row in cells.items()} == dict(impressions)
    assert {key: row["clicks"] for key, row in cells.items()} == dict(clicks)
    by_pair: Counter[int] = Counter()
    for key, row in cells.items():
        by_pair[key[0]] += row["users"]
        assert row["query_id"] == f"q{key[0] % 4}"
        assert row["bits"] == 0
        assert row["dropped_user"] is None
    assert by_pair == {pair: len(people) for pair, people in users.items()}


def test_what_a_rule_on_pairs_drops_is_counted_by_user() -> None:
    rows = draw_rows(600, 2)
    tallied = tally(rows)
    dropped = [row for row in tallied if row["bits"]]
    assert dropped
    assert sum(row["impressions"] for row in tallied) == len(rows)
    assert all(row["users"] == 0 and row["dropped_user"] is not None for row in dropped)
    assert all(row["dropped_user"] is None for row in tallied if not row["bits"])
    assert sum(row["clicks"] for row in tallied) == sum(row["clicks"] for row in rows)


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = draw_rows(500, 3)
    order = np.random.default_rng(4).permutation(len(rows))
    assert tally([rows[place] for place in order]) == tally(rows)


@pytest.mark.parametrize("settings", [SETTINGS, NO_CAP], ids=["capped", "not capped"])
@pytest.mark.parametrize("seed", range(3))
def test_days_add_up_to_a_window(seed: int, settings: DenoiseSettings) -> None:
    rows = draw_rows(600, seed)
    days = [[row for row in rows if row["page"] % 3 == day] for day in range(3)]
    assert tally_window(days, [], [], settings) == tally(rows, settings)


@pytest.mark.parametrize("seed", range(5))
def test_withdrawn_pages_count_as_they_are_judged_again(seed: int) -> None:
    rows = draw_rows(600, seed)
    touched = set(range(0, 200, 7))
    others = [row for row in rows if row["page"] not in touched]
    withdrawn = [row for row in rows if row["page"] in touched]
    again = [row | {"clicks": 1 - row["clicks"], "page_mark": 1} for row in withdrawn if row["position"] > 1]
    days = [[row for row in rows if row["page"] % 3 == day] for day in range(3)]
    assert tally_window(days, withdrawn, again, SETTINGS) == tally(others + again)


def test_a_rule_that_drops_single_rows_of_users_drops_those_of_days() -> None:
    rows = [row | {"person": number, "clicks": number % 3} for number, row in enumerate(draw_rows(300, 7))]
    settings = DenoiseSettings(one_user_dominates=OneUserDominates(clicks=1, share=0.01))
    days = [rows[:100], rows[100:]]
    assert tally_window(days, [], [], settings) == tally(rows, settings)


def test_a_day_is_kept_for_a_share_of_documents_and_days() -> None:
    rows = draw_rows(900, 5)
    tallied = tally(rows, NO_CAP, Origin(inspected_share=0.4))
    inspected = {(row["doc_id"], row["day"]) for row in tallied if row["day"] is not None}
    assert 0.2 < len(inspected) / len({(row["pair"], row["day"]) for row in rows}) < 0.6
    assert sum(row["impressions"] for row in tallied) == len(rows)


def test_rows_say_whether_their_system_shuffles_and_their_day_was_learned_from() -> None:
    learned = dt.date(1970, 1, 1) + dt.timedelta(days=20_001)
    rows = draw_rows(300, 6)
    tallied = tally(rows, NO_CAP, Origin(("s",), learned_days=((learned, learned),)))
    assert all(row["shuffled"] == (row["system"] == "s") for row in tallied)
    assert all(row["learned"] == (row["day"] == 20_001) for row in tallied)
    assert {row["learned"] for row in tallied} == {True, False}


def test_two_pairs_with_one_hash_are_refused() -> None:
    names = pa.table({"pair": [7, 7], "query_id": ["q", "q"], "doc_id": ["a", "b"]})
    with pytest.raises(DataQualityError, match="same 64-bit hash"):
        find_names(names, np.array([7]))


def test_drops_become_rows_of_the_tally() -> None:
    counts = {name: [2, 3, 1, 1] for name in ("impressions", "clicks", "carts", "purchases")}
    places = {name: [None, None, None, 9] for name in ("row", "source")}
    drops = pa.table({"bits": [8, 8, 2, 4], "person": [5, 6, 6, 6], **counts, **places})
    rows = list_drops(drops).to_pylist()
    assert sorted((row["bits"], row["impressions"]) for row in rows if row["impressions"]) == [(2, 1), (4, 1), (8, 5)]
    assert [(row["bits"], row["row"], row["source"]) for row in rows if row["row"] is not None] == [(4, 9, 9)]
    users = {row["bits"]: row["dropped_users"] for row in rows if row["dropped_users"]}
    assert users == {8: 1, 8 | 2 | 4: 1}, "each user once, by all of its rules"
    assert all(row["users"] == 0 and row["query_id"] is None and row["dropped_user"] is None for row in rows)
