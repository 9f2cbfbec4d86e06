"""What every part of the configuration has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration: cannot be changed, and has no keys that nothing reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")
