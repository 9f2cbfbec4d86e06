"""Every example in the help works, and every command line in the documentation parses."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from jobs import cli
from tests.end_to_end.conftest import ROOT

# All in one process, so that Java starts once.
RUNNER = """
import json, shlex, sys
from pathlib import Path
from jobs import cli, demo
demo.write_logs(Path("build/demo/logs"))
for line in json.load(sys.stdin):
    print("$ " + line, flush=True)
    code = cli.invoke(cli.assay, shlex.split(line)[1:])
    sys.stdout.flush()
    print(f"= {code}", flush=True)
print("$ demo")
demo.show_truth(demo.compare_demo(Path("build/demo/logs")))
"""

# A run on judgments, for the commands that need one.
JUDGED = """
extends: conf/base.yaml
inputs:
  rankings: {path: rankings.csv, format: csv}
  judgments: {path: judgments.csv, format: csv}
metrics: [ndcg@10]
warehouse: results
report: false
tracking: {enabled: false}
"""


def list_examples() -> list[str]:
    """List the example lines in the help of each command."""
    texts = [cli.assay.help or ""]
    for name in cli.COMMANDS:
        command = cli.assay.get_command(click.Context(cli.assay), name)
        assert command is not None
        texts.append(command.help or "")
    lines = [line.strip().partition(" > ")[0] for text in texts for line in text.splitlines()]
    return [line for line in lines if line.startswith("assay ")]


def sort_lines(lines: list[str]) -> list[str]:
    """Order the lines: what publishes first, what removes last."""
    first = ["simulate", "label", "evaluate"]
    last = ["vacuum"]

    def place(line: str) -> tuple[int, int]:
        name = line.split()[1]
        return (first.index(name) if name in first else 9 if name in last else 5), lines.index(line)

    return sorted(dict.fromkeys(lines), key=place)


def shrink(line: str) -> str:
    """Return the same line on less data."""
    return line.replace("--pages 40000", "--pages 1000 --set queries=15 --set documents=12")


def test_every_command_has_an_example_and_each_of_them_works(tmp_path: Path, environment: dict[str, str]) -> None:
    lines = sort_lines(list_examples())
    assert {line.split()[1] for line in lines} == set(cli.COMMANDS)
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    with (tmp_path / "conf/base.yaml").open("a", encoding="utf-8") as base:
        base.write("spark: {settings: {spark.sql.shuffle.partitions: 2, spark.driver.extraJavaOptions: -Xmn500m}}\n")
    opened = tmp_path / "opened"
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    opener.chmod(0o755)
    for judge, grades in (("anna", (3, 0, 1, 2)), ("ben", (3, 1, 1, 2))):  # two graded sheets
        sheet = "".join(f"q{n // 2},d{n},{grade}\n" for n, grade in enumerate(grades))
        (tmp_path / f"{judge}.csv").write_text(f"query_id,doc_id,grade\n{sheet}", encoding="utf-8")
    (tmp_path / "rankings.csv").write_text("system,query_id,doc_id,rank\nold,q,d1,1\nnew,q,d2,1\n", encoding="utf-8")
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade\nq,d2,1\n", encoding="utf-8")
    (tmp_path / "judged.yaml").write_text(JUDGED, encoding="utf-8")
    lines.insert(0, "assay evaluate --config judged.yaml --date 2026-11-01")
    at = lines.index("assay evaluate --config conf/demo.yaml --date 2026-11-01")
    lines.insert(at + 1, "assay evaluate --config conf/demo.yaml --date 2026-11-02 --no-gate --log json")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps([shrink(line) for line in lines]),
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT), "PATH": f"{opener.parent}:{environment['PATH']}"},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    codes = re.findall(r"^= (\d+)$", done.stdout, re.MULTILINE)
    assert codes == ["0"] * len(lines), done.stdout + done.stderr
    printed = {part.partition("\n")[0]: part for part in done.stdout.split("$ ")[1:]}

    stages = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"time"')]
    ran = [line["stage"] for line in stages if "stage" in line]
    assert ran == ["read", "check", "inspect", "label", "score", "conclude", "inspect results"]
    assert next(line for line in stages if line.get("stage") == "score")["rows"] == 4 * 200
    assert "✓ gate pass: ndcg@10 better than baseline for neural" in printed[lines[at]]
    assert "dcg@10 by traffic" in printed[lines[at]] and "What the difference in ndcg@10 rests on" in printed[lines[at]]
    # The truth, which follows from the seed; every interval contains it, and every query counts.
    rows = re.findall(r"│ (\w+) +│ ([+-]0\.\d{3}) │ .* │ +(yes|no) │ (\d+) of (\d+) │", printed["demo"])
    truth = {"neural": "+0.130", "hybrid": "+0.094", "pruned": "-0.090"}
    assert rows == [(system, gap, "yes", "200", "200") for system, gap in truth.items()], printed["demo"]
    assert "3 of 3 intervals contain the true difference." in printed["demo"]
    assert "Assay names neural, click rates name bm25." in printed["demo"]
    explained = printed["assay explain --warehouse build/demo/warehouse --query q7 --system neural --system bm25"]
    assert "× discount" in explained and "neural: ndcg@10 0." in explained and "mean over 30 draws" in explained
    assert "✓ Spark: 4." in printed["assay doctor"] and "workers have Python 3." in printed["assay doctor"]
    assert "MLflow: sqlite:///" in printed["assay doctor --config conf/demo.yaml"]
    assert "No run is pending." in printed["assay track --pending --config conf/demo.yaml"]
    trend = "assay trend --metric ndcg@10 --system neural --since 2026-10-01 --warehouse build/demo/warehouse"
    assert printed[trend].count("●") == 2 and "not comparable" not in printed[trend]
    (report,) = opened.read_text().split()
    assert report.endswith(".html") and Path(report.removeprefix("file://")).stat().st_size > 50_000


def list_documented_lines() -> list[tuple[str, str]]:
    """List every `assay` command line in a fenced block of the documentation."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [
        (page.name, block)
        for page in pages
        for block in re.findall(r"```\w*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    return [(name, line) for name, block in blocks for line in block.splitlines() if line.startswith("assay ")]


@pytest.mark.parametrize(("page", "line"), list_documented_lines(), ids=lambda text: str(text)[:60])
def test_a_command_line_of_the_documentation_parses(page: str, line: str) -> None:
    """Marked examples are run with their page; the other lines must at least parse."""
    words = shlex.split(re.split(r"\s[>|#]\s?", line)[0], comments=True)
    command = cli.assay.get_command(click.Context(cli.assay), words[1])
    assert command is not None, f"{page}: {line}"
    command.make_context(words[1], words[2:])
