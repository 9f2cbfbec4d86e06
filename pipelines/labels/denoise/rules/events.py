"""Rules on single events. They drop the event and leave its impression."""

import numpy as np

from pipelines.labels.denoise.registry import Arrays, rule
from pipelines.labels.denoise.settings import DuplicateEvent, LateEvent, RuleSettings, ShortDwell
from udfs.ragged import Bools


@rule("no_impression", "event")
def no_impression(settings: RuleSettings, event: Arrays) -> Bools:
    """An interaction with a document that its page did not show; it goes to the quarantine.

    Source: a rate needs its denominator. Arrays: `shown`, `unplaced`.
    """
    return ~event["shown"] & ~event["unplaced"]


@rule("duplicate_event", "event")
def duplicate_event(settings: DuplicateEvent, event: Arrays) -> Bools:
    """The same event again, or the same act by the same user on the same result within two seconds.

    Source: at-least-once delivery, and double clicks. The first is kept. Arrays: `redelivered`,
    `seconds_since_previous` within page, document and kind.
    """
    return event["redelivered"] | (event["seconds_since_previous"] <= settings.within_seconds)


@rule("repeat_click", "event")
def repeat_click(settings: RuleSettings, event: Arrays) -> Bools:
    """A further click on the same result of the same page, after a visit.

    Source: click models count whether a result was clicked, not how often (Chuklin et al. 2015, section 2).
    Arrays: `is_click`, `nth` within page, document and kind.
    """
    return event["is_click"] & (event["nth"] > 1)


@rule("short_dwell", "event")
def short_dwell(settings: ShortDwell, event: Arrays) -> Bools:
    """A click with less than five seconds on the document, and no cart or purchase after it.

    Source: Kim et al. 2014, dwell time and satisfaction. The longest visit to the result counts, so that the first
    half of a double click does not drop the second. Arrays: `is_click`, `longest_dwell`, `converted`.
    """
    return event["is_click"] & (event["longest_dwell"] < settings.seconds) & ~event["converted"]


@rule("late_event", "event")
def late_event(settings: LateEvent, event: Arrays) -> Bools:
    """An event so long after its page that the page did not cause it.

    Source: session timeouts of half an hour; the attribution window for conversions. Arrays: `is_click`,
    `seconds_after_page`.
    """
    allowed = np.where(event["is_click"], settings.click_minutes * 60.0, settings.conversion_days * 86_400.0)
    return event["seconds_after_page"] > allowed
