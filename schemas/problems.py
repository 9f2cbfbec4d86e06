"""What is wrong with a value that pydantic refuses, in the words of this project."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigurationError
from schemas.redact import cut_text, is_secret_name, redact

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MAX_SHOWN = 200  # characters of a wrong value in a message
_TEXT, _LIST = "text is needed", "a list is needed, such as [a, b]"
_WHOLE, _NUMBER, _SWITCH = "a whole number is needed", "a number is needed", "true or false is needed"
_KEYS, _DATE = "a mapping of keys to values is needed", "a date is needed, such as 2026-11-01"
_ANY = "any_of"  # the type of an error about a value of which several kinds are accepted
# The names that pydantic gives to kinds of values, such as `literal['auto']` and `constrained-float`.
_KIND = re.compile(r"(function-\w+|tuple|list|dict|literal|nullable)\[|constrained-\w+$")
_SENTENCES = {  # by pydantic's type of error; in braces, the values that it reports
    "string_type": _TEXT,
    "string_pattern_mismatch": "it must match {pattern}",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a finite number is needed",
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "dict_type": _KEYS,
    "mapping_type": _KEYS,
    "model_type": _KEYS,
    "model_attributes_type": _KEYS,
    "dataclass_type": _KEYS,
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "literal_error": "it must be {expected}",
    "enum": "it must be {expected}",
    "greater_than": "it must be greater than {gt:g}",
    "greater_than_equal": "it must be at least {ge:g}",
    "less_than": "it must be less than {lt:g}",
    "less_than_equal": "it must be at most {le:g}",
    "too_short": "it must have {min_length} or more entries",
    "too_long": "it must have at most {max_length} entries",
    "string_too_short": "it must have {min_length} or more characters",
    "string_too_long": "it must have at most {max_length} characters",
    "invalid_key": "a key must be text; write it in quotes",
    "missing": "it is missing",
    "extra_forbidden": "no such key",
    "json_invalid": "not JSON: {error}",
}


def describe_problem(details: Mapping[str, Any]) -> str:
    """What was needed instead of a value, from one of the errors of a `ValidationError`."""
    kind, values = str(details["type"]), details.get("ctx", {})
    if kind in ("value_error", "assertion_error"):  # raised by a validator of this project
        return str(values["error"])
    if kind == _ANY:
        return str(values[_ANY])
    sentence = _SENTENCES.get(kind)
    return f"not allowed here ({kind.replace('_', ' ')})" if sentence is None else sentence.format(**values)


def build_error(error: ValidationError, explain: Callable[[ErrorDetails], str]) -> ConfigurationError:
    """Build one error from all that pydantic reports, each in the sentence that `explain` makes of it.

    A list whose entries are wrong is reported as too short besides, which says nothing.
    """
    errors = _merge_kinds(error.errors())
    wrong = {details["loc"][:-1] for details in errors}
    reported = [d for d in errors if d["type"] != "too_short" or d["loc"] not in wrong]
    messages = [explain(details) for details in reported]
    return ConfigurationError(messages[0] if len(messages) == 1 else "\n".join(["", *(f"- {m}" for m in messages)]))


def _merge_kinds(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """One problem for a value of which the model accepts several kinds.

    Pydantic reports each kind, under a name of its own at the end of the key. What a kind has inside tells more than
    that the value is none of the others, and so does a rule of this project.
    """
    by_place: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    several = set()
    for details in errors:
        place = tuple(part for part in details["loc"] if not (isinstance(part, str) and _KIND.match(part)))
        by_place.setdefault(place, []).append(details | {"loc": place})
        if place != details["loc"]:
            several.add(place)
    inner = {place[:length] for place in several for length in range(len(place))}
    merged: list[ErrorDetails] = []
    for place, reports in by_place.items():
        if place not in several or (place not in inner and len(reports) == 1):
            merged += reports
        elif place not in inner:
            rules = [details for details in reports if details["type"] == "value_error"]
            needed = " or ".join(dict.fromkeys(describe_problem(details) for details in reports))
            merged.append(rules[0] if rules else reports[0] | {"type": _ANY, "ctx": {_ANY: needed}})
    return merged


def explain_problem(details: ErrorDetails, place: str, suggest_key: Callable[[], str]) -> str:
    """One problem as a sentence, with its place; `suggest_key` gives the hint about a key that is unknown."""
    if details["type"] == "extra_forbidden":
        return f"unknown key {place}: {suggest_key()}"
    if details["type"] == "missing":
        return f"missing key {place}: it has no default"
    if details["type"] == "value_error":
        return f"{describe_problem(details)} ({place})"
    # The last part may be an index, or a kind of value that pydantic adds.
    secret = next((str(part) for part in details["loc"] if is_secret_name(str(part))), "")
    (value,) = redact({secret: details["input"]}).values()
    problem = "no value" if value is None else f"wrong value {shorten_value(value)}"
    return f"{problem} {place}: {describe_problem(details)}"


def write_problem_key(details: ErrorDetails) -> str:
    """The dotted key of a problem, with the indexes of lists: `gate[0].metric`."""
    key = ""
    for part in details["loc"]:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key


def shorten_value(value: object) -> str:
    """A value as it is written in Python, cut to the length of a message."""
    return cut_text(repr(value), MAX_SHOWN)
