"""The generated pages say what the code says."""

from pathlib import Path

import pytest

from jobs.support.reference import PAGES


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_current(name: str) -> None:
    assert Path("docs", name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"
