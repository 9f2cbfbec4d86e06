"""What each denoise rule can be told. The defaults stand here and nowhere else."""

from pydantic import Field

from pipelines.section import Section


class RuleSettings(Section):
    """A rule that can be switched off."""

    enabled: bool = Field(True, description="whether the rule is applied")


class DuplicateEvent(RuleSettings):
    within_seconds: float = Field(2, ge=0, description="the same act again within this time is the same act")


class TooManyQueries(RuleSettings):
    pages: int = Field(50, gt=0, description="pages of one user in one day from which on the day is not a person's")


class Clockwork(RuleSettings):
    pages: int = Field(10, gt=2, description="pages in a day below which gaps are not judged")
    variation: float = Field(0.1, gt=0, description="coefficient of variation of the gaps below which they are even")


class ShortDwell(RuleSettings):
    seconds: float = Field(5, ge=0, description="a visit shorter than this, with no cart or purchase, was a mistake")


class LateEvent(RuleSettings):
    click_minutes: float = Field(30, gt=0, description="a click later than this after its page is not of that page")
    conversion_days: float = Field(7, gt=0, description="the same for carts and purchases")


class EverythingClicked(RuleSettings):
    results: int = Field(10, gt=1, description="results on a page from which on clicking all of them is not reading")


class InternalUser(RuleSettings):
    users: tuple[str, ...] = Field((), description="user ids of staff, sellers and test accounts")
    pattern: str = Field("", description="regular expression of such user ids, e.g. ^staff-; empty for none")


class OneUserDominates(RuleSettings):
    share: float = Field(0.2, gt=0, lt=1, description="largest share of a pair's clicks that one user may have")
    clicks: int = Field(5, gt=0, description="clicks of that user below which nothing is capped")


class DenoiseSettings(Section):
    """The rules, in the order in which the first reason is named."""

    no_impression: RuleSettings = Field(RuleSettings(), description="interactions with what was never shown")
    duplicate_event: DuplicateEvent = Field(DuplicateEvent(), description="events that arrived or were made twice")
    repeat_click: RuleSettings = Field(RuleSettings(), description="further clicks on the same result of a page")
    known_bot: RuleSettings = Field(RuleSettings(), description="crawlers by their user agent")
    too_many_queries: TooManyQueries = Field(TooManyQueries(), description="days with more searches than people make")
    clockwork: Clockwork = Field(Clockwork(), description="days with evenly spaced pages")
    short_dwell: ShortDwell = Field(ShortDwell(), description="clicks that were taken back at once")
    late_event: LateEvent = Field(LateEvent(), description="events too long after their page")
    everything_clicked: EverythingClicked = Field(EverythingClicked(), description="pages where all was clicked")
    internal_user: InternalUser = Field(InternalUser(), description="staff, sellers, test accounts")
    sponsored: RuleSettings = Field(RuleSettings(), description="paid slots: out of labels, still in positions")
    one_user_dominates: OneUserDominates = Field(OneUserDominates(), description="one user outweighing all others")
