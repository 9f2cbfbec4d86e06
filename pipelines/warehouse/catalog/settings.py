"""Settings of the output: which tables a run is published to besides its own files."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from pipelines.warehouse.catalog.registry import TABLE_FORMATS
from schemas.errors import did_you_mean
from schemas.section import Section

FILES = "parquet"  # the files of the warehouse alone
_NAMESPACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


def _require_format(name: str) -> str:
    names = (FILES, *TABLE_FORMATS)
    if name not in names:
        raise ValueError(f"unknown format {name!r}: {did_you_mean(name, names)}")
    return name


class OutputSettings(Section):
    """The tables that a run is published to."""

    format: Annotated[str, AfterValidator(_require_format)] = Field(
        FILES,
        description="`parquet`: the files of the warehouse; `delta` or `iceberg`: a copy in tables of a catalog too, "
        "each written in one transaction.",
    )
    namespace: str | None = Field(
        None,
        description="The catalog and schema of the tables, as `lake.search_quality`; needed for `delta` and `iceberg`.",
    )

    @model_validator(mode="after")
    def _check_namespace(self) -> Self:
        if (self.format == FILES) != (self.namespace is None):
            needs = f"format {self.format} has no namespace" if self.namespace else f"{self.format} needs a namespace"
            raise ValueError(f"{needs}: write both, as in {{format: iceberg, namespace: lake.search_quality}}, or none")
        if self.namespace is not None and not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError(f"namespace is {self.namespace!r}: write a catalog and a schema, as lake.search_quality")
        return self
