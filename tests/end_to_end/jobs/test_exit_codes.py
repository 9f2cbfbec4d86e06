"""Every kind of failure has its exit code and a message that names the cause."""

from pathlib import Path

import pytest

from tests.end_to_end.conftest import Command, CommandResult, InTurn, Run, WarmProcess

PAIRS = ("--set", "compare={baseline: neural, movers: 0}")
FAILING = ("--set", "gate=[{metric: ndcg@10, superiority: true, candidate: bm25}]", *PAIRS)


def evaluation(demo: Path, *options: str, date: str = "2026-11-01") -> Command:
    return ("assay", "evaluate", "--config", demo / "demo.yaml", "--date", date, *options)


def evaluate(run: Run, demo: Path, *options: str, date: str = "2026-11-01", **changes: str) -> tuple[int, str]:
    done = run(*evaluation(demo, *options, date=date), **changes)
    return summarise(CommandResult(done.returncode, done.stdout, done.stderr))


def summarise(done: CommandResult) -> tuple[int, str]:
    """Return the exit code and the message of a command, which never contains a stack trace."""
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
    code, text = evaluate(run, demo, "--set", option, JAVA_HOME="/nowhere")
    assert code == 2
    assert message in text


def test_a_date_that_is_none_is_a_configuration_error(run: Run, demo: Path) -> None:
    code, text = evaluate(run, demo, date="yesterday")
    assert code == 2
    assert "write it as 2026-11-01" in text


def test_without_java_one_line_says_what_to_install(run: Run, demo: Path, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(Path(run("python", "-c", "import sys; print(sys.executable)").stdout.strip()))
    code, text = evaluate(
        run, demo, "--force", JAVA_HOME="", PATH=f"{tmp_path}:{Path(run('which', 'assay').stdout).parent}"
    )
    assert code == 1
    assert "Java 17" in text and "apt-get install" in text


def test_unusable_inputs_and_warehouses_are_named(in_turn: InTurn, demo: Path, tmp_path: Path) -> None:
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
            f"judgments does not exist or has no files (--set inputs.judgments at inputs.judgments: {tmp_path}/none)",
        ),
        (("--set", judgments % (narrow, "csv")), 3, "at inputs.judgments): found query, document"),
        (("--set", judgments % (empty, "csv")), 3, "judgments is empty"),
        (("--set", judgments % (broken, "parquet")), 3, f"{broken} is not a Parquet file"),
        (("--set", f"warehouse={blocked}"), 5, str(blocked)),
    ]
    *results, other_day = in_turn(
        [*[evaluation(demo, *options) for options, _, _ in cases], evaluation(demo, date="2026-11-02")]
    )
    for (_, code, message), done in zip(cases, results, strict=True):
        got, text = summarise(done)
        assert (got, message in text) == (code, True), text
    got, text = summarise(other_day)
    assert got == 3
    assert "has no data for 2026-11-02" in text


@pytest.fixture(scope="module")
def failed(warm_process: WarmProcess, demo: Path) -> CommandResult:
    """A published run whose gate fails."""
    return warm_process.run(evaluation(demo, *FAILING))


def test_a_gate_stops_the_release_but_not_the_publishing(
    failed: CommandResult, run: Run, in_turn: InTurn, demo: Path
) -> None:
    small = "gate=[{metric: ndcg@10, drop: 0.01, segment: device, value: ios, candidate: bm25, min_queries: 9999}]"
    shown, let_through, undecided = in_turn(
        [
            ("assay", "runs", "--warehouse", demo / "warehouse", "--output", "json"),
            evaluation(demo, *FAILING, "--no-gate"),
            evaluation(demo, "--set", small, *PAIRS),
        ]
    )
    code, text = summarise(failed)
    assert code == 6
    assert "the gate fails, 1 of 1 conditions: ndcg@10 better than baseline for bm25: delta" in text
    assert "✗ gate fail: ndcg@10 better than baseline for bm25: delta -0." in failed.stdout
    assert '"verdict":"fail"' in shown.stdout.replace('": "', '":"')
    assert let_through.returncode == 0  # reused, and let through
    assert "✗ gate fail" in let_through.stdout
    code, text = summarise(undecided)
    assert code == 6
    assert "the gate is undecidable, 1 of 1 conditions: " in text
    assert "1,050 queries, fewer than min_queries = 9,999" in text
    code, text = evaluate(run, demo, "--set", "gate=[{metric: mrr@10, drop: 0.01}]", JAVA_HOME="/nowhere")
    assert code == 2
    assert "gate[0] is about 'mrr@10', which is not computed" in text


def test_published_runs_are_compared_and_give_the_number_of_queries_needed(
    failed: CommandResult, in_turn: InTurn, demo: Path
) -> None:
    place = ("--warehouse", demo / "warehouse")
    both = ("2026-11-01", "2026-11-01", "--before-system", "hybrid", "--system", "neural", "--master", "local[2]")
    assert failed.returncode == 6  # which does not matter here
    power, compared, unknown = in_turn(
        [
            ("assay", "power", "--delta", "0.01", "--metric", "ndcg@10", "--candidate", "bm25", *place),
            ("assay", "compare", *both, *place),
            ("assay", "compare", "2026-11-01", "2026-10-01", *place),
        ]
    )
    assert power.returncode == 0, power.stderr
    assert "queries detect a true difference of 0.01 in 80% of cases" in power.stdout
    assert compared.returncode == 0, compared.stderr
    assert "ndcg@10, mean over queries: +0.0179 = +0.0179 within" in compared.stdout
    assert unknown.returncode == 3
    assert "there is no run '2026-10-01'" in unknown.stderr
