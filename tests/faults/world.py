"""A small world to disturb: its data, its warehouse, the command, and the numbers of an undisturbed run."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from pipelines.warehouse.runs import Manifest, list_committed
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from tests.faults.commands import Finished, FreshCommand, Place, WarmCommand, WarmProcess
from tests.faults.plan import FAIL_READS, FAIL_WRITES, NEVER, Plan, build_shim
from tests.helpers.judgments import DATE, write

SECRET = "hunter2-of-the-fault-suite"
QUERIES = 60
NO_PLAN = Plan()
# Writes to a folder or reads from it.
CALLS = {
    "warehouse": ("warehouse", FAIL_WRITES),
    "warehouse, reads": ("warehouse", FAIL_READS),
    "warm/0": ("warm/0", FAIL_WRITES),
    "data": ("data", FAIL_READS),
}
# Tables whose rows must be those of an undisturbed run, and the columns that identify a row.
NUMBERS = {
    "query_metrics": ("system", "query_id"),
    "segment_metrics": ("system", "segment", "value", "metric"),
    "comparisons": ("baseline", "candidate", "segment", "value", "metric"),
}


@dataclass
class World:
    """The folder of a series of faults; every command writes to the same warehouse."""

    folder: Path
    shim: Path | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)  # counted so far, by their kind
    commands: int = 0  # so far
    leaks: list[str] = field(default_factory=list)  # temporary files that warm processes left
    _warm: dict[int, WarmProcess] = field(default_factory=dict)

    @classmethod
    def create(cls, folder: Path) -> World:
        """Write the data, build the shim where there is a compiler, and evaluate undisturbed."""
        write(folder / "data", queries=QUERIES)
        (folder / "faults.yaml").write_text(_render_config(folder), encoding="utf-8")
        world = cls(folder, shim=build_shim(folder))
        done = world.run()
        assert done.code == 0, done.err
        world.digests = digest_run(world.storage, list_committed(world.storage)[0])
        return world

    @cached_property
    def seconds(self) -> float:
        """How long an undisturbed run takes in a process of its own; measured once, when a fault first asks for it."""
        start = time.monotonic()
        done = self.start().wait()
        assert done.code == 0, done.err
        return time.monotonic() - start

    def count_calls(self, kind: str) -> int:
        """The number of calls of a kind in an undisturbed run; it is counted once, when a fault first asks for it."""
        if kind not in self.calls:
            name, action = CALLS[kind]
            done = self.run(plan=Plan(action, f"{self.folder}/{name}/", after=NEVER))
            assert done.code == 0, done.err
            self.calls[kind] = done.calls
        return self.calls[kind]

    @property
    def storage(self) -> Storage:
        return Storage(str(self.folder / "warehouse"))

    @property
    def fresh(self) -> Place:
        """Where commands in processes of their own run: one after the other sees what a killed one left."""
        return Place(self.folder / "fresh", self.shim)

    def start(self, *settings: str, plan: Plan = NO_PLAN, debug: bool = False) -> FreshCommand:
        """Start the command in a process of its own."""
        return FreshCommand(self._build_words(settings, debug=debug), self.fresh, self._open_output(), plan)

    def start_warm(self, *settings: str, plan: Plan = NO_PLAN, number: int = 0) -> WarmCommand:
        """Start the command in a warm process, the first one or another."""
        if number not in self._warm or not self._warm[number].is_running:
            self._warm[number] = WarmProcess(Place(self.folder / "warm" / str(number), self.shim))
        return self._warm[number].start(self._build_words(settings), self._open_output(), plan)

    def run(self, *settings: str, plan: Plan = NO_PLAN) -> Finished:
        """Run the command in a warm process to its end."""
        return self.start_warm(*settings, plan=plan).wait()

    def kill_warm(self, number: int) -> None:
        """Kill a warm process with its command, and remove what Spark left: the next one begins again."""
        server = self._warm.pop(number)
        server.kill()
        shutil.rmtree(server.place.folder)

    def close_warm(self, number: int = 0) -> None:
        """End a warm process; what it leaves is a leak."""
        server = self._warm.pop(number)
        server.close()
        self.leaks += [f"{server.place.folder}/{file}" for file in sorted(server.place.list_files())]

    def close(self) -> None:
        """End all warm processes."""
        for number in list(self._warm):
            self.close_warm(number)

    def list_outputs(self, first: int) -> list[Path]:
        """The folders with the output of all commands after the first ones."""
        return [self.folder / "output" / str(number + 1) for number in range(first, self.commands)]

    def _open_output(self) -> Path:
        self.commands += 1
        output = self.folder / "output" / str(self.commands)
        output.mkdir(parents=True)
        return output

    def _build_words(self, settings: Sequence[str], *, debug: bool = False) -> list[str]:
        words = ["--config", str(self.folder / "faults.yaml"), "--date", DATE, "--force", "--log", "json"]
        return [*words, *(["--debug"] if debug else []), *(word for each in settings for word in ("--set", each))]


def digest_run(storage: Storage, manifest: Manifest) -> dict[str, str]:
    """A digest of each table with numbers, independent of the order of rows; raises where a row is missing."""
    digests = {}
    for name, keys in NUMBERS.items():
        table = pa.Table.from_batches(RunTables(storage, manifest).batches(name))
        if table.num_rows != manifest.tables[name].rows:
            raise ValueError(f"{name} has {table.num_rows} rows, its manifest says {manifest.tables[name].rows}")
        ordered = table.sort_by([(key, "ascending") for key in keys])
        digests[name] = hashlib.sha256(repr(ordered.to_pydict()).encode()).hexdigest()
    return digests


def _render_config(folder: Path) -> str:
    inputs = "".join(
        f"  {name}: {{path: '{folder}/data/{name}/dt={{date}}'}}\n" for name in ("rankings", "judgments", "queries")
    )
    return (
        f"inputs:\n{inputs}warehouse: {folder}/warehouse\n"
        "metrics: [ndcg@10, mrr]\nsegments: [device]\ncompare: {baseline: bm25, movers: 0, sensitivity: false}\n"
        f"checks: off\nreport: false\ntracking: {{enabled: false, uri: 'http://me:{SECRET}@127.0.0.1:9', seconds: 3}}\n"
        "spark: {master: 'local[2]', settings: {spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g, "
        f"spark.planted.password: {SECRET}, spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1'}}}}\n"
    )
