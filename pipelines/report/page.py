"""One self-contained page: everything is inline, and its policy forbids every request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from pipelines.report.markup import Markup, h, join

LARGEST = 3_000_000  # bytes of a report, whatever the size of its run


def render_page(title: str, heading: Sequence[Markup], sections: Sequence[Markup | None]) -> str:
    """The whole document; its script builds the table of contents from the sections."""
    style, script = (_read_asset(name) for name in ("report.css", "report.js"))
    # Only this script and this style are allowed, by their digests: injected text could still not run.
    policy = (
        f"default-src 'none'; script-src '{_hash_source(script)}'; style-src '{_hash_source(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("title", title),
        h("style", Markup(style)),
    )
    body = h(
        "body",
        h("header", heading, h("button", "light / dark", type="button", id="theme")),
        h("nav", id="contents", aria_label="contents"),
        h("main", [section for section in sections if section is not None]),
        h("script", Markup(script)),
    )
    return str(join([Markup("<!doctype html>\n"), h("html", head, body, lang="en")]))


def _read_asset(name: str) -> str:
    return (files("pipelines.report") / name).read_text(encoding="utf-8")


def _hash_source(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
