"""Every marked example of the documentation is run, and prints what the page shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import ROOT, WarmProcess
from tests.helpers.forwarded_command import Answer, forward_command

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
FIRST = ROOT / "README.md"
MARKED = re.compile(r"<!-- (run|prints|python) -->\n```\w*\n(.*?)```", re.DOTALL)


def list_examples(page: Path) -> list[tuple[str, str]]:
    """List the marked blocks of a page: how each is marked, and its text."""
    return MARKED.findall(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shell(
    warm_process: WarmProcess, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The environment of a shell whose command `assay` runs in the warm process."""

    def run(words: list[str]) -> Answer:
        done = warm_process.run(["assay", *words])
        return done.returncode, done.stdout, done.stderr

    with forward_command(tmp_path_factory.mktemp("bin"), run) as folder:
        yield environment | {"PATH": f"{folder}{os.pathsep}{environment['PATH']}"}


@pytest.fixture
def work(warm_process: WarmProcess, tmp_path: Path) -> Iterator[Path]:
    """The folder of the warm process; its files are moved away, so that the next page begins without any."""
    yield warm_process.work
    for path in warm_process.work.iterdir():
        path.rename(tmp_path / path.name)


def test_the_examples_of_the_first_page_work_as_installed(tmp_path: Path, environment: dict[str, str]) -> None:
    check_examples(FIRST, tmp_path, environment)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != FIRST and list_examples(page)], ids=lambda page: page.name
)
def test_the_examples_of_a_page_work(page: Path, work: Path, shell: dict[str, str]) -> None:
    check_examples(page, work, shell)


def check_examples(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run the examples of a page in a folder, and compare what they print with what it shows."""
    printed = ""
    for kind, text in list_examples(page):
        if kind == "prints":
            for line in text.strip().splitlines():
                assert line.strip() in printed
            continue
        command = ["bash", "-euo", "pipefail", "-c", text] if kind == "run" else [sys.executable, "-c", text]
        done = subprocess.run(
            command,
            cwd=folder,
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
