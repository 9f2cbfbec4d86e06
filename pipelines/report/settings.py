"""Settings of the report. They do not affect any number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from schemas.section import Section


class ReportSettings(Section):
    """The HTML report. `report: false` is short for `report: {enabled: false}`."""

    enabled: bool = Field(True, description="Write an HTML report for each run.")
    title: str | None = Field(None, min_length=1, description="The title of the report; `Assay` where not set.")
    owner: str | None = Field(None, min_length=1, description="Who answers questions about it, e.g. a team.")
    links: dict[str, str] = Field(
        default_factory=dict,
        description="Name → address of links in the header, e.g. of the MLflow run or the Data Docs. `{date}`, `{run}` "
        "and `{docs}` (the folder of the run's Data Docs in the warehouse) are replaced.",
    )

    @field_validator("links")
    @classmethod
    def _check_addresses(cls, links: dict[str, str]) -> dict[str, str]:
        for name, address in links.items():
            if urlsplit(address).scheme not in ("", "http", "https"):
                raise ValueError(f"the link {name!r} is {address!r}, not a web address: begin it with https://")
        return links


def read_report_settings(config: Mapping[str, Any]) -> ReportSettings:
    """The settings in the configuration of a published run; earlier versions stored only whether it is written."""
    settings = config.get("report", {})
    return ReportSettings.model_validate(settings if isinstance(settings, Mapping) else {})
