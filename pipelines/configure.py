"""Load a configuration: base file < profile < `--set a.b=c`, and remember where each value came from."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pipelines.config import Config
from schemas.errors import ConfigurationError, did_you_mean

EXTENDS = "extends"
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\})")


@dataclass(frozen=True)
class Loaded:
    """A configuration that was checked in full, and the origin of each value that is not a default."""

    config: Config
    origins: Mapping[str, str]

    def origin(self, key: str) -> str:
        """The file or option that gave the value at `key`; `default` where none did."""
        parts = key.split(".")
        prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((self.origins[prefix] for prefix in prefixes if prefix in self.origins), "default")


def load(path: str | Path, overrides: Sequence[str] = ()) -> Loaded:
    """The configuration in the file at `path` and in what it extends, with the overrides on top."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, layer in _layers(Path(path), ()):
        _merge(values, layer, name, origins)
    for override in overrides:
        _merge(values, _override(override), f"--set {override.partition('=')[0]}", origins)
    try:
        config = Config.model_validate(_expanded(values, (), origins))
    except ValidationError as error:
        raise _explained(error, origins, str(path)) from None
    return Loaded(config, origins)


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a nested mapping with its dotted key."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{at}.{key}" if at else str(key))
    else:
        yield at, value


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where plain YAML lets the last one win in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        twice = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _layers(path: Path, above: tuple[Path, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The files that `path` extends, in order, then `path` itself."""
    if path.resolve() in above:
        raise ConfigurationError("a configuration extends itself", where=str(path))
    content = _read(path)
    bases = content.pop(EXTENDS, [])
    for base in [bases] if isinstance(bases, str) else bases:
        yield from _layers(path.parent / base, (*above, path.resolve()))
    yield str(path), content


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # a subclass of SafeLoader
    except FileNotFoundError:
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*.yaml")]) if path.parent.is_dir() else ""
        raise ConfigurationError("no such configuration file", where=str(path), hint=near) from None
    except OSError as error:
        raise ConfigurationError(f"cannot read the configuration: {error.strerror}", where=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError("not a YAML file", where=str(path), hint=" ".join(str(error).split())) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError("a configuration is a mapping of keys to values", where=str(path))
    return content


def _override(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"cannot read --set {text}", hint="write --set key.inner=value")
    try:
        tree = yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigurationError(f"cannot read the value of --set {text}", hint="write it as in YAML") from None
    for part in reversed(key.strip().split(".")):
        tree = {part: tree}
    return dict(tree)


def _merge(
    values: dict[str, Any], layer: Mapping[str, Any], origin: str, origins: dict[str, str], at: str = ""
) -> None:
    for key, value in layer.items():
        here = f"{at}.{key}" if at else str(key)
        if isinstance(value, Mapping) and isinstance(values.get(key), dict):
            _merge(values[key], value, origin, origins, here)
            continue
        for stale in [known for known in origins if known == here or known.startswith(here + ".")]:
            del origins[stale]
        origins.update({leaf: origin for leaf, _ in leaves(value, here)})
        values[key] = _copied(value)


def _copied(value: Any) -> Any:
    return {key: _copied(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


def _expanded(value: Any, at: tuple[str, ...], origins: Mapping[str, str]) -> Any:
    """`value` with `${NAME}` and `${NAME:-default}` replaced from the environment; `$$` is a plain `$`."""
    if isinstance(value, Mapping):
        return {key: _expanded(inner, (*at, str(key)), origins) for key, inner in value.items()}
    if isinstance(value, list):
        return [_expanded(inner, at, origins) for inner in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "$"
        default: str | None = match["default"]
        found = os.environ.get(match["name"], default)
        if found is None:
            key = ".".join(at)
            raise ConfigurationError(
                f"the environment variable {match['name']} is not set",
                where=f"{origins.get(key, 'configuration')} at {key}",
                hint=f"set it, or write ${{{match['name']}:-default}}",
            )
        return found

    return _VARIABLE.sub(replaced, value)


def _explained(error: ValidationError, origins: Mapping[str, str], path: str) -> ConfigurationError:
    """One message for all that pydantic found, each with its place, in the words of this project."""
    found = [_explain(details, origins, path) for details in error.errors()]
    return ConfigurationError("; ".join(found) if len(found) == 1 else "\n".join(["", *(f"- {f}" for f in found)]))


def _explain(details: ErrorDetails, origins: Mapping[str, str], path: str) -> str:
    key = ""
    for part in details["loc"]:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    names = ".".join(str(part) for part in details["loc"] if not isinstance(part, int))
    origin = next((o for k, o in origins.items() if k == names or k.startswith(f"{names}.")), path)
    place = f"in {origin} at {key}" if key else f"in {origin}"
    if details["type"] == "extra_forbidden":
        return f"unknown key {place}: {did_you_mean(str(details['loc'][-1]), _keys(details['loc'][:-1]))}"
    if details["type"] == "missing":
        return f"missing key {place}: it has no default"
    message = details["msg"].removeprefix("Value error, ")
    if details["type"] == "value_error":
        return f"{message} ({place})"
    return f"wrong value {details['input']!r} {place}: {message[0].lower()}{message[1:]}"


def _keys(loc: Sequence[int | str]) -> list[str]:
    """The keys that the model allows at `loc`."""
    model: type[BaseModel] = Config
    for part in loc:
        annotation = model.model_fields[str(part)].annotation
        options = [annotation, *get_args(annotation)]
        model = next(option for option in options if isinstance(option, type) and issubclass(option, BaseModel))
    return list(model.model_fields)
