"""The notebook of docs/ runs, cell by cell, and each cell that ends with an expression shows it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebook.ipynb"


def run_notebook(path: Path) -> list[Any]:
    """The values of the cells that end with an expression, as a notebook shows them."""
    names: dict[str, Any] = {}
    shown = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"{path.name}, cell {number}")
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}, cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), f"{path.name}, cell {number}", "eval"), names))
    return shown


def test_the_notebook_runs_and_shows_what_it_says() -> None:
    result, comparisons, movers, comparison = run_notebook(NOTEBOOK)
    assert "next against prod: significantly better, ndcg@5 +" in result._repr_html_()
    assert comparisons["metric_name"].unique().tolist() == ["ndcg@5", "recall@5"]
    assert len(comparisons) == 6
    assert movers.iloc[0] < 0
    overall = comparisons.query("segment == 'all'")["delta"].tolist()
    assert comparison.comparisons["delta"].tolist() == overall
    assert "<table>" in comparison._repr_html_()


def test_the_notebook_is_committed_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")
