"""The examples of CONTRIBUTING.md work: each is added to a copy of the project and used there, without a JVM."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.outputs import OUTPUTS
from tests.helpers.published_runs import publish

ROOT = Path(__file__).parents[2]
FOLDERS = ("schemas", "udfs", "pipelines", "jobs", "assay", "conf")
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"\*\*`([\w/.]+)`\*\*\n\n```python\n(.*?)```", PAGE, re.DOTALL))
CHANGES = [
    "Metric",
    "Denoise rule",
    "Propensity estimator",
    "Input format",
    "Output column",
    "Segment kind",
    "Gate condition",
    "Report section",
    "Command",
    "Configuration key",
    "Quality check",
    "Tracking backend",
]

METRIC = """
from assay import Evaluator
from jobs.cli import assay, invoke
from udfs.registry import parse_metric

assert parse_metric("excellent( gmax = 2 )@5").key == "excellent_gmax_2_at_5"
values = Evaluator(metrics=["excellent@2"], max_grade=3).evaluate_ranking(["a", "b", "c"], {"a": 3, "b": 1, "c": 3})
assert values == {"excellent@2": 0.5}, values
assert invoke(assay, ["metrics"]) == 0
"""

CONDITION = """
from pipelines.comparison.gate import judge_conditions
from pipelines.config.load import load_config

config = load_config("example.yaml").config
row = {"baseline": "old", "candidate": "new", "segment": "all", "value": "all", "metric": "ndcg_at_10",
       "queries": 400, "degrees": 399.0, "delta": 0.02, "stderr": 0.002, "relative": 0.04, "relative_stderr": 0.004}
for relative in (0.04, 0.02):  # the lower bounds are 0.0334 and 0.0134
    (verdict,) = judge_conditions([row | {"relative": relative}], config, ("old", "new"), behaviour=False)
    print(verdict.verdict, verdict.condition, verdict.reason, sep="; ")
"""

CHECK = """
import datetime as dt
from pipelines.config.load import load_config
from pipelines.quality.registry import CHECKS, QualityFacts

settings = load_config("example.yaml").config.quality.for_check("single_grade")
print(settings.severity, settings.threshold)
for grades in ({"0": 9, "3": 1}, {"0": 5, "3": 5}, {}):
    facts = QualityFacts(dt.date(2026, 11, 1), {"judgments": {"grades": grades}, "queries": {"kept": 3}})
    (finding,) = CHECKS["single_grade"].run(facts, settings.threshold)
    print(finding.passed, finding.table, finding.observed, sep="; ")
"""

TRACK = """
import sys
from jobs.cli import assay, invoke

for run in sys.argv[1:]:
    assert invoke(assay, ["track", "--config", "example.yaml", "--run", run]) == 0
"""


def add_example(folder: Path, path: str) -> Path:
    """Copy the project's code to `folder` and add one example to it."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    target = folder / path
    assert target.parent.is_dir(), f"{path} would need a new folder"
    assert not target.exists(), f"{path} is part of the project already"
    target.write_text(EXAMPLES[path], encoding="utf-8")
    return folder


def write_config(folder: Path, text: str) -> None:
    inputs = "inputs: {rankings: {path: rankings}, judgments: {path: judgments}}\nmetrics: [ndcg@10]\n"
    (folder / "example.yaml").write_text(inputs + text, encoding="utf-8")


def run_script(folder: Path, script: str, *arguments: str) -> list[str]:
    """Run a script on the copied code, where no Java can be found, and return what it prints."""
    guard = f"import pipelines\nassert pipelines.__file__.startswith({str(folder)!r}), pipelines.__file__\n"
    done = subprocess.run(
        [sys.executable, "-c", guard + script, *arguments],
        cwd=folder,
        env={"PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_metric_is_parsed_computed_and_listed(tmp_path: Path) -> None:
    folder = add_example(tmp_path, "udfs/metrics/excellent.py")
    listed = run_script(folder, METRIC)
    assert any("excellent" in line and "the highest grade" in line for line in listed)


def test_a_gate_condition_is_a_key_of_the_configuration_and_judges_estimates(tmp_path: Path) -> None:
    folder = add_example(tmp_path, "pipelines/comparison/conditions/relative_gain.py")
    write_config(folder, "compare: {baseline: old}\ngate: [{metric: ndcg@10, relative_gain: 0.02}]\n")
    assert run_script(folder, CONDITION) == [
        "pass; ndcg@10 gain > 0.02 of baseline; "
        "relative change +0.0400, its 95 % lower bound +0.0334 is above +0.0200, 400 queries",
        "fail; ndcg@10 gain > 0.02 of baseline; "
        "relative change +0.0200, its 95 % lower bound +0.0134 is not above +0.0200, 400 queries",
    ]


def test_a_quality_check_has_its_keys_and_fires_on_figures(tmp_path: Path) -> None:
    folder = add_example(tmp_path, "pipelines/quality/checks/single_grade.py")
    write_config(folder, "quality: {single_grade: {threshold: 0.8}}\n")
    assert run_script(folder, CHECK) == [
        "warn 0.8",
        "False; judgments; 9 of 10 judgments have the same grade (90 %)",
        "True; judgments; 5 of 10 judgments have the same grade (50 %)",
        "True; judgments; 0 of 0 judgments have the same grade (0 %)",
    ]


def test_a_tracking_backend_is_accepted_and_writes_one_line_per_run(tmp_path: Path) -> None:
    folder = add_example(tmp_path, "pipelines/sharing/tracking/backends/json_lines.py")
    write_config(folder, "warehouse: warehouse\ntracking: {backend: json_lines, uri: runs.jsonl}\n")
    publish(folder / "warehouse", date="2026-11-01", run="aaaaaaaaaaaa-000001")
    publish(folder / "warehouse", date="2026-11-02", run="bbbbbbbbbbbb-000001")
    publish(folder / "warehouse", date="2026-11-02", run="bbbbbbbbbbbb-000002")  # the same work, forced
    runs = ("aaaaaaaaaaaa-000001", "aaaaaaaaaaaa-000001", "bbbbbbbbbbbb-000001", "bbbbbbbbbbbb-000002")
    printed = run_script(folder, TRACK, *runs)
    assert printed[::2] == [f"Run {run}: runs.jsonl, run {run}" for run in runs]
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["run"], line["dt"]) for line in lines] == [
        ("aaaaaaaaaaaa-000001", "2026-11-01"),
        ("bbbbbbbbbbbb-000002", "2026-11-02"),
    ]
    assert "ndcg_at_10" in lines[0]["systems"][0]["metrics"]


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_follows_the_style(path: str) -> None:
    for command in (["check"], ["format", "--diff"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", path, "-"],
            cwd=ROOT,
            input=EXAMPLES[path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_each_change_names_at_most_three_files_that_exist() -> None:
    rows = re.findall(r"^\| (?!change|-)([^|]+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert [change for change, _ in rows] == CHANGES
    for change, cell in rows:
        paths = re.findall(r"`([^`]+)`", cell)
        assert 1 <= len(paths) <= 3, f"{change}: {len(paths)} files"
        for path in paths:
            assert any(ROOT.glob(re.sub(r"[A-Z]{2,}", "*", path))), f"{change}: there is nothing like {path}"


def test_the_architecture_page_names_where_each_table_is_made() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*:.*)", page, re.MULTILINE))
    assert rows.keys() == OUTPUTS.keys()
    for table, cells in rows.items():
        for path, function in re.findall(r"`([\w/]+\.py):(\w+)`", cells):
            assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), f"{table}: {path}:{function}"


def test_the_architecture_page_lists_every_registry() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    declaration = re.compile(r'^(\w+): Registry\[.*\] = Registry\(\s*"[\w ]+", "([\w.]+)"', re.MULTILINE)
    sources = [path.read_text(encoding="utf-8") for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
    declared = {(name, package.replace(".", "/")) for text in sources for name, package in declaration.findall(text)}
    assert len(declared) >= 8
    assert set(re.findall(r"^\| `([A-Z_]+)` \| `([\w/]+)`", page, re.MULTILINE)) == declared
