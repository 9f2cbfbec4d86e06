"""Readers in a loop: whatever a run is doing, they see whole runs with the right numbers."""

from __future__ import annotations

import threading
from types import TracebackType

import duckdb

from pipelines.warehouse.runs import list_committed
from pipelines.warehouse.views import render_duckdb_views
from tests.faults.world import World, digest_run


class LoopingReader:
    """Reads every committed run, by its manifest and through the views of DuckDB, until the block ends."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.reads = 0
        self.problems: list[str] = []
        self._seen: set[str] = set()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> LoopingReader:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()
        self._read()

    def _loop(self) -> None:
        while not self._closed.wait(0.2):
            self._read()

    def _read(self) -> None:
        try:
            self._read_runs()
            self._read_views()
        except Exception as error:  # any failure of a reader is a problem to report
            self.problems.append(f"partial read: {type(error).__name__}: {str(error)[:300]}")
        self.reads += 1

    def _read_runs(self) -> None:
        for manifest in list_committed(self.world.storage):
            if manifest.run not in self._seen:
                self._seen.add(manifest.run)
                if digest_run(self.world.storage, manifest) != self.world.digests:
                    self.problems.append(f"wrong numbers in run {manifest.run}")

    def _read_views(self) -> None:
        live = list_committed(self.world.storage)[0]
        with duckdb.connect() as connection:
            connection.execute(render_duckdb_views(self.world.storage))
            (rows,) = connection.execute("SELECT count(*) FROM query_metrics").fetchall()
        if rows[0] != live.tables["query_metrics"].rows:
            self.problems.append(f"partial read: the view has {rows[0]} rows")
