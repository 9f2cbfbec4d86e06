"""The parts of `label_days`: what a day of a log says, kept so that labels of a window read each day once."""

from enum import IntEnum

from schemas.inputs import INTERACTIONS
from schemas.outputs import QUARANTINE
from schemas.table import Column, Table


class Kind(IntEnum):
    """What the rows of a bundle are, and by the hash of what they are divided."""

    PLACES = 0  # by page: runs of impressions that have all but the document in common
    NAMES = 1  # by pair: its query and document
    VISITS = 2  # by user: the pages of users
    EVENTS = 3  # by user: clicks, carts and purchases
    FREQUENT = 4  # the users with most pages of a task
    MARKS = 5  # by page: users of the page that a rule drops
    ACTS = 6  # by page: attributed events
    ATTRIBUTIONS = 7  # events by kind and by where their page comes from
    KEPT = 8  # by pair: impressions that no rule on users, events and pages drops
    DROPS = 9  # by user: counts of dropped rows
    PAGES = 10  # by page: the pages of a day
    TOUCHED = 11  # by page: pages whose outcome in a window differs from that in their day
    WITHDRAWN = 12  # by pair: impressions of such pages
    REJUDGED = 13  # by pair: those that are kept


_BUNDLE = (
    Column("bucket", "int", "which range of hashes the rows are in: those of their page, user or pair"),
    Column("buckets", "int", "the number of these ranges"),
    Column("log_day", "int", "the day of the log's files, as days since 1970"),
    Column("data", "binary", "the rows as a stream of Arrow"),
    Column("kind", "int", "what the rows are, see `schemas/label_days.py:Kind`"),
)

PACKED = Table("packed", "rows of the log, with ids as hashes: places, names of pairs, visits and events", _BUNDLE)

OUTCOMES = Table(
    "outcomes",
    "what the rules on users, events and pages make of them by this day alone: kept and dropped rows, and all pages",
    _BUNDLE,
)

DOUBTFUL = Table(
    "doubtful", "one interaction without a page, or whose page did not show its document", INTERACTIONS.columns
)

REJECTED = Table("rejected", "one row that does not fit its contract", QUARANTINE.columns)

LABEL_DAY_PARTS = {table.name: table for table in (PACKED, OUTCOMES, DOUBTFUL, REJECTED)}
PARTITIONED = {table.name: "kind" for table in (PACKED, OUTCOMES)}
