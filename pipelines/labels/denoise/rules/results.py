"""Rules on single results of a page; those of level `result` drop all events on it too."""

from pipelines.labels.denoise.columns import Texts
from pipelines.labels.denoise.registry import Arrays, Features, rule
from pipelines.labels.denoise.settings import InternalUser, RuleSettings
from udfs.ragged import Bools


@rule("internal_user", "result")
def internal_user(settings: InternalUser, result: Features) -> Bools:
    """Staff, sellers and test accounts, as configured: they search for work, not for themselves.

    Features: `user_id`.
    """
    users: Texts = result["user_id"]
    listed = users.is_among(settings.users)
    return listed | users.matches(settings.pattern) if settings.pattern else listed


@rule("sponsored", "result")
def sponsored(settings: RuleSettings, result: Arrays) -> Bools:
    """A paid slot: its position was bought and carries no relevance. The results around it keep their positions.

    Features: `sponsored`.
    """
    return result["sponsored"]


@rule("repeated_result", "impression")
def repeated_result(settings: RuleSettings, impression: Arrays) -> Bools:
    """A document again on the same page, at a lower position or at the same one.

    Source: carousels and blocks repeat documents, and a click does not say at which place. The highest place counts,
    with all events on the document; a paid slot above an organic result therefore drops both. Features: `nth_place`.
    """
    return impression["nth_place"] > 1
