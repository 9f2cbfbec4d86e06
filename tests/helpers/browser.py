"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PHONE, DESKTOP = 390, 1100  # pixels


def find_chromium() -> str:
    """The Chromium that ASSAY_CHROMIUM names, or one on the PATH; the test fails where there is none."""
    executable = os.environ.get("ASSAY_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.fail(
            f"no Chromium: none of {', '.join(NAMES)} is on the PATH. Install one, e.g. `apt-get install chromium` or "
            "`brew install --cask chromium`, or name it with ASSAY_CHROMIUM"
        )
    return executable


@contextmanager
def launch_chromium() -> Iterator[Browser]:
    """A headless browser that is closed with the block."""
    executable = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class OpenPage:
    """A page with its console errors, exceptions and dialogs, and the addresses that it requested."""

    page: Page
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def run(self, script: str) -> Any:
        """The value of a script in the page."""
        return self.page.evaluate(script)


@contextmanager
def open_page(browser: Browser, address: str, *, width: int = DESKTOP, **options: str) -> Iterator[OpenPage]:
    """Open an address; `options` are those of Playwright's `new_context`, such as `color_scheme`."""
    context = browser.new_context(viewport={"width": width, "height": 900}, is_mobile=width < 600, **options)  # type: ignore[arg-type]
    opened = OpenPage(context.new_page())

    def note_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            opened.problems.append(message.text)

    def note_dialog(dialog: Dialog) -> None:
        opened.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def note_request(request: Request) -> None:
        opened.requests.append(request.url)

    opened.page.on("console", note_console)
    opened.page.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.page.on("dialog", note_dialog)
    opened.page.on("request", note_request)
    try:
        opened.page.goto(address)
        yield opened
    finally:
        context.close()
