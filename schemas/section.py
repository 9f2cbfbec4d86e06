"""The base class of every section of the configuration."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Section(BaseModel):
    """A section of the configuration: frozen, without unknown keys, and with finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Names:
    """Annotation of a text that names an entry of a registry: lists the names for the reference page, on demand."""

    load: Callable[[], Iterable[str]]


def _require_text(place: str) -> str:
    if not place.strip():
        raise ValueError("the path is empty")
    if "\0" in place:
        raise ValueError("the path contains a null character")
    return place


Place = Annotated[str, AfterValidator(_require_text)]  # a path, a URI or a table; an empty path is the current folder
