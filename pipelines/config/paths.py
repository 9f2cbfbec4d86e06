"""Relative paths of a configuration: in a file, relative to its folder; of `--set`, to the working directory."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OPTION = "--set"  # begins the origin of a value that is in no file
_KEY = re.compile(r"warehouse|inputs\.\w+(\.sources\.\w+)?\.path|prometheus\.textfile|tracking\.uri")
_SQLITE = "sqlite:///"  # the only URI with a relative path
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_PATTERN = re.compile(r"[*?\[{]")

logger = logging.getLogger(__name__)


def resolve_paths(value: Any, origins: Mapping[str, str], key: str = "") -> Any:
    """Return the values with every relative path of a file as one from the working directory."""
    if isinstance(value, Mapping):
        return {name: resolve_paths(inner, origins, f"{key}.{name}".lstrip(".")) for name, inner in value.items()}
    origin = origins.get(key, OPTION)
    if origin.startswith(OPTION) or not _KEY.fullmatch(key):
        return value
    if isinstance(value, list) and key.endswith(".path"):
        return [_resolve(path, Path(origin), key) for path in value]
    return _resolve(value, Path(origin), key)


def _resolve(value: Any, file: Path, key: str) -> Any:
    """The path from the folder of the file, or from the working directory where only that exists."""
    if not isinstance(value, str) or (key == "tracking.uri" and not value.startswith(_SQLITE)):
        return value
    path = value.removeprefix(_SQLITE)
    if not path.strip() or path.startswith("/") or _URI.match(path):
        return value
    beside = os.path.normpath(file.parent / path)
    if _exists(path) and not _exists(beside):
        logger.warning(
            "%s at %s: %s is relative to the working directory. This still works, but paths of a configuration are "
            "relative to its file: write %s", file, key, path, os.path.relpath(path, file.parent),
        )  # fmt: skip
        return value
    return value.removesuffix(path) + beside


def _exists(path: str) -> bool:
    """Whether there is such a file or folder; for a pattern, the folder before the part that varies."""
    fixed = _PATTERN.split(path, maxsplit=1)[0]
    return os.path.lexists(path if fixed == path else Path(f"{fixed}x").parent)
