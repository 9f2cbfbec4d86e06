"""Settings of the Spark session."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from schemas.section import Section


class SparkSettings(Section):
    """The Spark session."""

    master: str | None = Field(
        None, description="The Spark master; `local[*]` if neither this nor spark-submit sets one."
    )
    settings: dict[str, str] = Field(
        default_factory=dict, description="Spark settings; those passed to spark-submit take precedence."
    )

    @field_validator("settings", mode="before")
    @classmethod
    def _convert_to_text(cls, settings: Any) -> Any:
        """Spark takes text: YAML's `true` and `8` become `"true"` and `"8"`."""
        if not isinstance(settings, dict):
            return settings
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in settings.items()}
