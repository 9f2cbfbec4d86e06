"""`drop`: non-inferiority by an absolute margin."""

from pipelines.comparison.conditions.registry import Bound, ConditionKind, register_condition

register_condition(
    ConditionKind(
        key="drop",
        type=float | None,
        default=None,
        limits={"ge": 0},
        description="Largest tolerated drop below the baseline.",
        needs_baseline=True,
        describe=lambda drop: f"drop < {drop:g}",
        bound=lambda row, drop: Bound("delta", row["delta"], row["stderr"], edge=0.0 - drop),
    )
)
