"""`Registry`: entries that are declared one per file and used by name.

Metrics, source formats, denoise rules, propensity estimators, quality checks, readings, gate conditions and trackers
each have one. A registry imports the modules of its package at the first lookup, so a new entry needs only a new file
in that package.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from schemas.errors import ConfigurationError, did_you_mean

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name, in alphabetical order; a mapping that imports its package at the first lookup.

    >>> colours: Registry[int] = Registry("colour")
    >>> colours.register("red", 0xFF0000)
    16711680
    >>> colours.require("rde")
    Traceback (most recent call last):
    schemas.errors.ConfigurationError: unknown colour 'rde': did you mean 'red'? Known: red
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, Entry] = {}
        self._loaded = package is None

    def register(self, name: str, entry: Entry) -> Entry:
        """Add an entry; a name can be registered only once."""
        if name in self._entries:
            raise ValueError(f"two entries are registered as {self.kind} {name!r}")
        self._entries[name] = entry
        return entry

    def require(self, name: str, *, where: str = "") -> Entry:
        """The entry of that name, or an error that lists the registered names."""
        self._load()
        if name not in self._entries:
            raise ConfigurationError(
                f"unknown {self.kind} {name!r}", where=where, hint=did_you_mean(name, self._entries)
            )
        return self._entries[name]

    def __getitem__(self, name: str) -> Entry:
        self._load()
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._load()
        return len(self._entries)

    def _load(self) -> None:
        """Import every module of the package, each of which registers its own entries."""
        if self._loaded:
            return
        self._loaded = True  # before the imports: a module may look up an entry while it is imported
        package = importlib.import_module(str(self._package))
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
