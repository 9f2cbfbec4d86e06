"""The parts of `label_days`: what a day of a log says, kept so that labels of a window read each day once."""

from schemas.inputs import DOC_ID, IMPRESSIONS, INTERACTIONS, QUERY_ID, SERP_ID, USER_ID
from schemas.outputs import QUARANTINE
from schemas.table import Column, Table

_LOG_DAY = Column("log_day", "int", "the day of the log's files, as days since 1970")
_DAY = Column("day", "int", "the day of the row by its time, as days since 1970 in UTC")
_PAGE = Column("page", "bigint", "a hash of the page")
_PERSON = Column("person", "bigint", "a hash of the user, or of the page where the user is nameless")
_BITS = Column("bits", "int", "the rules that drop the row, one bit each")
_COUNTS = tuple(
    Column(name, "bigint", f"{name} among them") for name in ("impressions", "clicks", "carts", "purchases")
)
CONTEXT = Column("context", "string", "the values of `labels.contexts`")

SHOWN = Table(
    "shown",
    "one impression that fits its contract",
    (*(c for c in IMPRESSIONS.columns if c.name not in ("session_id", "query")), CONTEXT),
)

EVENTS = Table(
    "events",
    "one interaction that fits its contract, with the page that the events of its day give it",
    (*INTERACTIONS.columns, Column("attribution", "string", "where the page comes from: `given` or a guess")),
)

VISITS = Table(
    "visits",
    "one user, page and user agent",
    (USER_ID, SERP_ID, IMPRESSIONS["user_agent"], Column("ts", "timestamp", "when the page was shown")),
)

TOUCHES = Table(
    "touches",
    "one page, and a user and day of its rows",
    (
        _LOG_DAY,
        _PAGE,
        Column("suspect", "string", "the user, or the user agent of a nameless one", nullable=True),
        _DAY,
    ),
)

SUSPECTS = Table(
    "suspects",
    "one user and day that a rule on users drops, by the visits of this day alone",
    (_LOG_DAY, Column("suspect", "string", "as in `touches`"), Column("day", "int", "−1 for every day"), _BITS),
)

CELLS = Table(
    "cells",
    "one query, document and place with impressions that no rule on users, events and pages drops",
    (
        QUERY_ID,
        DOC_ID,
        CONTEXT,
        IMPRESSIONS["position"],
        Column("history", "int", "the clicks above it that a session model conditions on"),
        IMPRESSIONS["system"],
        _DAY,
        Column("page_mark", "int", "what the impression says about its page"),
        Column(
            "rows",
            "array<struct<person:bigint,page:bigint,clicks:int,carts:int,purchases:int>>",
            "the impressions: the rules on pairs read the clicks of each user",
        ),
    ),
)

DROPS = Table(
    "drops",
    "dropped rows of a page and user",
    (_PAGE, _PERSON, _BITS, Column("row", "string", "the row for the quarantine", nullable=True), *_COUNTS),
)

REJECTED = Table("rejected", "one row that does not fit its contract", QUARANTINE.columns)

LABEL_DAY_PARTS = {table.name: table for table in (SHOWN, EVENTS, VISITS, TOUCHES, SUSPECTS, CELLS, DROPS, REJECTED)}
