"""Settings of the denoise rules. The defaults are defined here and nowhere else."""

import re

from pydantic import Field, field_validator

from schemas.section import Section


class RuleSettings(Section):
    """A rule that can be switched off."""

    enabled: bool = Field(True, description="Whether the rule is applied.")


class DuplicateEvent(RuleSettings):
    within_seconds: float = Field(2, ge=0, description="A repetition within this time is a duplicate.")


class TooManyQueries(RuleSettings):
    pages: int = Field(50, gt=0, description="Pages of one user in one day from which the day is dropped.")


class Clockwork(RuleSettings):
    pages: int = Field(10, gt=2, description="Pages in a day below which gaps are not checked.")
    variation: float = Field(0.1, gt=0, description="Coefficient of variation of the gaps below which they are even.")


class ShortDwell(RuleSettings):
    seconds: float = Field(5, ge=0, description="Shorter visits without a cart or purchase are dropped.")


class LateEvent(RuleSettings):
    click_minutes: float = Field(30, gt=0, description="Clicks later than this after their page are dropped.")
    conversion_days: float = Field(7, gt=0, description="The same for carts and purchases.")


class EverythingClicked(RuleSettings):
    results: int = Field(10, gt=1, description="Smallest page that is dropped if all of its results are clicked.")


class InternalUser(RuleSettings):
    users: tuple[str, ...] = Field((), description="User ids of staff, sellers and test accounts.")
    pattern: str = Field("", description="Regular expression (of Python) of such user ids, e.g. `^staff-`.")

    @field_validator("pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"this is no regular expression of Python: {error}") from error
        return pattern


class OneUserDominates(RuleSettings):
    share: float = Field(0.2, gt=0, lt=1, description="Largest share of a pair's clicks that one user may have.")
    clicks: int = Field(5, gt=0, description="Clicks of that user below which nothing is capped.")


class DenoiseSettings(Section):
    """The rules, in the order in which the first reason is named."""

    no_impression: RuleSettings = Field(RuleSettings(), description="Interactions with documents that were not shown.")
    duplicate_event: DuplicateEvent = Field(DuplicateEvent(), description="Events delivered twice, and double clicks.")
    repeat_click: RuleSettings = Field(RuleSettings(), description="Further clicks on the same result of a page.")
    known_bot: RuleSettings = Field(RuleSettings(), description="Crawlers, by their user agent.")
    too_many_queries: TooManyQueries = Field(
        TooManyQueries(), description="Days of a user with more searches than a person makes."
    )
    clockwork: Clockwork = Field(Clockwork(), description="Days of a user with evenly spaced pages.")
    short_dwell: ShortDwell = Field(ShortDwell(), description="Clicks with a short visit.")
    late_event: LateEvent = Field(LateEvent(), description="Events too long after their page.")
    everything_clicked: EverythingClicked = Field(EverythingClicked(), description="Pages with every result clicked.")
    internal_user: InternalUser = Field(InternalUser(), description="Staff, sellers and test accounts.")
    sponsored: RuleSettings = Field(
        RuleSettings(), description="Paid slots: left out of labels, still counted as positions."
    )
    repeated_result: RuleSettings = Field(
        RuleSettings(), description="Documents shown twice on one page: the higher place counts."
    )
    one_user_dominates: OneUserDominates = Field(OneUserDominates(), description="Pairs with most clicks by one user.")
