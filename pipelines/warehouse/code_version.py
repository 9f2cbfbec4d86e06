"""The version of the code that computes the numbers, so that a run is repeated when they could change.

Only syntax trees are hashed: comments, docstrings and formatting cannot change a number. Modules that only show,
check or send results are left out.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import cache_from_source
from pathlib import Path

PACKAGES = ("schemas", "udfs")
ROOMS = ("inputs", "labels", "scoring", "comparison", "evaluate.py", "label.py", "run.py")  # of pipelines
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@cache
def hash_code() -> str:
    """Return a digest of the running code that computes the numbers; kept beside the compiled files between calls."""
    places = [*[files(package) for package in PACKAGES], *[files("pipelines") / room for room in ROOMS]]
    return hash_once(places, Path(cache_from_source(__file__)).with_suffix(".digest"))


def hash_once(places: Sequence[Traversable], kept: Path) -> str:
    """Return the digest of sources; it is read from the file `kept` if that was written for the same bytes."""
    raw = hashlib.sha256(Path(__file__).read_bytes() if Path(__file__).exists() else b"")  # with the way to hash
    for source in (source for place in places for source in _list_sources(place)):
        raw.update(f"\n{source.name}\n".encode() + source.read_bytes())
    with suppress(OSError, ValueError):
        of, digest = kept.read_text(encoding="ascii").split()
        if of == raw.hexdigest():
            return digest
    digest = hash_sources(*places)
    with suppress(OSError):  # where the code cannot be written to, it is hashed each time
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.write_text(f"{raw.hexdigest()} {digest}", encoding="ascii")
        part.replace(kept)
    return digest


def hash_sources(*places: Traversable) -> str:
    """Return a digest of the syntax trees of Python files and folders; a renamed file changes it too."""
    digest = hashlib.sha256()
    for place in places:
        for source in _list_sources(place):
            tree = ast.parse(source.read_bytes())
            _remove_docstrings(tree)
            digest.update(f"{source.name}\n{ast.dump(tree, annotate_fields=False)}\n".encode())
    return digest.hexdigest()[:12]


def _list_sources(place: Traversable) -> Iterator[Traversable]:
    if place.is_dir():
        for entry in sorted(place.iterdir(), key=lambda entry: entry.name):
            yield from _list_sources(entry)
    elif place.name.endswith(".py"):
        yield place


def _remove_docstrings(node: ast.AST) -> None:
    """Remove every statement that is only a string."""
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list):
            block[:] = [statement for statement in block if not _is_string(statement)]
            for statement in block:
                _remove_docstrings(statement)


def _is_string(statement: ast.AST) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
