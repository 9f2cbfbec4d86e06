"""The command line, without Spark: help, logs, completion, scripts and the doctor."""

import io
import json
import logging
import os
import pty
import re
import subprocess
import sys
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

from jobs import cli, doctor
from jobs.support.logs import JsonLines, StageList, configure_logging
from pipelines.simulation.settings import build_simulation_settings
from pipelines.stages import Stages
from pipelines.warehouse.runs import TableRecord
from tests.helpers.published_runs import publish

ASSAY = Path(sys.executable).parent / "assay"


def assay(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ASSAY), *map(str, arguments)], env=os.environ | environment, capture_output=True, text=True, check=False
    )


def call_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    """Call a command in this process and return the JSON that it prints."""
    capsys.readouterr()
    assert cli.invoke(cli.assay, [*map(str, arguments), "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_help_imports_nothing_heavy() -> None:
    """Help answers at once: nothing that takes long to import is imported."""
    script = (
        "import sys; from jobs.cli import assay; assay.main(['--help'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"pyspark", "pandas", "pyarrow", "numpy", "mlflow", "rich", "pydantic", "scipy", "yaml"}


def test_help_answers_within_half_a_second() -> None:
    """Half a second of processor time, which does not depend on other work on the machine."""
    before = os.times()
    assert assay("--help").returncode == 0
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.5


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(cli.assay, [name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"  assay {name}" in text
    assert "--output [table|json" in text
    assert "--debug" in text


def test_without_a_command_it_lists_the_commands() -> None:
    done = assay()
    assert "Commands:" in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_the_shell_completes_commands_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        done = assay(_ASSAY_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(place))
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert completed("assay tr", 1) == ["trend", "track"]
    assert completed("assay report --com", 2) == ["--compare"]
    assert "complete" in assay(_ASSAY_COMPLETE="bash_source").stdout


def test_commands_without_spark_print_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, manifest = publish(tmp_path)
    at = ("--warehouse", tmp_path)
    assert [run["run"] for run in call_json(capsys, "runs", *at)] == [manifest.run]
    assert call_json(capsys, "report", *at)["report"].endswith(f"reports/2026-11-01/{manifest.run}.html")
    trend = call_json(capsys, "trend", *at, "--metric", "recall@20", "--system", "old", "--to", tmp_path / "t.html")
    assert trend["systems"]["old"][0]["mean"] == 1.0
    assert (tmp_path / "t.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert call_json(capsys, "vacuum", *at, "--keep", "1", "--dry-run") == {
        "runs": [],
        "unreferenced": [],
        "removed": False,
    }
    assert "CREATE" in call_json(capsys, "tables", *at, "--sql", "duckdb")["views"]
    assert call_json(capsys, "metrics", "ndcg")[0]["written"] == "ndcg(gain, judged_only)[@k]"
    assert call_json(capsys, "power", "--delta", "0.01", "--stddev", "0.25")["needed"] == 4906
    (good, *_) = call_json(capsys, "doctor", "--no-spark", *at)
    assert good == {"check": "Python", "good": True, "detail": good["detail"], "fix": ""}


def test_the_doctor_prints_how_to_fix_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "bad.yaml").write_text("metrics: [ndgc@10]\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(doctor.PACKAGES, "numpy", ("99", None))
    diagnoses = doctor.run_diagnostics(str(tmp_path / "bad.yaml"), str(tmp_path / "file"), spark=True)
    failures = {diagnosis.check: diagnosis for diagnosis in diagnoses if not diagnosis.good}
    assert list(failures) == ["numpy", "Java", "configuration", "warehouse"]
    assert "openjdk-17" in failures["Java"].fix
    assert "99 or newer is needed" in failures["numpy"].fix
    assert "did you mean 'ndcg@10'" in failures["configuration"].detail
    assert cli.invoke(cli.assay, ["doctor", "--no-spark"]) == 1
    printed = capsys.readouterr()
    assert "✗ Java: none on the PATH or in JAVA_HOME\n    install Java 17" in printed.out
    assert "2 of 8 checks failed: numpy, Java" in printed.err


def test_the_doctor_needs_the_versions_that_the_project_declares() -> None:
    project = tomllib.loads((Path(cli.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {}
    for text in project["dependencies"]:
        name, least, below = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<([\d.]+))?", text).groups()  # type: ignore[union-attr]
        declared[name] = (least, below)
    assert {name: declared[name] for name in doctor.PACKAGES} == doctor.PACKAGES


@pytest.mark.parametrize(("version", "good"), [("17.0.2", True), ("1.8.0_401", False), ("21", True)])
def test_the_doctor_reads_the_version_of_java(
    version: str, good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "java"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.check_java().good is good


def test_a_warning_about_an_optional_package_does_not_reach_the_terminal() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        configure_logging(["evaluate"], debug=False)
        warnings.warn("SOCKS support in urllib3 requires the installation of optional dependencies", stacklevel=1)
        warnings.warn("another", stacklevel=1)
    assert [str(warning.message) for warning in shown] == ["another"]


@pytest.mark.parametrize(
    ("date", "problem"),
    [
        ("2026-02-30", "'2026-02-30' is not a date; write it as 2026-11-01"),
        ("9999-12-31", "9999-12-31 is not in the years 1900 to 2200"),
        ("0001-01-01", "0001-01-01 is not in the years 1900 to 2200"),
    ],
)
def test_a_date_that_no_run_can_have_is_refused(date: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(cli.assay, ["evaluate", "--config", "absent.yaml", "--date", date]) == 2
    assert f"Invalid value for '--date': {problem}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_numbers_that_are_not_finite_are_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(cli.assay, ["power", "--delta", number, "--stddev", "1"]) == 2
    assert f"'{number}' is not a finite number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--set", "start=2026-02-30"], "cannot read the value of 'start=2026-02-30' (start)"),
        (["--set", "start=9999-12-31"], "9999-12-31 is not in the years 1900 to 2200 (start)"),
        (["--seed", str(10**20)], "it must be less than"),
        (["--set", "pages=1", "--set", "pages.more=2"], "'pages.more=2' sets a key of pages"),
        (["--set", "pages=["], "cannot read the value of 'pages=[' (pages)"),
    ],
)
def test_settings_of_a_simulation_that_cannot_be_are_refused(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(cli.assay, ["simulate", "--to", str(tmp_path / "log"), *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_the_start_of_a_simulation_is_a_date() -> None:
    assert build_simulation_settings({}, ["start=2026-03-01"]).start == "2026-03-01"


def test_a_warning_is_shown_once_in_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        configure_logging(["label"], debug=False)
        for name in ("impressions", "impressions", "interactions"):
            logging.getLogger("pipelines.inputs").warning("%s have no user", name)
            logging.getLogger("pipelines.inputs").info("read")
        lines = capsys.readouterr().err.splitlines()
        shown = [line.rpartition(" pipelines.inputs ")[2] for line in lines]
        assert shown == ["impressions have no user", "read", "read", "interactions have no user", "read"]


def test_a_stage_is_one_line_with_seconds_and_the_rows_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(["evaluate", "--log", "json"], debug=False)
    stages, tables = Stages(), {"labels": TableRecord(path="l", rows=3)}
    stages.tables = tables
    with stages.stage("score"):
        tables["query_metrics"] = TableRecord(path="q", rows=7)
    (line,) = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert (entry["stage"], entry["state"], entry["rows"]) == ("score", "end", 7)
    assert entry["seconds"] == stages.seconds["score"]
    assert entry["logger"] == "pipelines.stages"
    assert entry["message"] == f"stage=score seconds={entry['seconds']:.1f} rows=7"
    configure_logging(["evaluate"], debug=False)
    with stages.stage("again"):
        time.sleep(0.01)
    assert re.search(r"INFO pipelines.stages stage=again seconds=\d\.\d\n$", capsys.readouterr().err)


def test_the_live_list_shows_what_ended_and_what_runs() -> None:
    from rich.console import Console

    shown = StageList()
    shown.begin_start()
    record = logging.makeLogRecord
    shown.emit(record({"stage": "read", "state": "begin"}))
    shown.emit(record({"stage": "read", "state": "end", "seconds": 2.5, "rows": 1200}))
    shown.emit(record({"stage": "score", "state": "begin"}))
    shown.tasks = lambda: (3, 4)  # type: ignore[method-assign]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(shown)
    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines[0][:5] == ["…", "start", "Spark", "0", "s"]
    assert lines[1] == ["✓", "read", "2.5", "s", "1,200", "rows"]
    assert lines[2] == ["…", "score", "0", "s", "█" * 15 + "░" * 5, "3/4", "tasks"]


def test_a_terminal_shows_the_list_and_keeps_other_lines_above_it() -> None:
    script = (
        "import logging; from jobs.support.logs import configure_logging, show_progress\n"
        "from pipelines.stages import Stages\n"
        "configure_logging([], debug=False)\n"
        "with show_progress('text'):\n"
        "    with Stages().stage('score'):\n"
        "        logging.getLogger('pipelines.inputs.read').warning('two days are missing')\n"
    )
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", script], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    screen = os.read(ours, 65536).decode()
    os.close(ours)
    assert "WARNING pipelines.inputs.read two days are missing" in screen
    assert re.search(r"✓\S*  score +\d\.\d s", screen)
    assert "start Spark" in screen.partition("score")[0]  # from the first moment
    assert "stage=score" not in screen  # the list shows it already


def test_a_trace_in_the_log_stays_on_its_line() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        record = logging.makeLogRecord({"msg": "it failed", "exc_info": sys.exc_info(), "levelname": "ERROR"})
    line = JsonLines().format(record)
    assert "\n" not in line
    assert json.loads(line)["trace"].endswith("second")


def test_a_process_does_not_look_for_garbage_among_the_objects_of_its_libraries() -> None:
    script = (
        "import atexit, gc; from jobs.cli import assay, run_process; "
        "atexit.register(lambda: print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 10_000)); "
        "run_process(assay)"
    )
    done = subprocess.run([sys.executable, "-c", script, "nothing"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (2, ["True", "True"])
