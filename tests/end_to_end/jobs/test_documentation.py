"""Every example that the documentation shows is run, and prints what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKED = re.compile(r"<!-- (run|prints|python) -->\n```\w*\n(.*?)```", re.DOTALL)


def examples(page: Path) -> list[tuple[str, str]]:
    return MARKED.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
def test_the_examples_of_a_page_work(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    printed = ""
    for kind, text in examples(page):
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
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout


def test_the_example_metric_of_the_documentation_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-a-metric.md").read_text(encoding="utf-8")
    source = re.search(r"<!-- metric -->\n```python\n(.*?)```", page, re.DOTALL)
    assert source is not None
    (tmp_path / "excellent.py").write_text(source[1], encoding="utf-8")
    check = (
        "import excellent\n"
        "from udfs.evaluator import Evaluator\n"
        "found = Evaluator(metrics=['excellent@2'], max_grade=3).evaluate_ranking('abc', {'a': 3, 'b': 1, 'c': 3})\n"
        "assert found == {'excellent@2': 0.5}, found\n"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
