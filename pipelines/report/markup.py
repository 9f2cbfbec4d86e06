"""HTML from Python: everything that is not `Markup` is escaped, so that no text from a log becomes code."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

LONGEST = 160  # characters of a text from the data that are shown

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_VOID = ("input", "meta", "line", "rect", "polyline", "polygon")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def h(tag: str, *children: Any, **attributes: Any) -> Markup:
    """One element. `class_` and `data_x` become `class` and `data-x`; attributes that are None are left out.

    >>> h("b", "1 < 2", class_="big")
    '<b class="big">1 &lt; 2</b>'
    """
    rendered = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in _VOID and not children:
        return Markup(f"<{tag}{rendered}>" if tag in ("input", "meta") else f"<{tag}{rendered}/>")
    return Markup(f"<{tag}{rendered}>{join(children)}</{tag}>")


def join(children: Iterable[Any]) -> Markup:
    """Concatenate children; None is left out, and lists are flattened."""
    parts = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(str(child))
        elif isinstance(child, str):
            parts.append(_escape(child))
        elif isinstance(child, Iterable):
            parts.append(str(join(child)))
        elif child is not None:
            parts.append(_escape(str(child)))
    return Markup("".join(parts))


def text(value: Any, most: int = LONGEST) -> Markup:
    """A text from the data: shortened, and isolated so that its writing direction does not affect its surroundings."""
    return h("bdi", cut(value, most))


def cut(value: Any, most: int = LONGEST) -> str:
    """A text from the data, shortened to a number of characters."""
    full = str(value)
    return full if len(full) <= most else full[: most - 1] + "…"


def _escape(value: str) -> str:
    return html.escape(_CONTROL.sub("\ufffd", value), quote=True)
