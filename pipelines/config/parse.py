"""Parse YAML that may be hostile: no code, no duplicate keys, no recursion, and bounded in size."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import yaml

from schemas.redact import is_secret_name, redact_text

MAX_BYTES = 1 << 20
MAX_VALUES = 10_000  # with every alias written out
_KEY = re.compile(r"([\w.\-]+)[\"']?\s*:")
_QUOTED = re.compile(r"'.*'")


def read_text(path: Path) -> str:
    """Read a text file of bounded size; the size of a device or a pipe is not known in advance."""
    with path.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES >> 20} MB")
    return content.decode("utf-8")


def parse_yaml(text: str) -> Any:
    """Parse one document; raises `ValueError` with the reason where it cannot be used."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count_values(node, {}, set())
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(_describe_error(error, text)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    finally:
        loader.dispose()


def _describe_error(error: yaml.YAMLError, text: str) -> str:
    """The problem and its place, without the line itself, which may be half of a secret.

    What PyYAML quotes of a value, such as the name of an alias, is left out beside the name of a secret.
    """
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(redact_text(str(error)).split())
    mark = error.problem_mark or error.context_mark
    parts = [part for part in (error.context, error.problem) if part]
    place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
    line = "" if mark is None else "".join(text.splitlines()[mark.line : mark.line + 1])
    if any(is_secret_name(name) for name in _KEY.findall(line)):
        parts = [_QUOTED.sub("…", part) for part in parts]
    return redact_text(" ".join(f"{': '.join(parts)}{place}".split()))


def find_line(path: Path, keys: Sequence[str | int]) -> int | None:
    """The line of a file at which a key stands, or the innermost section above it that the file has."""
    try:
        node = yaml.compose(read_text(path), Loader=yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    line = None
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == str(key)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            break
    return line


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys, of which PyYAML silently keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        duplicate = next((key for index, key in enumerate(keys) if key in keys[:index]), None)
        if duplicate is not None:
            raise yaml.constructor.ConstructorError(None, None, f"duplicate key {duplicate!r}", node.start_mark)
        return super().construct_mapping(node, deep)


def _count_values(node: yaml.Node, counted: dict[int, int], above: set[int]) -> int:
    """Count the values of a node with every alias written out; refuse too many, and one that contains itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in above:
        raise yaml.MarkedYAMLError(problem="an alias refers to itself", problem_mark=node.start_mark)
    if id(node) not in counted:
        inner = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        count = 1 + sum(_count_values(part, counted, above | {id(node)}) for part in inner)
        if count > MAX_VALUES:
            problem = f"more than {MAX_VALUES:,} values, with aliases written out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        counted[id(node)] = count
    return counted[id(node)]
