"""Every rule drops what it should and keeps what it should."""

from datetime import datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.labels.denoise.registry import RULES, name_first_rule, rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings, InternalUser
from tests.helpers.outcomes import attribute_log, judge_rows

T0 = datetime(2026, 1, 5, 12)
BROWSER = "Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36"
CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


class LogBuilder:
    """A log written by hand."""

    def __init__(self) -> None:
        self.shown: list[tuple[object, ...]] = []
        self.done: list[tuple[object, ...]] = []

    def page(
        self, serp: str, user: str | None, docs: str, *, at: float = 0, agent: str = BROWSER, paid: str = ""
    ) -> None:
        ts = T0 + timedelta(seconds=at)
        self.shown += [(serp, "q", user, doc, k, ts, agent, doc in paid) for k, doc in enumerate(docs, 1)]

    def event(
        self,
        name: str,
        kind: str,
        user: str | None,
        doc: str,
        at: float,
        serp: str | None = None,
        dwell: float | None = None,
    ) -> None:
        seconds = None if dwell is None else float(dwell)
        self.done.append((name, kind, doc, user, T0 + timedelta(seconds=at), serp, seconds))

    def tables(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        shown = "serp_id string, query_id string, user_id string, doc_id string, position int, ts timestamp, " \
                "user_agent string, sponsored boolean"  # fmt: skip
        done = "event_id string, kind string, doc_id string, user_id string, ts timestamp, serp_id string, " \
               "dwell_seconds double"  # fmt: skip
        return spark.createDataFrame(self.shown, shown), spark.createDataFrame(self.done, done)


def apply_rules(spark: SparkSession, log: LogBuilder, settings: DenoiseSettings) -> DataFrame:
    return judge_rows(*log.tables(spark), settings)


def build_log() -> LogBuilder:
    log = LogBuilder()
    log.page("ok", "ann", "abc", paid="b")
    log.event("c1", "click", "ann", "a", 10, "ok", 60)
    log.event("c1", "click", "ann", "a", 10, "ok", 60)  # delivered twice
    log.event("c2", "click", "ann", "a", 11, "ok", 60)  # a double click
    log.event("c3", "click", "ann", "a", 200, "ok", 60)  # back again
    log.event("c4", "click", "ann", "c", 20, "ok", 1)  # an accident
    log.event("c5", "click", "ann", "b", 30, "ok", 60)  # an advertisement
    log.event("ghost", "click", "ann", "z", 40, "ok", 60)
    log.page("slow", "bob", "ab", at=100)
    log.event("late", "click", "bob", "a", 100 + 31 * 60, "slow", 60)
    log.event("short", "click", "bob", "b", 110, "slow", 2)  # short, but it was bought
    log.event("bought", "purchase", "bob", "b", 90_000, None)
    log.event("stray", "cart", "bob", "x", 120, None)
    log.page("bot", "spider", "ab", agent=CRAWLER)
    log.event("bc", "click", "spider", "a", 5, "bot", 60)
    log.page("all", "cat", "abcdefghij")
    for place, doc in enumerate("abcdefghij"):
        log.event(f"all{doc}", "click", "cat", doc, 10 + place, "all", 60)
    log.page("desk", "staff-1", "ab")
    for nth in range(12):
        log.page(f"tick{nth}", "robot", "ab", at=nth * 30)
    for nth in range(50):
        log.page(f"many{nth}", "busy", "a", at=nth**2 * 7)
    log.page("twice", "dan", "abca")  # a carousel repeats the first document
    log.event("t1", "click", "dan", "a", 10, "twice", 60)
    log.page("ad", "dan", "aba", paid="a", at=300)
    log.event("t2", "click", "dan", "a", 310, "ad", 60)
    log.page("web bot", "anonymous", "ab", agent=CRAWLER)
    log.page("web", None, "ab")
    log.event("w1", "click", "", "a", 10, "web", 60)
    log.event("w2", "purchase", "", "a", 20)
    return log


@pytest.fixture(scope="module")
def fates(spark: SparkSession) -> dict[tuple[str, str], str]:
    rows = apply_rules(spark, build_log(), DenoiseSettings(internal_user=InternalUser(pattern="^staff-")))
    outcomes = rows.select(
        "serp_id", "doc_id", "kind", name_first_rule(F.col("bits")).alias("reason"), "clicks", "purchases"
    ).where("NOT (serp_id IN ('twice', 'ad') AND position > 1)")
    return {
        (row.serp_id, f"{row.kind} {row.doc_id}"): f"{row.reason} {row.clicks} {row.purchases}"
        for row in outcomes.collect()
    }


@pytest.mark.parametrize(
    ("serp", "row", "fate"),
    [
        ("ok", "impression a", "None 1 0"),  # three clicks on it count once
        ("ok", "impression c", "None 0 0"),  # the short click is gone, the impression stays
        ("ok", "click c", "short_dwell 1 0"),
        ("ok", "impression b", "sponsored 0 0"),
        ("ok", "click b", "sponsored 1 0"),
        ("ok", "click z", "no_impression 1 0"),
        ("slow", "impression a", "None 0 0"),
        ("slow", "click a", "late_event 1 0"),
        ("slow", "impression b", "None 1 1"),  # a short visit that led to a purchase counts
        ("unattributed/stray", "cart x", "unattributed 0 0"),
        ("bot", "impression a", "known_bot 0 0"),
        ("bot", "click a", "known_bot 1 0"),
        ("all", "impression j", "everything_clicked 0 0"),
        ("all", "click j", "everything_clicked 1 0"),
        ("desk", "impression a", "internal_user 0 0"),
        ("tick3", "impression b", "clockwork 0 0"),
        ("many3", "impression a", "too_many_queries 0 0"),
        ("twice", "impression a", "None 1 0"),  # at position 1; position 4 is below
        ("web bot", "impression a", "known_bot 0 0"),  # an anonymous crawler does not drop all anonymous users
        ("web", "impression a", "None 1 0"),
        ("unattributed/w2", "purchase a", "unattributed 0 1"),
    ],
)
def test_a_row_is_kept_or_dropped_by_a_rule(fates: dict[tuple[str, str], str], serp: str, row: str, fate: str) -> None:
    assert fates[serp, row] == fate


def test_duplicates_and_repeats_are_distinguished(spark: SparkSession) -> None:
    rows = apply_rules(spark, build_log(), DenoiseSettings()).where(
        "serp_id = 'ok' AND doc_id = 'a' AND kind = 'click'"
    )
    reasons = sorted(row.reason for row in rows.select(name_first_rule(F.col("bits")).alias("reason")).collect())
    assert reasons == ["duplicate_event", "duplicate_event", "repeat_click"]


def test_of_a_document_twice_on_a_page_the_higher_place_counts(spark: SparkSession) -> None:
    for rule_settings, lower in (({}, "repeated_result 0"), ({"enabled": False}, "None 0")):
        settings = DenoiseSettings(repeated_result=rule_settings)
        rows = apply_rules(spark, build_log(), settings).where("serp_id IN ('twice', 'ad') AND doc_id = 'a'")
        reasons = rows.select("*", name_first_rule(F.col("bits")).alias("reason")).collect()
        fates = {(row.serp_id, row.kind, row.position): f"{row.reason} {row.clicks}" for row in reasons}
        assert fates == {
            ("twice", "impression", 1): "None 1",  # the click counts once, also where both places are kept
            ("twice", "impression", 4): lower,
            ("ad", "impression", 1): "sponsored 0",
            ("ad", "impression", 3): "sponsored 0",  # whether the click was paid for is not known
            ("ad", "click", None): "sponsored 1",
        }


def test_a_rule_can_be_switched_off_and_tuned(spark: SparkSession) -> None:
    settings = DenoiseSettings(
        internal_user=InternalUser(users=("ann",)), known_bot={"enabled": False}
    )  # fmt: skip
    rows = apply_rules(spark, build_log(), settings).where("kind = 'impression'")
    bits = {row.serp_id: row.bits for row in rows.where("doc_id = 'a'").collect()}
    assert bits["bot"] == bits["desk"] == 0
    assert bits["ok"] == rule_bit("internal_user")


def test_every_rule_has_a_description_and_settings() -> None:
    assert set(RULES) == set(DenoiseSettings.model_fields)
    assert all(rule.condition.__doc__ for rule in RULES.values())


def test_a_purchase_goes_to_the_latest_click_within_the_window(spark: SparkSession) -> None:
    day = 86_400
    log = LogBuilder()
    for serp, at in (("p1", 0), ("p2", day), ("p3", 30 * day)):
        log.page(serp, "ann", "a", at=at)
        log.event(f"c{serp}", "click", "ann", "a", at + 5, serp, 60)
    log.event("both", "purchase", "ann", "a", 2 * day)
    log.event("too late", "purchase", "ann", "a", 9 * day)
    log.event("one", "cart", "ann", "a", 31 * day)
    log.event("other user", "cart", "bob", "a", 31 * day)
    log.event("logged", "cart", "ann", "a", 31 * day, "p1")
    _, done = log.tables(spark)
    events = {row.event_id: row.kind for row in done.collect()}
    attributions = {event: page for event, page in attribute_log(done).items() if events[event] != "click"}
    assert attributions == {
        "both": ("p2", "ambiguous"),
        "too late": (None, "none"),
        "one": ("p3", "click"),
        "other user": (None, "none"),
        "logged": ("p1", "given"),
    }
