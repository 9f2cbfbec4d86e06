"""The rules. Each reads only the features of its level, which the stage of that level has put into the row."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.denoise.registry import rule
from pipelines.denoise.settings import (
    Clockwork,
    DuplicateEvent,
    EverythingClicked,
    InternalUser,
    LateEvent,
    OneUserDominates,
    RuleSettings,
    ShortDwell,
    TooManyQueries,
)


def _is_click() -> Column:
    return F.col("kind") == "click"


@rule("no_impression", "event")
def no_impression(settings: RuleSettings) -> Column:
    """An interaction whose page and document were never shown together; it goes to the quarantine.

    Source: a rate needs its denominator. Features: `shown`, `attribution`.
    """
    return ~F.col("shown") & (F.col("attribution") != "none")


@rule("duplicate_event", "event")
def duplicate_event(settings: DuplicateEvent) -> Column:
    """The same event again, or the same act by the same person on the same result within two seconds.

    Source: at-least-once delivery, and double clicks. The first is kept. Features: `event_id`, `previous_event_id`,
    `seconds_since_previous` within user, page, document and kind.
    """
    again = F.col("event_id") == F.col("previous_event_id")
    return again | (F.col("seconds_since_previous") <= settings.within_seconds)


@rule("repeat_click", "event")
def repeat_click(settings: RuleSettings) -> Column:
    """A further click on the same result of the same page, after a visit.

    Source: click models count whether a result was clicked, not how often (Chuklin et al. 2015, section 2).
    Features: `nth` within user, page, document and kind.
    """
    return _is_click() & (F.col("nth") > 1)


@rule("known_bot", "user")
def known_bot(settings: RuleSettings) -> Column:
    """A user whose agent names a crawler.

    Source: the list of the package crawler-user-agents. Features: `crawler`.
    """
    return F.col("crawler")


@rule("too_many_queries", "user_day")
def too_many_queries(settings: TooManyQueries) -> Column:
    """A user-day with more searches than a person makes.

    Source: Buehrer et al. 2008, volume as the first sign of automated traffic. Features: `pages`.
    """
    return F.col("pages") >= settings.pages


@rule("clockwork", "user_day")
def clockwork(settings: Clockwork) -> Column:
    """A user-day whose pages come at even intervals: standard deviation of the gaps below a tenth of their mean.

    Source: Buehrer et al. 2008, periodicity. Features: `pages`, `gap_mean`, `gap_deviation`.
    """
    return (F.col("pages") >= settings.pages) & (F.col("gap_deviation") < settings.variation * F.col("gap_mean"))


@rule("short_dwell", "event")
def short_dwell(settings: ShortDwell) -> Column:
    """A click without a visit: under five seconds on the document, and no cart or purchase after it.

    Source: Kim et al. 2014, dwell time and satisfaction. The longest visit to the result counts, so that the first
    half of a double click does not sink the second. Features: `longest_dwell`, `last_conversion_at`, `ts`.
    """
    converted = F.coalesce(F.col("last_conversion_at") >= F.col("ts"), F.lit(False))
    return _is_click() & (F.col("longest_dwell") < settings.seconds) & ~converted


@rule("late_event", "event")
def late_event(settings: LateEvent) -> Column:
    """An event so long after its page that the page did not cause it.

    Source: session timeouts of half an hour; the attribution window for conversions. Features: `seconds_after_page`.
    """
    allowed = F.when(_is_click(), settings.click_minutes * 60.0).otherwise(settings.conversion_days * 86_400.0)
    return F.col("seconds_after_page") > allowed


@rule("everything_clicked", "page")
def everything_clicked(settings: EverythingClicked) -> Column:
    """A page of ten results or more with every result clicked: a prefetcher or a scraper, not a reader.

    Features: `results`, `results_clicked`.
    """
    return (F.col("results") >= settings.results) & (F.col("results_clicked") == F.col("results"))


@rule("internal_user", "result")
def internal_user(settings: InternalUser) -> Column:
    """Staff, sellers and test accounts, as configured: they search for work, not for themselves.

    Features: `user_id`.
    """
    listed = F.col("user_id").isin(*settings.users) if settings.users else F.lit(False)
    return listed | F.col("user_id").rlike(settings.pattern) if settings.pattern else listed


@rule("sponsored", "result")
def sponsored(settings: RuleSettings) -> Column:
    """A paid slot: its place was bought, so it says nothing of relevance. The results around it keep their positions.

    Features: `sponsored`.
    """
    return F.col("sponsored")


@rule("one_user_dominates", "pair")
def one_user_dominates(settings: OneUserDominates) -> Column:
    """What one user has beyond a fifth of a pair's clicks, impressions and clicks taken away together.

    Of the user's rows on the pair, a share drawn by hash is kept, so that the user's own click rate stays as it was.
    Features: `user_clicks`, `pair_clicks`, `user_rows`, `user_row` (numbered by hash).
    """
    others = F.col("pair_clicks") - F.col("user_clicks")
    allowed = F.greatest(F.floor(others * (settings.share / (1.0 - settings.share))), F.lit(1))
    dominates = (F.col("user_clicks") >= settings.clicks) & (
        F.col("user_clicks") > settings.share * F.col("pair_clicks")
    )
    return dominates & (F.col("user_row") > F.ceil(F.col("user_rows") * allowed / F.col("user_clicks")))
