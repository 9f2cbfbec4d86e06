"""Every marked example of the documentation is run, and prints what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
MARKED = re.compile(r"<!-- (run|prints|python) -->\n```\w*\n(.*?)```", re.DOTALL)


def list_examples(page: Path) -> list[tuple[str, str]]:
    """List the marked blocks of a page: how each is marked, and its text."""
    return MARKED.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if list_examples(page)], ids=lambda page: page.name)
def test_the_examples_of_a_page_work(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    printed = ""
    for kind, text in list_examples(page):
        if kind == "prints":
            for line in text.strip().splitlines():
                assert line.strip() in printed
            continue
        command = ["bash", "-euo", "pipefail", "-c", text] if kind == "run" else [sys.executable, "-c", text]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment | {"ASSAY": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
            other = page.parent / target if target else page
            assert other.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in list_anchors(other), f"{page.name} links to {target}#{anchor}"


def list_anchors(page: Path) -> list[str]:
    """List the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
