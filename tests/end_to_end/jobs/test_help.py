"""Every example in the help works, and every command line in the documentation is understood."""

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
demo.LOG = demo.LOG.model_copy(update={"pages": 3000, "queries": 30})
demo.draw(Path("build/demo/logs"))
for line in json.load(sys.stdin):
    print("$ " + line, flush=True)
    code = cli.invoke(cli.assay, shlex.split(line)[1:])
    sys.stdout.flush()
    print(f"= {code}", flush=True)
print("$ demo")
demo.show(demo.compare(Path("build/demo/logs")))
"""


def examples() -> list[str]:
    """The lines that the help of each command shows."""
    said = [cli.assay.help or ""]
    for name in cli.COMMANDS:
        found = cli.assay.get_command(click.Context(cli.assay), name)
        assert found is not None
        said.append(found.help or "")
    lines = [line.strip().partition(" > ")[0] for text in said for line in text.splitlines()]
    return [line for line in lines if line.startswith("assay ")]


def in_order(lines: list[str]) -> list[str]:
    """What makes something before what shows it, and what removes things last."""
    first = ["simulate", "label", "evaluate"]
    last = ["vacuum"]

    def place(line: str) -> tuple[int, int]:
        name = line.split()[1]
        return (first.index(name) if name in first else 9 if name in last else 5), lines.index(line)

    return sorted(dict.fromkeys(lines), key=place)


def smaller(line: str) -> str:
    """The same on less data."""
    return line.replace("--pages 40000", "--pages 3000 --set queries=40")


def test_every_command_has_an_example_and_each_of_them_works(tmp_path: Path, environment: dict[str, str]) -> None:
    lines = in_order(examples())
    assert {line.split()[1] for line in lines} == set(cli.COMMANDS)
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    with (tmp_path / "conf/base.yaml").open("a", encoding="utf-8") as base:
        base.write("spark: {settings: {spark.sql.shuffle.partitions: 3}}\n")
    opened = tmp_path / "opened"
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    opener.chmod(0o755)
    at = lines.index("assay evaluate --config conf/demo.yaml --date 2026-11-01")
    lines.insert(at + 1, "assay evaluate --config conf/demo.yaml --date 2026-11-02 --no-gate --log json")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps([smaller(line) for line in lines]),
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT), "PATH": f"{opener.parent}:{environment['PATH']}"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    codes = re.findall(r"^= (\d+)$", done.stdout, re.MULTILINE)
    # The log is so small that the gate cannot decide: then there is no release, and every number all the same.
    assert codes == ["6" if line == lines[at] else "0" for line in lines], done.stdout + done.stderr
    said = {part.partition("\n")[0]: part for part in done.stdout.split("$ ")[1:]}

    stages = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"time"')]
    ran = [line["stage"] for line in stages if "stage" in line]
    assert ran == ["read", "check", "inspect", "label", "score", "conclude", "inspect results"]
    assert next(line for line in stages if line.get("stage") == "score")["rows"] == 4 * 30
    assert "? gate undecidable: ndcg@10 better than baseline for neural" in said[lines[at]]
    assert "undecidable from this log:" in said[lines[at]]
    assert re.search(r"neural │ \+0\.\d{3} │ [+-]0\.\d{3} │", said["demo"]), "the truth is that neural is better"
    assert "The best system is neural." in said["demo"] and "Rank correlation with the true grade" in said["demo"]
    explained = said["assay explain --warehouse build/demo/warehouse --query q7 --system neural --system bm25"]
    assert "× discount" in explained and "neural: ndcg@10 0." in explained and "; / IDCG" in explained
    assert "✓ Spark: 4." in said["assay doctor"] and "workers have Python 3." in said["assay doctor"]
    assert "MLflow: sqlite:///" in said["assay doctor --config conf/demo.yaml"]
    assert "Nothing waits to be sent." in said["assay track --pending --config conf/demo.yaml"]
    trend = "assay trend --metric ndcg@10 --system neural --since 2026-10-01 --warehouse build/demo/warehouse"
    assert said[trend].count("●") == 2 and "not comparable" not in said[trend]
    (report,) = opened.read_text().split()
    assert report.endswith(".html") and Path(report.removeprefix("file://")).stat().st_size > 50_000


def written() -> list[tuple[str, str]]:
    """Every command line of ours in a fenced block of the documentation."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [
        (page.name, block)
        for page in pages
        for block in re.findall(r"```\w*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    return [(name, line) for name, block in blocks for line in block.splitlines() if line.startswith("assay ")]


@pytest.mark.parametrize(("page", "line"), written(), ids=lambda text: str(text)[:60])
def test_a_command_line_of_the_documentation_is_understood(page: str, line: str) -> None:
    """Lines with a place of their own are run with their page; the others must at least be what a command takes."""
    words = shlex.split(re.split(r"\s[>|#]\s?", line)[0], comments=True)
    command = cli.assay.get_command(click.Context(cli.assay), words[1])
    assert command is not None, f"{page}: {line}"
    command.make_context(words[1], words[2:])
