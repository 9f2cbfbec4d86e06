"""The parts of `label_days`: what a day of a log says, kept so that labels of a window read each day once."""

from schemas.inputs import IMPRESSIONS, INTERACTIONS, SERP_ID, USER_ID
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
    "the impressions of a bucket of pairs that no rule on users, events and pages drops, as lists",
    (
        Column("bucket", "int", "the remainder of a hash of query and document"),
        Column("buckets", "int", "the number of buckets"),
        Column(
            "places",
            "array<struct<key:bigint,query_id:string,doc_id:string,context:string,position:int,history:int,"
            "system:string,day:int,draw:int,page_mark:int>>",
            "the distinct places of its pairs; `key` is the hash of the pair, `history` the clicks above that a "
            "session model conditions on, `draw` decides whether the day is inspected, `page_mark` is what the "
            "impression says about its page",
        ),
        Column("place", "array<int>", "the place of each impression, by its number"),
        Column("person", "array<bigint>", "its user, as in `drops`: the rules on pairs read the clicks of each"),
        Column("page", "array<bigint>", "its page"),
        *(Column(name, "array<int>", f"its {name}") for name in ("clicks", "carts", "purchases")),
    ),
)

DROPS = Table(
    "drops",
    "dropped rows of a page and user",
    (_PAGE, _PERSON, _BITS, Column("row", "string", "the row for the quarantine", nullable=True), *_COUNTS),
)

REJECTED = Table("rejected", "one row that does not fit its contract", QUARANTINE.columns)

LABEL_DAY_PARTS = {table.name: table for table in (SHOWN, EVENTS, VISITS, TOUCHES, SUSPECTS, CELLS, DROPS, REJECTED)}
