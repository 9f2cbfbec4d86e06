"""`superiority`: the candidate is better than the baseline."""

from pipelines.comparison.conditions.registry import Bound, ConditionKind, register_condition

register_condition(
    ConditionKind(
        key="superiority",
        type=bool,
        default=False,
        description="The candidate must be better than the baseline.",
        needs_baseline=True,
        describe=lambda _: "better than baseline",
        bound=lambda row, _: Bound("delta", row["delta"], row["stderr"], edge=0.0),
    )
)
