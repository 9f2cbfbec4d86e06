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
    FLAGS = 5  # by user: users and their days that a rule drops
    MARKS = 6  # by page: users of the page that a rule drops
    ACTS = 7  # by page: attributed events
    ATTRIBUTIONS = 8  # events by kind and by where their page comes from
    DROPS = 9  # by page: counts of dropped rows
    PAGES = 10  # by page: the pages of a day
    KEPT = 11  # by pair: impressions that no rule on users, events and pages drops
    CELLS = 12  # by pair: the same, counted by place, with the users and pages of the rows as lists
    TOUCHED = 13  # by page: pages whose outcome in a window may differ from that in their day
    MOVED = 14  # by page: events that a window attributes or judges otherwise, to be removed
    WITHDRAWN = 15  # by pair: impressions that the days of touched pages keep


_BUNDLE = (
    Column("bucket", "int", "which range of hashes the rows are in: those of their page, user or pair"),
    Column("buckets", "int", "the number of these ranges"),
    Column("log_day", "int", "the day of the log's files, as days since 1970"),
    Column("data", "binary", "the rows as a stream of Arrow"),
    Column("kind", "int", "what the rows are, see `schemas/label_days.py:Kind`"),
)

BY_USER = Table("by_user", "rows of the log by user: visits, events, and what the rules on users say", _BUNDLE)

BY_PAGE = Table("by_page", "rows of the log by page: impressions, attributed events, and dropped rows", _BUNDLE)

BY_PAIR = Table("by_pair", "kept impressions by query and document, counted by place", _BUNDLE)

DOUBTFUL = Table(
    "doubtful", "one interaction without a page, or whose page did not show its document", INTERACTIONS.columns
)

REJECTED = Table("rejected", "one row that does not fit its contract", QUARANTINE.columns)

LABEL_DAY_PARTS = {table.name: table for table in (BY_USER, BY_PAGE, BY_PAIR, DOUBTFUL, REJECTED)}
BUNDLED = (BY_USER.name, BY_PAGE.name, BY_PAIR.name)  # parts with a folder for each kind of their rows
