"""What happens again and again beside a command: readers, and whatever else must not disturb a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

import duckdb

from pipelines.warehouse.runs import list_committed
from pipelines.warehouse.views import render_duckdb_views
from tests.faults.world import World, digest_run


class Loop:
    """Repeats an action until the block ends, and once more then; raises there what it raised."""

    def __init__(self, action: Callable[[], None], *, pause: float = 0.3) -> None:
        self._action, self._pause = action, pause
        self._error: Exception | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Loop:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        self._action()

    def _repeat(self) -> None:
        pause = self._pause
        while not self._closed.wait(pause):
            start = time.monotonic()
            try:
                self._action()
            except Exception as error:
                self._error = error
                return
            # On a busy machine the action takes long, and the command is to have most of the time.
            pause = max(self._pause, 3 * (time.monotonic() - start))


class Reader:
    """Reads every committed run, by its manifest and through the views of DuckDB."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.reads = 0
        self.problems: list[str] = []
        self._seen: set[str] = set()

    def read(self) -> None:
        """Read everything there is; whatever fails is a problem."""
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
                    self.problems.append(f"wrong numbers: in run {manifest.run}")

    def _read_views(self) -> None:
        live = list_committed(self.world.storage)[0]
        with duckdb.connect() as connection:
            connection.execute(render_duckdb_views(self.world.storage))
            (rows,) = connection.execute("SELECT count(*) FROM query_metrics").fetchall()
        if rows[0] != live.tables["query_metrics"].rows:
            self.problems.append(f"partial read: the view has {rows[0]} rows")
