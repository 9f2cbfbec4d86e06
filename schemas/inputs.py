"""The tables that Assay reads."""

from schemas.table import Column, Table

SERP_ID = Column("serp_id", "string", "the results page: one execution of one search")
QUERY_ID = Column("query_id", "string", "the search that people repeat, never one execution of it")
DOC_ID = Column("doc_id", "string", "the document")
USER_ID = Column("user_id", "string", "the person, or what stands for one")
SYSTEM = Column("system", "string", "the ranking system")

IMPRESSIONS = Table(
    "impressions",
    "one result shown in one results page",
    (
        SERP_ID,
        QUERY_ID,
        USER_ID,
        Column("session_id", "string", "the visit", optional=True),
        DOC_ID,
        Column("position", "int", "the slot on the page, counted from 1", minimum=1),
        Column("ts", "timestamp", "when the page was shown"),
        Column("query", "string", "the text that was searched for", optional=True),
        Column("system", "string", "the ranker or arm that served the page", optional=True),
        Column("user_agent", "string", "the browser's name for itself", optional=True),
        Column("sponsored", "boolean", "a paid slot", optional=True),
    ),
    key=("serp_id", "position"),
    unfold={"object_ids": "position"},
)

INTERACTIONS = Table(
    "interactions",
    "one thing that a person did",
    (
        Column("event_id", "string", "the event"),
        Column("kind", "string", "what was done", choices=("click", "cart", "purchase")),
        DOC_ID,
        USER_ID,
        Column("ts", "timestamp", "when it was done"),
        Column("serp_id", "string", "the page it was done on; carts and purchases often have none", optional=True),
        Column("dwell_seconds", "double", "time spent on the document", optional=True, minimum=0),
        Column("value", "double", "money, for purchases", optional=True),
    ),
    key=("event_id",),
)

RANKINGS = Table(
    "rankings",
    "one document at one place in one system's answer",
    (
        SYSTEM,
        QUERY_ID,
        DOC_ID,
        Column("rank", "int", "the place, smallest first; wins where a score is given too", optional=True, minimum=0),
        Column("score", "double", "the score, largest first; used where no rank is given", optional=True),
    ),
    key=("system", "query_id", "doc_id"),
    one_of=("rank", "score"),
    unfold={"ranked_items": "rank"},
)

QUERIES = Table(
    "queries",
    "one query",
    (QUERY_ID, Column("weight", "double", "traffic; 1 where absent", optional=True, minimum=0)),
    key=("query_id",),
)

JUDGMENTS = Table(
    "judgments",
    "one human label",
    (QUERY_ID, DOC_ID, Column("grade", "double", "how relevant the document is to the query")),
    key=("query_id", "doc_id"),
)

DOCUMENTS = Table(
    "documents",
    "one document of the catalogue",
    (
        DOC_ID,
        Column("category", "string", "its subtopic, for diversity", optional=True),
        Column("popularity", "double", "how often it is used, for novelty", optional=True, minimum=0),
    ),
    key=("doc_id",),
)

DECISIONS = Table(
    "decisions",
    "one routing or gating decision",
    (
        SYSTEM,
        QUERY_ID,
        Column("expert", "string", "the expert that was chosen", optional=True),
        Column("optimal_expert", "string", "the expert that should have been chosen", optional=True),
        Column("retrieved", "boolean", "whether retrieval was run", optional=True),
        Column("retrieval_needed", "boolean", "whether it was needed", optional=True),
    ),
    key=("system", "query_id"),
)

INPUTS = {
    table.name: table for table in (IMPRESSIONS, INTERACTIONS, RANKINGS, QUERIES, JUDGMENTS, DOCUMENTS, DECISIONS)
}
