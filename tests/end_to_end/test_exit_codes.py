"""Every way a run can go wrong has its exit code and a message that names the place."""

from pathlib import Path

import pytest

from tests.end_to_end.conftest import Run

BEFORE_JAVA = {"JAVA_HOME": "/nowhere"}


def evaluate(run: Run, demo: Path, *options: str, date: str = "2026-11-01", **changes: str) -> tuple[int, str]:
    done = run("assay", "evaluate", "--config", demo / "demo.yaml", "--date", date, *options, **changes)
    assert "Traceback" not in done.stderr + done.stdout
    assert "\tat org.apache" not in done.stderr
    return done.returncode, " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("metrisc=[ndcg@10]", "--set metrisc at metrisc: did you mean 'metrics'?"),
        ("metrics=[ndcg@10, ndgc@5]", "unknown metric 'ndgc@5': did you mean 'ndcg@5'?"),
        ("max_rejected=lots", "wrong value 'lots' in --set max_rejected at max_rejected"),
    ],
)
def test_a_configuration_error_comes_before_java(run: Run, demo: Path, option: str, message: str) -> None:
    code, said = evaluate(run, demo, "--set", option, JAVA_HOME="/nowhere")
    assert code == 2
    assert message in said


def test_a_date_that_is_none_is_a_configuration_error(run: Run, demo: Path) -> None:
    code, said = evaluate(run, demo, date="yesterday")
    assert code == 2
    assert "write it as 2026-11-01" in said


def test_without_java_one_line_says_what_to_install(run: Run, demo: Path, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(Path(run("python", "-c", "import sys; print(sys.executable)").stdout.strip()))
    code, said = evaluate(run, demo, JAVA_HOME="", PATH=f"{tmp_path}:{Path(run('which', 'assay').stdout).parent}")
    assert code == 1
    assert "Java 17" in said and "apt-get install" in said


def test_unusable_inputs_and_warehouses_are_named(run: Run, demo: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 but not really")
    narrow = tmp_path / "narrow.csv"
    narrow.write_text("query,document\nq,d\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("query_id,doc_id,grade\n")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    judgments = "inputs.judgments={path: %s, format: %s}"
    cases = [
        (
            ("--set", judgments % (tmp_path / "none", "csv")),
            3,
            f"judgments does not exist or has no files (inputs.judgments: {tmp_path}/none)",
        ),
        (("--set", judgments % (narrow, "csv")), 3, "judgments lacks query_id, doc_id, grade: found query, document"),
        (("--set", judgments % (empty, "csv")), 3, "judgments is empty"),
        (("--set", judgments % (broken, "parquet")), 3, f"{broken} is not a Parquet file"),
        (("--set", f"warehouse={blocked}"), 5, str(blocked)),
    ]
    for options, code, message in cases:
        got, said = evaluate(run, demo, *options)
        assert (got, message in said) == (code, True), said
    got, said = evaluate(run, demo, date="2026-11-02")
    assert got == 3
    assert "has no data for 2026-11-02" in said
