"""The names that the columns of a contract usually have elsewhere."""

from __future__ import annotations

import re

# Contract column -> the names that it usually has elsewhere, in lower case with underscores, the most telling first.
USUAL_NAMES = {
    "serp_id": (
        "serp_id",
        "page_id",
        "search_id",
        "request_id",
        "impression_id",
        "srch_id",
        "page",
        "req_id",
        "serp",
    ),
    "query_id": (
        "query_id",
        "qid",
        "query",
        "user_query",
        "search_term",
        "search_query",
        "query_text",
        "keyword",
        "keywords",
        "term",
        "q",
    ),
    "doc_id": (
        "doc_id",
        "docid",
        "document_id",
        "item_id",
        "product_id",
        "object_id",
        "corpus_id",
        "prop_id",
        "article_id",
        "sku",
        "asin",
        "id",
        "doc",
        "product",
        "item",
        "url",
    ),
    "user_id": ("user_id", "client_id", "visitor_id", "customer_id", "anonymous_id", "user", "visitor", "uid", "who"),
    "position": ("position", "pos", "rank", "ordinal", "slot"),
    "ts": (
        "ts",
        "timestamp",
        "event_time",
        "time",
        "created_at",
        "logged_at",
        "occurred_at",
        "event_timestamp",
        "datetime",
        "date_time",
        "t",
        "when",
    ),
    "kind": ("kind", "action", "action_name", "event_type", "event_name", "event", "type"),
    "event_id": ("event_id", "uuid", "id"),
    "grade": ("grade", "relevance", "label", "rating", "judgment", "rel", "score"),
    "system": ("system", "ranker", "run", "run_tag", "model", "variant", "algorithm", "arm", "random_bool"),
    "rank": ("rank", "position"),
    "score": ("score", "similarity"),
    "weight": ("weight", "frequency", "traffic"),
    "title": ("title", "name"),
    "session_id": ("session_id", "session"),
    "dwell_seconds": ("dwell_seconds", "dwell_time", "dwell"),
}


def split_words(name: str) -> str:
    """A name in lower case with underscores: `requestId`, `request-id` and `Request ID` are `request_id`."""
    return re.sub(r"[-\s]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
