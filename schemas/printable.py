"""Text for people: counts with their nouns, and text from data without characters that could control a terminal."""

from __future__ import annotations

import re

# Control characters, marks and overrides of writing direction, separators of lines, tags, lone surrogates, which cannot
# be encoded, and the two characters besides that XML cannot have. Joiners stay: scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_BREAKS = re.compile("[\n\t]")


def escape_unprintable(text: str) -> str:
    r"""Write unsafe characters as in JSON, e.g. `\u001b`; line breaks and tabs stay."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def escape_line(text: str) -> str:
    r"""Write unsafe characters, line breaks and tabs as in JSON, so that the text is one line."""
    return _BREAKS.sub(_escape, escape_unprintable(text))


def format_count(number: int, noun: str) -> str:
    """A number with its noun, as `1 query` or `2,000 queries`."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun}"


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
