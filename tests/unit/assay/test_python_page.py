"""The examples of docs/python.md run, in order, in one namespace, and print what the page says they do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "python.md"


def test_the_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 6
    names: dict[str, Any] = {}
    for number, example in enumerate(examples):
        exec(compile(example, f"{PAGE.name}, example {number + 1}", "exec"), names)
    printed = capsys.readouterr().out
    assert "next against prod: no significant difference, ndcg@10 +" in printed
    assert re.search(r"^(pass|fail) delta ", printed, re.MULTILINE)
    assert "'mrr': 1.0" in printed


def test_the_page_lists_every_attribute_of_a_result() -> None:
    from assay.result import EvaluationResult, RunResult

    listed = {name for kind in (EvaluationResult, RunResult) for name in vars(kind) if not name.startswith("_")}
    public = listed - {"run", "config", "kind", "spark"}
    named = set(re.findall(r"`result\.(\w+)", PAGE.read_text(encoding="utf-8")))
    assert named == public
