"""The tally of grouped cells is that of their single rows."""

import numpy as np
import pyarrow as pa

from pipelines.labels.denoise.cells import _ADDED, _DAY, _WITHDRAWN, _tally_cells
from pipelines.labels.denoise.pairs import COUNTS, read_numbers, tally_kept
from pipelines.labels.denoise.settings import DenoiseSettings, OneUserDominates

SETTINGS = DenoiseSettings(one_user_dominates=OneUserDominates(clicks=3))
PLACE = ("query_id", "doc_id", "context", "position", "history", "system", "day", "page_mark", "shuffled", "learned")
EVENTS = ("clicks", "carts", "purchases")


def draw_rows(size: int, seed: int) -> list[dict[str, object]]:
    """Impressions of few pairs and fewer users, so that one user dominates some pairs."""
    random = np.random.default_rng(seed)
    return [
        {
            "query_id": f"q{random.integers(4)}",
            "doc_id": f"d{random.integers(3)}",
            "context": random.choice(["a", "b"]),
            "position": int(random.integers(1, 4)),
            "history": 0,
            "system": "s" if random.random() < 0.5 else None,
            "day": int(random.integers(3)),
            "page_mark": int(random.integers(2)),
            "shuffled": False,
            "learned": False,
            "person": int(random.integers(6)),
            "page": int(random.integers(size // 3)),
            "impressions": 1,
            "clicks": int(random.random() < 0.4),
            "carts": int(random.random() < 0.1),
            "purchases": int(random.random() < 0.05),
        }
        for _ in range(size)
    ]


def tally_flat(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    table = pa.Table.from_pylist([row | {"row": None} for row in rows])
    table = table.set_column(table.schema.get_field_index("row"), "row", pa.nulls(table.num_rows, pa.string()))
    numbers = {name: read_numbers(table, name) for name in ("page", "person", *COUNTS)}
    return sort(tally_kept(table, numbers, SETTINGS))


def nest(rows: list[dict[str, object]], change: int) -> list[dict[str, object]]:
    """The rows as `group_kept` and the withdrawal have them."""
    cells: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for row in rows:
        key = tuple(row[name] if change != _WITHDRAWN or name in PLACE[:2] else None for name in PLACE)
        cells.setdefault(key, []).append({name: row[name] for name in ("person", "page", *EVENTS)})
    return [dict(zip(PLACE, key, strict=True)) | {"rows": inner, "change": change} for key, inner in cells.items()]


def tally_nested(*cells: list[dict[str, object]]) -> list[dict[str, object]]:
    table = pa.Table.from_pylist([cell for part in cells for cell in part])
    return sort(_tally_cells(table.append_column("row", pa.nulls(table.num_rows, pa.string())), SETTINGS))


def sort(table: pa.Table) -> list[dict[str, object]]:
    return sorted(table.to_pylist(), key=str)


def test_cells_give_the_tally_of_their_rows() -> None:
    rows = draw_rows(600, seed=1)
    expected = tally_flat(rows)
    assert any(row["bits"] for row in expected), "a user dominates a pair"
    assert tally_nested(nest(rows[:250], _DAY), nest(rows[250:], _DAY)) == expected


def test_withdrawn_pages_count_as_they_are_added_again() -> None:
    rows = draw_rows(600, seed=2)
    touched = {row["page"] for row in rows if int(str(row["page"])) % 7 == 0}
    stale = [row | {"clicks": 1, "person": 9} if row["page"] in touched else row for row in rows]
    withdrawn = [row for row in rows if row["page"] in touched]
    added = [row for row in withdrawn if row["position"] != 2]  # the others are dropped now
    expected = tally_flat([row for row in rows if row["page"] not in touched] + added)
    parts = nest(stale[:300], _DAY), nest(withdrawn, _WITHDRAWN), nest(stale[300:], _DAY), nest(added, _ADDED)
    assert tally_nested(*parts) == expected
