"""The generated pages say what the code says, and the README names tests that exist."""

import re
from pathlib import Path

import pytest

from jobs.support.reference import PAGES


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_current(name: str) -> None:
    assert Path("docs", name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_the_tests_that_prove_a_guarantee_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", Path("README.md").read_text(encoding="utf-8"))
    assert len(named) >= 10 and all(Path(name).is_file() for name in named)
