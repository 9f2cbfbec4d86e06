"""The tables that Assay reads."""

from schemas.table import Column, Table

SERP_ID = Column("serp_id", "string", "the results page: one execution of one query")
QUERY_ID = Column("query_id", "string", "the query, shared by all its executions")
DOC_ID = Column("doc_id", "string", "the document")
USER_ID = Column("user_id", "string", "the user, e.g. an account or a cookie; empty where unknown", optional=True)
SYSTEM = Column("system", "string", "the ranking system")

IMPRESSIONS = Table(
    "impressions",
    "one result shown on one results page",
    (
        SERP_ID,
        QUERY_ID,
        USER_ID,
        Column("session_id", "string", "the session", optional=True),
        DOC_ID,
        Column("position", "int", "the position on the page, counted from 1", minimum=1),
        Column("ts", "timestamp", "when the page was shown"),
        Column("query", "string", "the query text", optional=True),
        Column("system", "string", "the ranker or arm that served the page", optional=True),
        Column("user_agent", "string", "the user agent of the browser", optional=True),
        Column("sponsored", "boolean", "a paid slot", optional=True),
    ),
    key=("serp_id", "position"),
    unfold={"object_ids": "position"},
)

INTERACTIONS = Table(
    "interactions",
    "one click, cart or purchase",
    (
        Column("event_id", "string", "the event"),
        Column("kind", "string", "the kind of event", choices=("click", "cart", "purchase")),
        DOC_ID,
        USER_ID,
        Column("ts", "timestamp", "when it happened"),
        Column("serp_id", "string", "the page it happened on; carts and purchases often have none", optional=True),
        Column("dwell_seconds", "double", "time spent on the document", optional=True, minimum=0),
        Column("value", "double", "value of a purchase", optional=True),
    ),
    key=("event_id",),
)

RANKINGS = Table(
    "rankings",
    "one document in the ranked list of one system for one query",
    (
        SYSTEM,
        QUERY_ID,
        DOC_ID,
        Column("rank", "int", "the rank, smallest first; takes precedence over score", optional=True, minimum=0),
        Column("score", "double", "the score, largest first; used where rank is null", optional=True),
    ),
    key=("system", "query_id", "doc_id"),
    one_of=("rank", "score"),
    unfold={"ranked_items": "rank"},
)

QUERIES = Table(
    "queries",
    "one query",
    (
        QUERY_ID,
        Column("weight", "double", "traffic weight; 1 where absent", optional=True, minimum=0),
        Column("query", "string", "the query text, shown beside its id", optional=True),
    ),
    key=("query_id",),
)

JUDGMENTS = Table(
    "judgments",
    "one human label",
    (
        QUERY_ID,
        DOC_ID,
        Column("grade", "double", "how relevant the document is; may be empty beside a chance", nullable=True),
        Column(
            "chance",
            "double",
            "the chance of a query that `assay judge` drew; its grades correct the model and are no labels",
            optional=True,
            minimum=1e-9,
            maximum=1,
        ),
        Column(
            "subtopics",
            "array<string>",
            "the subtopics of the query that the document is relevant to; text is an array of one",
            optional=True,
        ),
    ),
    key=("query_id", "doc_id"),
    one_of=("grade", "chance"),
)

DOCUMENTS = Table(
    "documents",
    "one document of the catalogue",
    (
        DOC_ID,
        Column("category", "array<string>", "the categories, for diversity; text is an array of one", optional=True),
        Column("popularity", "double", "the popularity, for novelty", optional=True, minimum=0),
        Column("title", "string", "the title, shown beside its id", optional=True),
    ),
    key=("doc_id",),
)

DECISIONS = Table(
    "decisions",
    "one routing or gating decision",
    (
        SYSTEM,
        QUERY_ID,
        Column("expert", "string", "the chosen expert", optional=True),
        Column("optimal_expert", "string", "the best expert", optional=True),
        Column("retrieved", "boolean", "whether retrieval was run", optional=True),
        Column("retrieval_needed", "boolean", "whether retrieval was needed", optional=True),
    ),
    key=("system", "query_id"),
)

OPINIONS = Table(
    "opinions",
    "what others say of one document for one query, each in a column: an LLM's grade, a text-match score, a popularity",
    (QUERY_ID, DOC_ID),
    key=("query_id", "doc_id"),
)

INPUTS = {
    table.name: table
    for table in (IMPRESSIONS, INTERACTIONS, RANKINGS, QUERIES, JUDGMENTS, OPINIONS, DOCUMENTS, DECISIONS)
}
