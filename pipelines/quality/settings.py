"""Settings of the checks: each declared check has its own keys, with the defaults of its declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model

from pipelines.quality.registry import CHECKS, Check, Severity
from schemas.section import Section

Mode = Literal["full", "fast", "off"]


class CheckSettings(Section):
    """Settings of one check."""

    severity: Severity
    threshold: float


class QualityBase(Section):
    """Settings of all checks."""

    sample_rows: int = Field(
        100_000,
        gt=0,
        description="Rows of a table whose keys and references are checked; a longer table is sampled by whole queries "
        "and pages.",
    )
    runs: int = Field(7, ge=1, description="Earlier dates whose live runs this one is compared with.")

    def for_check(self, name: str) -> CheckSettings:
        """The settings of a check."""
        settings: CheckSettings = getattr(self, name)
        return settings


def _build_check_settings(declared: Check) -> type[CheckSettings]:
    severity = Field(declared.severity, description="What a failure does: stop the run, warn, or nothing.")
    threshold = Field(declared.threshold, ge=0, description=f"{declared.measures[0].upper()}{declared.measures[1:]}.")
    fields: dict[str, Any] = {"severity": (Severity, severity), "threshold": (float, threshold)}
    return create_model(f"Check_{declared.name}", __base__=CheckSettings, **fields)


def _build_quality_settings() -> type[QualityBase]:
    """The section of the configuration, built from the declared checks."""
    fields: dict[str, Any] = {}
    for name, declared in CHECKS.items():
        model: Any = _build_check_settings(declared)
        fields[name] = (model, Field(model(), description=f"{declared.reason} Checks {declared.tables}."))
    return create_model("QualitySettings", __base__=QualityBase, **fields)


if TYPE_CHECKING:
    QualitySettings = QualityBase
else:
    QualitySettings = _build_quality_settings()
