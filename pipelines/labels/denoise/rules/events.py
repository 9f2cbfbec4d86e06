"""Rules on single events. They drop the event and leave its impression."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.attribute import UNPLACED
from pipelines.labels.denoise.registry import rule
from pipelines.labels.denoise.settings import DuplicateEvent, LateEvent, RuleSettings, ShortDwell


def _is_click() -> Column:
    return F.col("kind") == "click"


@rule("no_impression", "event")
def no_impression(settings: RuleSettings) -> Column:
    """An interaction with a document that its page did not show; it goes to the quarantine.

    Source: a rate needs its denominator. Features: `shown`, `attribution`.
    """
    return ~F.col("shown") & ~F.col("attribution").isin(*UNPLACED)


@rule("duplicate_event", "event")
def duplicate_event(settings: DuplicateEvent) -> Column:
    """The same event again, or the same act by the same user on the same result within two seconds.

    Source: at-least-once delivery, and double clicks. The first is kept. Features: `event_id`, `previous_event_id`,
    `seconds_since_previous` within page, document and kind.
    """
    redelivered = F.col("event_id") == F.col("previous_event_id")
    return redelivered | (F.col("seconds_since_previous") <= settings.within_seconds)


@rule("repeat_click", "event")
def repeat_click(settings: RuleSettings) -> Column:
    """A further click on the same result of the same page, after a visit.

    Source: click models count whether a result was clicked, not how often (Chuklin et al. 2015, section 2).
    Features: `nth` within page, document and kind.
    """
    return _is_click() & (F.col("nth") > 1)


@rule("short_dwell", "event")
def short_dwell(settings: ShortDwell) -> Column:
    """A click with less than five seconds on the document, and no cart or purchase after it.

    Source: Kim et al. 2014, dwell time and satisfaction. The longest visit to the result counts, so that the first
    half of a double click does not drop the second. Features: `longest_dwell`, `last_conversion_at`, `ts`.
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
