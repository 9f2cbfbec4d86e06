"""The same small log in the shapes of others: pages with arrays and events with foreign names, and a UBI export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

START = 1793491200  # 2026-11-01 00:00:00 UTC
QUERIES, PAGES, RESULTS = 6, 60, 5


def list_pages() -> Iterator[dict[str, Any]]:
    """Pages of repeated queries, by users of their own; results further down are clicked less often."""
    for number in range(QUERIES * PAGES):
        query = number % QUERIES
        turn = number // QUERIES
        documents = [f"d{query}-{(place + turn) % RESULTS}" for place in range(RESULTS)]
        clicked = [place for place in range(RESULTS) if (turn * 7 + query) % (4 + 3 * place) == 0]
        yield {
            "id": f"s{number}",
            "text": f"Query  {query} ",
            "user": f"u{number % 97}",
            "millis": (START + 60 * number) * 1000,
            "documents": documents,
            "clicked": clicked,
        }


def count_clicks() -> int:
    return sum(len(page["clicked"]) for page in list_pages())


def write_arrays(folder: Path) -> None:
    """`pages.json` and `events.json`, as an application logs them."""
    pages, events = [], []
    for page in list_pages():
        hits = [{"id": document} for document in page["documents"]]
        request = {"id": page["id"], "user": page["user"]}
        pages.append({"req": request, "q": page["text"], "t": page["millis"], "hits": hits})
        events += [
            {"action": "item_click", "page": page["id"], "doc": page["documents"][place], "who": page["user"],
             "when": (page["millis"] + 5000 + place) // 1000}
            for place in page["clicked"]
        ]  # fmt: skip
    _write_lines(folder / "pages.json", pages)
    _write_lines(folder / "events.json", events)


def write_ubi(path: Path) -> None:
    """A bulk file of UBI, with positions from 0 and other events beside the clicks."""
    lines: list[dict[str, Any]] = []
    for page in list_pages():
        about = {"application": "shop", "query_id": page["id"], "client_id": page["user"], "user_id": ""}
        lines += [
            {"index": {"_index": "ubi_queries"}},
            about
            | {"user_query": page["text"], "timestamp": page["millis"], "query_response_hit_ids": page["documents"]},
        ]
        used = [("click", place) for place in page["clicked"]] + [("product_hover", 0)]
        shown = [("impression", place) for place in range(RESULTS)]
        for seconds, (action, place) in enumerate([*shown, *used], start=1):
            position, item = {"ordinal": place}, {"object_id": page["documents"][place], "object_id_field": "sku"}
            event = {"action_name": action, "timestamp": page["millis"] + 1000 * seconds}
            lines += [
                {"index": {"_index": "ubi_events"}},
                about | event | {"event_attributes": {"object": item, "position": position}},
            ]
    _write_lines(path, lines)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
