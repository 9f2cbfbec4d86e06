"""The version of the code changes with what computes the numbers, and with nothing else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.warehouse.code_version import PACKAGES, hash_code, hash_once, hash_sources
from tests.unit.test_architecture import ROOT

METRIC = '''
"""Precision."""


def precision(hits, k):
    """Share of relevant documents."""
    return hits / k  # of the top k
'''


def hash_text(folder: Path, text: str) -> str:
    (folder / "metric.py").write_text(text, encoding="utf-8")
    return hash_sources(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # of the top k", ""),
        ("Share of relevant documents", "The share of the top k that is relevant"),
        ('    """Share of relevant documents."""\n', ""),
        ('"""Precision."""', '"""Precision at k."""'),
        ("\n\n\ndef", "\n\n\n\n\ndef"),
    ],
)
def test_comments_docstrings_and_layout_leave_the_version_equal(tmp_path: Path, old: str, new: str) -> None:
    assert old in METRIC
    assert hash_text(tmp_path, METRIC) == hash_text(tmp_path, METRIC.replace(old, new))


@pytest.mark.parametrize(("old", "new"), [("hits / k", "hits / (k + 1)"), ("hits, k", "hits, k=10")])
def test_a_changed_expression_changes_the_version(tmp_path: Path, old: str, new: str) -> None:
    assert hash_text(tmp_path, METRIC) != hash_text(tmp_path, METRIC.replace(old, new))


def test_a_docstring_inside_a_condition_does_not_count(tmp_path: Path) -> None:
    nested = 'if True:\n    class Nested:\n        """Words."""\n        size = 1\n'
    assert hash_text(tmp_path, nested) == hash_text(tmp_path, nested.replace("Words", "Other words"))


def test_a_changed_constant_of_a_metric_changes_the_version_of_the_real_code(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    before = hash_sources(tmp_path)
    metric = tmp_path / "udfs" / "metrics" / "rbp.py"
    text = metric.read_text(encoding="utf-8")
    metric.write_text(f"# a comment\n{text}", encoding="utf-8")
    assert hash_sources(tmp_path) == before
    metric.write_text(text.replace("0.8", "0.9"), encoding="utf-8")
    assert hash_sources(tmp_path) != before


def test_another_process_computes_the_same_version() -> None:
    script = "from pipelines.warehouse.code_version import hash_code; print(hash_code())"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [hash_code()]


def test_a_kept_version_counts_only_for_the_same_bytes(tmp_path: Path) -> None:
    folder, kept = tmp_path / "code", tmp_path / "kept"
    folder.mkdir()
    first = hash_text(folder, METRIC)
    assert hash_once([folder], kept) == first
    kept.write_text(f"{kept.read_text().split()[0]} {'0' * 12}")
    assert hash_once([folder], kept) == "0" * 12, "the kept one is read"
    second = hash_text(folder, METRIC.replace("hits / k", "hits / (k + 1)"))
    assert hash_once([folder], kept) == second != first
    kept.write_text("damaged")
    assert hash_once([folder], kept) == second
    assert hash_once([folder], tmp_path / "nowhere" / "kept") == second
