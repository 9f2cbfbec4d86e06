"""Load a configuration: base file < profile < `--set a.b=c`, with the origin of each value."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pipelines.config.model import Config
from pipelines.config.parse import find_line, parse_yaml, read_text
from pipelines.config.paths import OPTION, resolve_paths
from pipelines.warehouse.runs import Manifest
from schemas.errors import AssayError, ConfigurationError, InputError, did_you_mean
from schemas.problems import build_error, describe_problem, explain_problem, shorten_value, write_problem_key
from schemas.redact import is_secret_name, remember_secret, remember_secrets

EXTENDS = "extends"
PROFILES = Path(__file__).resolve().parents[2] / "conf"  # of Assay itself, such as `trec.yaml`
MAX_FILES = 100  # of one configuration; a file that is extended twice counts twice
MAX_PLACES = 3  # of a key that is unknown where it stands
_INPUT = re.compile(r"\binputs(?:\.\w+)+")  # the key of an input, in a hint
_WORDS = re.compile(r"[^\s*&!|>%@`\"'\[\]{},:]+")
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\})")


@dataclass(frozen=True)
class LoadedConfig:
    """A validated configuration, and the origin of each value that is not a default."""

    config: Config
    origins: Mapping[str, str]

    def origin(self, key: str) -> str:
        """Return the file or option that set the value at `key`, or `default`."""
        parts = key.split(".")
        prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((self.origins[prefix] for prefix in prefixes if prefix in self.origins), "default")

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Add the file and the line of a key to an error that names it, as its place or in its hint."""
        try:
            yield
        except AssayError as error:
            place = self._locate(error.where.partition(":")[0])
            where, hint = error.where if place is None else f"{place} at {error.where}", error.hint
            key = _INPUT.search(hint)
            if place is None and key is not None:
                place = self._locate(key[0])
                hint = f"{hint} ({place.rstrip(',')})" if place else hint
            if place is None:
                raise
            raise type(error)(error.what, where=where, hint=hint, details=error.details) from error

    def _locate(self, key: str) -> str | None:
        """The file or option that has a key or the section around it, with the line; None where there is none."""
        origin = self._find_nearest(key) if "." in key else None
        return None if origin is None else _describe_origin(origin, key.split("."))

    def _find_nearest(self, key: str) -> str | None:
        """The origin of a key, or of the innermost section around it; None where no file or option has any of it."""
        parts = key.split(".")
        for length in range(len(parts), 1, -1):  # a whole configuration says nothing of a key that it lacks
            section = ".".join(parts[:length])
            for leaf, origin in self.origins.items():
                if leaf == section or leaf.startswith(f"{section}."):
                    return origin
        return None


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> LoadedConfig:
    """Load the file at `path` and the files it extends, then apply the overrides."""
    try:
        return _load_layers(path, overrides)
    except RecursionError:
        raise ConfigurationError("the configuration is nested too deeply", where=str(path)) from None


def _load_layers(path: str | Path, overrides: Sequence[str]) -> LoadedConfig:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for number, (name, layer) in enumerate(_read_layers(Path(path), ()), start=1):
        if number > MAX_FILES:
            hint = "does a file extend the same file many times?"
            raise ConfigurationError(f"the configuration extends more than {MAX_FILES} files", where=name, hint=hint)
        _merge(values, layer, name, origins)
    for override in overrides:
        _merge(values, _parse_override(override), f"{OPTION} {override.partition('=')[0]}", origins)
    resolved = resolve_paths(_expand(values, (), origins), origins)
    return LoadedConfig(build_config(resolved, str(path), origins), origins)


def build_config(values: Mapping[str, Any], place: str, origins: Mapping[str, str] | None = None) -> Config:
    """Build a configuration from its values; errors name their origins, or `place` where they have none."""
    remember_secrets(values)  # before any message can contain them
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise build_error(error, lambda details: _explain(details, origins or {}, place)) from None


def load_run_config(manifest: Manifest) -> Config:
    """Load the configuration of a published run, without its Spark settings, some of which are redacted."""
    try:
        return Config.model_validate({key: value for key, value in manifest.config.items() if key != "spark"})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(
            f"this version cannot read the configuration of run {manifest.run}: {key}: {describe_problem(first)}",
            hint="evaluate the date again",
        ) from None


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a nested mapping with its dotted key."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, value


def _read_layers(path: Path, parents: tuple[Path, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files that `path` extends, in order, then `path` itself."""
    if not _is_path(str(path)):
        raise ConfigurationError(f"{shorten_value(str(path))} is not the path of a file", where="--config")
    if path.resolve() in parents:
        raise ConfigurationError("a configuration extends itself", where=str(path))
    content = _read_yaml(path)
    bases = content.pop(EXTENDS, [])
    bases = [bases] if isinstance(bases, str) else bases
    if not isinstance(bases, list) or not all(isinstance(base, str) and _is_path(base) for base in bases):
        hint = "write the path of a file, or a list of them"
        raise ConfigurationError(f"cannot extend {shorten_value(bases)}", where=f"{path} at {EXTENDS}", hint=hint)
    for base in bases:
        yield from _read_layers(_find_base(path, base), (*parents, path.resolve()))
    yield str(path), content


def _find_base(path: Path, base: str) -> Path:
    """The file that `path` extends: beside it, or else the profile of Assay that has this name."""
    beside, profile = path.parent / base, PROFILES / base
    is_other = beside.exists() and beside.resolve() != path.resolve()
    return profile if not is_other and Path(base).name == base and profile.is_file() else beside


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        content = parse_yaml(read_text(path))
    except FileNotFoundError:
        hint = did_you_mean(path.name, [p.name for p in path.parent.glob("*.yaml")]) if path.parent.is_dir() else ""
        raise ConfigurationError("no such configuration file", where=str(path), hint=hint) from None
    except OSError as error:
        raise ConfigurationError(f"cannot read the configuration: {error.strerror}", where=str(path)) from None
    except ValueError as error:
        raise ConfigurationError("cannot parse the YAML", where=str(path), hint=str(error)) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError("a configuration is a mapping of keys to values", where=str(path))
    return content


def _parse_override(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if is_secret_name(key):  # before a message can quote it, or the part of it that has a meaning in YAML
        remember_secrets([value, *_WORDS.findall(value)], secret=True)
    if not equals or not key.strip():
        raise ConfigurationError(f"cannot read --set {shorten_value(text)}", hint="write --set key.inner=value")
    try:
        tree = parse_yaml(value)
    except ValueError as error:
        hint = f"write it as in YAML: {error}"
        raise ConfigurationError(f"cannot read the value of --set {shorten_value(text)}", hint=hint) from None
    for part in reversed(key.strip().split(".")):
        tree = {part: tree}
    return dict(tree)


def _merge(
    values: dict[str, Any], layer: Mapping[str, Any], origin: str, origins: dict[str, str], prefix: str = ""
) -> None:
    """Merge `layer` into `values`, and record its origin in `origins`."""
    for key, value in layer.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping) and isinstance(values.get(key), dict):
            _merge(values[key], value, origin, origins, path)
            continue
        for stale in [leaf for leaf in origins if leaf == path or leaf.startswith(path + ".")]:
            del origins[stale]
        origins.update({leaf: origin for leaf, _ in flatten(value, path)})
        values[key] = _copy(value)


def _copy(value: Any) -> Any:
    return {key: _copy(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


def _expand(value: Any, path: tuple[str, ...], origins: Mapping[str, str]) -> Any:
    """Replace `${NAME}` and `${NAME:-default}` from the environment; `$$` is a plain `$`."""
    if isinstance(value, Mapping):
        return {key: _expand(inner, (*path, str(key)), origins) for key, inner in value.items()}
    if isinstance(value, list):
        return [_expand(inner, path, origins) for inner in value]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "$"
        default: str | None = match["default"]
        content = os.environ.get(match["name"], default)
        if content is not None and is_secret_name(match["name"]):
            remember_secret(content)
        if content is None:
            key = ".".join(path)
            raise ConfigurationError(
                f"the environment variable {match['name']} is not set",
                where=f"{origins.get(key, 'configuration')} at {key}",
                hint=f"set it, or write ${{{match['name']}:-default}}",
            )
        return content

    return _VARIABLE.sub(replace, value)


def _explain(details: ErrorDetails, origins: Mapping[str, str], path: str) -> str:
    key = write_problem_key(details)
    names = ".".join(str(part) for part in details["loc"] if not isinstance(part, int))
    origin = next((o for k, o in origins.items() if k == names or k.startswith(f"{names}.")), path)
    place = f"in {_describe_origin(origin, details['loc'])} at {key}" if key else f"in {origin}"
    return explain_problem(details, place, lambda: _suggest_key(details["loc"]))


def _describe_origin(origin: str, keys: Sequence[int | str]) -> str:
    """The file or option that set a value, with the line where it is a file."""
    line = None if origin.startswith(OPTION) else find_line(Path(origin), keys)
    return origin if line is None else f"{origin}, line {line},"


def _is_path(text: str) -> bool:
    return bool(text.strip()) and "\0" not in text


def _suggest_key(loc: Sequence[int | str]) -> str:
    """Where a key that is unknown at `loc` belongs: to another section that has it, or the closest one there."""
    keys, name = _list_keys(loc[:-1]), str(loc[-1])
    places = [place for place in _list_places(Config) if place.rpartition(".")[2] == name]
    if places and len(places) <= MAX_PLACES:
        return f"did you mean {' or '.join(repr(place) for place in places)}? Known here: {', '.join(sorted(keys))}"
    return did_you_mean(name, keys)


def _list_places(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The dotted keys below a section, in sections of one model each: not those in lists and mappings."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _list_places(field.annotation, f"{prefix}{name}.")


def _list_keys(loc: Sequence[int | str]) -> list[str]:
    """List the keys that the model accepts at `loc`, which also has the keys of mappings and pydantic's own tags."""
    model: type[BaseModel] = Config
    for part in loc:
        if part not in model.model_fields:
            continue
        inner = next(_list_models(model.model_fields[str(part)].annotation), None)
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)


def _list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _list_models(argument)
