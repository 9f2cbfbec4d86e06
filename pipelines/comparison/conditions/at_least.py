"""`at_least`: an absolute target for the mean itself."""

from pipelines.comparison.conditions.registry import Bound, ConditionKind, register_condition

register_condition(
    ConditionKind(
        key="at_least",
        type=float | None,
        default=None,
        description="The mean itself must reach this, whatever the baseline.",
        needs_baseline=False,
        describe=lambda target: f"≥ {target:g}",
        bound=lambda row, target: Bound("mean", row["macro"], row["stderr"], edge=target),
    )
)
