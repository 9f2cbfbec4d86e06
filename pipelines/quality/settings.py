"""What the checks can be told. Each declared check has its own keys, with the defaults of its declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model

from pipelines.quality.checks import checks
from pipelines.quality.registry import Check, Severity
from pipelines.section import Section

Mode = Literal["full", "fast", "off"]


class CheckSettings(Section):
    """What one check can be told."""

    severity: Severity
    threshold: float


class QualityBase(Section):
    """What all checks have in common."""

    sample_rows: int = Field(
        100_000,
        gt=0,
        description="Rows of a table whose keys and references are looked at; of a longer one, whole queries and pages "
        "are drawn by their hash.",
    )
    runs: int = Field(7, ge=1, description="Dates before this one whose live runs say what is usual.")

    def of(self, name: str) -> CheckSettings:
        """The settings of a check."""
        found: CheckSettings = getattr(self, name)
        return found


def _settings(declared: Check) -> type[CheckSettings]:
    severity = Field(declared.severity, description="What a failure does: stop the run, warn, or nothing.")
    threshold = Field(declared.threshold, ge=0, description=f"{declared.measures[0].upper()}{declared.measures[1:]}.")
    fields: dict[str, Any] = {"severity": (Severity, severity), "threshold": (float, threshold)}
    return create_model(f"Check_{declared.name}", __base__=CheckSettings, **fields)


def _all() -> type[QualityBase]:
    """The section of the configuration, made from the declarations."""
    fields: dict[str, Any] = {}
    for name, declared in checks().items():
        model: Any = _settings(declared)
        fields[name] = (model, Field(model(), description=f"{declared.reason} Of {declared.tables}."))
    return create_model("QualitySettings", __base__=QualityBase, **fields)


if TYPE_CHECKING:
    QualitySettings = QualityBase
else:
    QualitySettings = _all()
