"""Hide secrets before anything is printed, logged or stored: the one redactor of all doors.

A secret is recognised by the name it is assigned to (`password=…`, `"apiKey": …`), by its place in a URI, by its own
form (a JSON web token, a private key), or because a configuration assigned it to such a name before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

HIDDEN = "(hidden)"
SHORTEST = 6  # characters of a value that is hidden wherever it occurs; shorter ones occur in other words

# Words of a name that make its value a secret: anywhere in the name, or as a part of it (`pwd` in `db.pwd`, `dbPwd`).
_STRONG = r"passw|passphrase|passcode|secret|credential|(?<![a-z])(?:pwd|pass|pw)(?![a-z])"
_KEY = r"(?:access|account|api|encryption|master|private|shared|signing|storage|subscription).?key"
_SECRET_NAME = re.compile(
    rf"{_STRONG}|(?<!de)token(?!i[sz])|{_KEY}|(?<![a-z])(?:sas|sig|signature|authorization|bearer|cookie|jwt)(?![a-z])",
    re.IGNORECASE,
)
_STRONG_NAME = re.compile(_STRONG, re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# All patterns are bounded: their time grows in proportion to the text, whatever it contains.
# The user part of a URI, up to the last @: a password may contain /, @ and &. A user name alone may be a token, except
# for Azure's storage, where it is a container. A URI that was taken for a path has lost a slash. Without a scheme, a
# host must follow. Oracle's driver has a slash between user and password.
_USER = re.compile(
    r"(?<![a-z0-9+.\-])(?P<scheme>(?:[a-z][a-z0-9+.\-]*://|[a-z][a-z0-9+.\-]+:/|(?<!:)//))[^\s\"<>/:@]*:(?P<password>[^\s\"<>]{0,1000})@"
    r"|(?P<quoted>%3a%2f%2f)(?P<encoded>[^\s\"'<>&]{1,1000}?)%40"
    r"|(?P<oracle>\bjdbc:oracle:\w{1,8}:)[^\s\"'@/]{0,100}/(?P<word>[^\s\"'@]{1,200})@"
    r"|(?<![a-z0-9+.\-])(?P<plain>(?!abfss?:|wasbs?:)(?:[a-z][a-z0-9+.\-]*://|[a-z][a-z0-9+.\-]+:/))(?P<token>[^\s\"<>/]{1,1000})@"
    r"|(?<![\w/.+\-@:])[\w.+\-]+:(?![^\s@]{0,200}\(hidden\)@)(?P<bare>[^\s\"'@/]{1,200})@"
    r"(?=[a-z][\w\-]*(?:\.\w|:\d)|localhost\b|\d+\.\d+\.\d+\.\d+)",
    re.IGNORECASE,
)
_NAME = r"(?<![\w.\-])(?P<name>[\w.\-]+)"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\\{1,8}\"(?:(?!\\{1,8}\").)*\\{1,8}\""  # or escaped, inside JSON
# name=value, up to the next name of a URI or a list; name: value, where the value is quoted or ends its line.
_EQUALS = re.compile(rf"{_NAME}(?:\s{{0,8}}(?::=|={{1,3}}>?|->)\s{{0,8}}|%3d)", re.IGNORECASE)
_ASSIGNED = re.compile(rf"{_QUOTED}|[\"']?(?:(?![&;,]\s?[\w.\-]+=)(?!\\+[\"'])[^\s\"'])+")
_COLON = re.compile(rf"{_NAME}\\{{0,8}}[\"']?\s{{0,8}}:\s{{0,8}}")
_MAPPED = re.compile(rf"{_QUOTED}|[^\s\"'{{}}\[\],]{{1,1000}}(?=\s*(?:$|,|\}}|\"|\\+n|#\s))", re.MULTILINE)
# (name, value), as Spark and Python print pairs; --name value; elements of XML, and Hadoop's with name and value.
_PAIR = re.compile(r"[(\[]\\{0,8}[\"']?(?P<name>[\w.\-]{1,200})\\{0,8}[\"']?,\s?")
_SECOND = re.compile(rf"(?:{_QUOTED}|[^\s\"'()\[\],]{{1,1000}})(?=\s?[)\]])")
_OPTION = re.compile(r"(?<![\w\-])--(?P<name>[\w.\-]{1,200})(?:[ \t]{1,8}|\\{0,8}[\"'],\s?(?=\\{0,8}[\"']))")
_ARGUMENT = re.compile(rf"{_QUOTED}|[^\s\"'\-][^\s\"'\\,\]]{{0,1000}}")
_ELEMENT = re.compile(r"<name>\s{0,8}([\w.\-]{1,200})\s{0,8}</name>\s{0,200}<value>|<([\w.\-]{1,200})>")
_CONTENT = re.compile(r"[^<\"\\]{1,1000}(?=<)")
_PLACES = ((_EQUALS, _ASSIGNED), (_COLON, _MAPPED), (_PAIR, _SECOND), (_OPTION, _ARGUMENT), (_ELEMENT, _CONTENT))
_MARK = re.compile(r"\\*[\"']")
_LITERAL = re.compile(r"[-+\d.eE]+|true|false|null|None|True|False")
_HEADER = re.compile(
    r"(\b(?:bearer|basic)|(?<=authorization: )[\w\-]{1,40})\s+(?!username=)[\w+/=.~\-]{8,}", re.IGNORECASE
)
_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w\-]{8,2000}\.[\w\-]{8,2000}\.[\w\-]*"  # JSON web token
    r"|\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w\-]{20,}|xox[abeprs]-[\w\-]{10,}|hf_\w{20,}|dapi[0-9a-f]{32}"
    r"|sk-[\w\-]{20,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w\-]{35}|npm_\w{30,}|pypi-[\w\-]{20,}|ya29\.[\w\-]{20,})"
    r"|(?<=hooks\.slack\.com/services/)[\w/]{8,}",
    re.DOTALL,
)

_MARGIN = 10_000  # characters
_known: set[str] = set()  # values that a configuration assigned to secret names


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the value of this name is a secret."""
    return _SECRET_NAME.search(_HUMP.sub("_", name)) is not None


def remember_secret(value: str) -> None:
    """Hide a value from now on wherever it occurs, also as it is written in a URI."""
    _known.update(form for form in (value, quote(value, safe=""), unquote(value)) if len(form) >= SHORTEST)


def remember_secrets(value: Any, *, secret: bool = False) -> None:
    """Remember the secrets of a configuration: all values under secret names (`secret`), and those inside texts."""
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        remember_secrets(inner, secret=secret or is_secret_name(str(name)))
    for inner in value if isinstance(value, list | tuple) else ():
        remember_secrets(inner, secret=secret)
    if secret and isinstance(value, str | int) and not isinstance(value, bool):
        remember_secret(str(value))
    for match in _USER.finditer(value) if isinstance(value, str) else ():
        remember_secret(match["password"] or match["token"] or match["bare"] or match["word"] or "")
    for match in _find_values(value, _EQUALS, _ASSIGNED) if isinstance(value, str) else ():
        remember_secret(match[0].strip("\"'"))


def redact(value: Any, *, names: Collection[str] = ()) -> Any:
    """Hide the values of secret names, and the secrets inside texts, in nested mappings and lists.

    The keys of the mappings called `names` are names from the data, such as systems, and say nothing about the value.
    """
    if isinstance(value, Mapping):
        return {key: _redact_entry(key, inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact(inner, names=names) for inner in value]
    return redact_text(value) if isinstance(value, str) else value


def _redact_entry(key: str, value: Any, names: Collection[str]) -> Any:
    if key in names:
        return redact_texts(value)
    return _hide(value) if is_secret_name(str(key)) else redact(value, names=names)


def redact_texts(value: Any) -> Any:
    """Hide the secrets inside all texts of nested mappings and lists, whatever their keys are."""
    if isinstance(value, Mapping):
        return {redact_texts(key): redact_texts(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_texts(inner) for inner in value]
    return redact_text(value) if isinstance(value, str) else value


def redact_text(text: str) -> str:
    """Hide the secrets in a text: a URI, Java options, a log line, an error message."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _FORMS.sub(HIDDEN, text)
    text = _USER.sub(_hide_user, text)
    text = _HEADER.sub(rf"\1 {HIDDEN}", text)
    for head, value in _PLACES:
        text = _hide_values(text, _find_values(text, head, value))
    return text


def _hide_user(match: re.Match[str]) -> str:
    """The beginning of a URI without its user part."""
    if match["quoted"]:
        return f"{match['quoted']}{HIDDEN}%40"
    return f"{match['scheme'] or match['plain'] or match['oracle'] or ''}{HIDDEN}@"


def cut_text(text: str, length: int) -> str:
    """Hide the secrets in a text, then cut it: half a secret is not recognised, and is still a secret.

    Of a very long text, only what can be shown is searched, with a margin longer than any secret that has a form.
    """
    safe = redact_text(text[: length + _MARGIN])
    end = length if len(text) <= length + _MARGIN else min(length, max(0, len(safe) - _MARGIN // 2))
    return safe if len(safe) <= end else f"{safe[: max(0, end - 1)]}…"


def _hide(value: Any) -> Any:
    """Hide everything under a secret name."""
    if isinstance(value, Mapping):
        return {key: _hide(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_hide(inner) for inner in value]
    return value if value in (None, "") or isinstance(value, bool) else HIDDEN


def _find_values(text: str, head: re.Pattern[str], value: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the values that follow secret names, from left to right."""
    end = 0
    for place in head.finditer(text):
        name = next(filter(None, place.groups()), "")
        match = value.match(text, place.end()) if place.start() >= end and is_secret_name(name) else None
        if match is None or match[0] == HIDDEN:
            continue
        weak = head is _COLON and _LITERAL.fullmatch(match[0]) is not None  # a number, e.g. of tokens
        if not weak or _STRONG_NAME.search(_HUMP.sub("_", name)):
            end = match.end()
            yield match


def _hide_values(text: str, values: Iterable[re.Match[str]]) -> str:
    """Hide values and keep their quotation marks, so that what contains them can still be parsed."""
    parts, at = [], 0
    for match in values:
        mark = _MARK.match(match[0])
        parts += [text[at : match.start()], mark[0] if mark else "", HIDDEN, mark[0] if mark else ""]
        at = match.end()
    return "".join([*parts, text[at:]])
