"""`assay fsck`: damage of every kind is found, named by its path, and comes with what to do."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.cli import assay, invoke
from pipelines.warehouse.code_version import hash_code
from pipelines.warehouse.fsck import check_warehouse
from pipelines.warehouse.runs import manifest_path
from pipelines.warehouse.storage import Storage
from tests.helpers.published_runs import QUERIES, publish
from tests.helpers.users import become_nobody, open_public_folder

RUN = "aaaaaaaaaaaa-000001"
TABLE = f"query_metrics/dt=2026-11-01/run={RUN}"
ROWS = 2 * len(QUERIES)


@pytest.fixture
def warehouse(tmp_path: Path) -> Storage:
    """A run with three files of query metrics, whose manifest has their number and size."""
    storage, manifest = publish(tmp_path, run=RUN, code=hash_code())
    sizes = {name: storage.measure(record.path) for name, record in manifest.tables.items()}
    tables = {
        name: record.model_copy(update={"files": sizes[name][0], "bytes": sizes[name][1]})
        for name, record in manifest.tables.items()
    }
    whole = manifest.model_copy(update={"tables": tables})
    storage.put(manifest_path(manifest.dt, manifest.run), whole.model_dump_json())
    return storage


def find_problems(storage: Storage) -> dict[str, str]:
    return {problem.path: problem.problem for problem in check_warehouse(storage).problems}


def test_a_whole_warehouse_has_no_problems(warehouse: Storage) -> None:
    state = check_warehouse(warehouse)
    assert (state.runs, state.problems, state.leftovers) == (1, (), ())


def test_a_missing_file_and_a_missing_table(warehouse: Storage) -> None:
    warehouse.delete(f"{TABLE}/part-0.parquet")
    warehouse.delete(f"comparisons/dt=2026-11-01/run={RUN}")
    problems = find_problems(warehouse)
    assert problems.pop(f"comparisons/dt=2026-11-01/run={RUN}") == "has no files, but the manifest has 3 rows"
    assert problems == {TABLE: f"has {ROWS - 134} rows, but the manifest has {ROWS}"}
    (first, *_) = [p for p in check_warehouse(warehouse).problems if p.path == TABLE]
    assert first.problem == "has 2 files, but the manifest has 3"
    assert f"runs/2026-11-01/{RUN}.json" in first.advice and "restore" in first.advice


def test_a_truncated_file(warehouse: Storage) -> None:
    file = Path(warehouse.local(f"{TABLE}/part-1.parquet"))
    file.write_bytes(file.read_bytes()[:-100])
    state = [(p.path, p.problem.partition(":")[0]) for p in check_warehouse(warehouse).problems]
    assert state[1] == (f"{TABLE}/part-1.parquet", "cannot be read")
    assert "bytes, but the manifest has" in state[0][1]


def test_another_schema(warehouse: Storage) -> None:
    file = Path(warehouse.local(f"{TABLE}/part-1.parquet"))
    rows = pq.read_table(file)
    pq.write_table(
        rows.set_column(rows.schema.get_field_index("weight"), "weight", rows["weight"].cast(pa.string())), file
    )
    assert find_problems(warehouse)[f"{TABLE}/part-1.parquet"] == "has different columns from the files beside it"
    for part in (0, 2):
        warehouse.delete(f"{TABLE}/part-{part}.parquet")
    assert find_problems(warehouse)[f"{TABLE}/part-1.parquet"] == "has the column weight as string, not double"
    pq.write_table(rows.drop_columns(["judged"]), file)
    assert find_problems(warehouse)[f"{TABLE}/part-1.parquet"] == "lacks the column judged"


def test_the_command_says_what_to_do_and_exits_with_4(
    warehouse: Storage, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["fsck", "--warehouse", str(tmp_path)]
    assert invoke(assay, words) == 0
    assert capfd.readouterr().out == "1 run checked, 0 problems\n"
    warehouse.put("runs/2026-11-01/bad.json", '{"run"')
    warehouse.put("labels/dt=2026-11-01/run=x-1/part-0.parquet", "")
    assert invoke(assay, words) == 4
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        "runs/2026-11-01/bad.json: not a manifest: not JSON: EOF while parsing an object at line 1 column 6",
        "  restore it from a backup, or delete it; until then its run is not listed, and its tables are kept",
        "labels/dt=2026-11-01/run=x-1 belongs to no committed run: `assay vacuum` removes it, unless a process still "
        "writes it",
        "1 run checked, 1 problem",
    ]
    assert f"the warehouse has 1 problem ({tmp_path})" in err
    assert invoke(assay, [*words, "--output", "json"]) == 4
    assert json.loads(capfd.readouterr().out)["problems"][0]["path"] == "runs/2026-11-01/bad.json"


def test_what_may_not_be_read_or_deleted_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    def call(*words: str) -> tuple[int, str]:
        with become_nobody():
            code = invoke(assay, [*words, "--warehouse", str(folder)])
        out, err = capfd.readouterr()
        return code, " ".join((out + err).split())

    with open_public_folder() as folder:
        publish(folder, run=RUN)
        publish(folder, run="bbbbbbbbbbbb-000001", committed_at="2026-11-02T05:00:00.000000+00:00")
        (folder / TABLE).chmod(0)
        code, text = call("fsck")
        assert code == 4
        assert f"{TABLE}: cannot be read:" in text and "let the user that runs this command read it" in text
        (folder / TABLE).chmod(0o755)
        code, text = call("vacuum", "--keep", "1")
        assert code == 5
        assert "cannot delete:" in text and f"runs/2026-11-01/{RUN}.json" in text
        (folder / "runs").chmod(0)
        for words in (["runs"], ["fsck"]):
            code, text = call(*words)
            assert code == 3
            assert f"permission denied: [Errno 13] Cannot list directory '{folder}/runs'" in text
