"""`relative_drop`: non-inferiority by a share of the baseline's mean."""

from pipelines.comparison.conditions.registry import Bound, ConditionKind, register_condition

register_condition(
    ConditionKind(
        key="relative_drop",
        type=float | None,
        default=None,
        limits={"ge": 0, "lt": 1},
        description="The same as a share of the baseline's mean.",
        needs_baseline=True,
        describe=lambda drop: f"drop < {drop:.3g} of baseline",
        bound=lambda row, drop: Bound("relative change", row["relative"], row["relative_stderr"], edge=0.0 - drop),
    )
)
