"""Whole `assay label` commands by the size of the log, cold, compared with the denoise rules as plain SQL in DuckDB.

    python -m benchmarks.label_scale --impressions 5000000 10000000 50000000
    python -m benchmarks.label_scale --impressions 5000000 --command "other/.venv/bin/assay"   # other code, same log

The log is simulated once, and copied with other ids of page, user and event until it is large enough.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

from benchmarks import label_rules
from benchmarks.commands import ASSAY
from benchmarks.memory import watch_peaks

FOLDER = Path("build/bench/labels").resolve()
DATE = "2026-01-11"  # the last one of the simulated log
PAGES = 100_000  # that are simulated
SHOWN = 10.5  # impressions of a page, with those of crawlers
OTHER_IDS = {"impressions": ("serp_id", "user_id", "session_id"), "interactions": ("event_id", "user_id", "serp_id")}
ROW_GROUP = 1_000_000


def main() -> None:
    """Measure every size and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impressions", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--command", default=shlex.join(ASSAY), help="another `assay` to measure")
    arguments = parser.parse_args()
    measure_all(arguments.impressions, shlex.split(arguments.command))


def measure_all(sizes: Sequence[int], command: Sequence[str] = ASSAY) -> list[dict[str, float]]:
    """The figures of every size."""
    figures = []
    for impressions in sizes:
        folder = write_log(round(impressions / PAGES / SHOWN) or 1)
        figures.append(measure(folder, command))
        print(_format_figures(figures[-1]), flush=True)
    return figures


def write_log(copies: int) -> Path:
    """Write a log of so many copies of the simulated one, if it is not there; returns its folder."""
    simulated, folder = FOLDER / "simulated", FOLDER / f"{copies} copies"
    if not simulated.exists():
        options = ["--to", str(simulated), "--pages", str(PAGES)]
        subprocess.run([*ASSAY, "simulate", *options], check=True, capture_output=True)
    for name in OTHER_IDS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for copy in range(copies):
            target = folder / name / f"{copy:03d}.parquet"
            if not target.exists():
                copy_rows(f"read_parquet('{simulated}/{name}/*.parquet')", target, name, copy)
    return folder


def copy_rows(source: str, target: Path, name: str, copy: int, order: str | None = None) -> None:
    """Write the rows of a table of a log to a Parquet or CSV file, with ids of this copy."""
    other = ", ".join(f"{column} || '~{copy}' AS {column}" for column in OTHER_IDS[name])
    rows = f"SELECT * REPLACE ({other}) FROM {source}" + ("" if order is None else f" ORDER BY {order}")
    options = f"FORMAT parquet, ROW_GROUP_SIZE {ROW_GROUP}" if target.suffix == ".parquet" else "FORMAT csv, HEADER"
    with connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{target}.part' ({options})")
    Path(f"{target}.part").rename(target)


def measure(folder: Path, command: Sequence[str]) -> dict[str, float]:
    """Rows per second from files to published labels, and the ratio to the rules alone in DuckDB."""
    sources = {name: {"path": name} for name in OTHER_IDS}
    rules = {"internal_user": {"pattern": "^staff-"}}
    settings = {"inputs": sources, "warehouse": "results", "labels": {"denoise": rules}}
    (folder / "config.yaml").write_text(json.dumps(settings), "utf-8")
    shutil.rmtree(folder / "results", ignore_errors=True)
    start = time.monotonic()
    with watch_peaks() as peaks:
        call = [*command, "label", "--config", str(folder / "config.yaml"), "--date", DATE]
        # In another folder: workers of other code would import the modules of this one.
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    if done.returncode:
        sys.exit(f"{shlex.join(call)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    # In a process of its own: the memory of this one is the driver's.
    with multiprocessing.get_context("spawn").Pool(1) as alone:
        rows, theirs = alone.apply(_apply_rules, (str(folder),))
    return {
        "impressions": rows,
        "seconds": seconds,
        "duckdb_seconds": theirs,
        "java_megabytes": peaks["driver (JVM)"],
        "worker_megabytes": peaks.get("worker (Python)", 0),
        "load": os.getloadavg()[0],
    }


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 2})
    connection.execute("SET enable_progress_bar = false")
    return connection


def _apply_rules(folder: str) -> tuple[int, float]:
    """The rows of the log, and how long the rules take."""
    start = time.monotonic()
    with connect() as connection:
        for name, draw in (("impressions", ", hash(serp_id) AS draw"), ("interactions", "")):
            connection.execute(f"CREATE VIEW {name} AS SELECT *{draw} FROM read_parquet('{folder}/{name}/*.parquet')")
        label_rules.apply_rules(connection)
        for query in (label_rules.CELLS, label_rules.USERS, label_rules.DROPS):
            connection.sql(query).to_arrow_table()
        seconds = time.monotonic() - start
        ((rows,),) = connection.execute("SELECT count(*) FROM impressions").fetchall()
    return rows, seconds


def _format_figures(figures: dict[str, float]) -> str:
    rows, seconds, duckdb_seconds = figures["impressions"], figures["seconds"], figures["duckdb_seconds"]
    return (
        f"{rows:,} impressions: {seconds:.1f} s, {rows / seconds:,.0f} rows/s, "
        f"the rules alone in DuckDB {duckdb_seconds:.1f} s, "
        f"ratio {seconds / duckdb_seconds:.1f}; peak {figures['java_megabytes']:,} MB in Java, "
        f"{figures['worker_megabytes']:,} MB in the largest worker; load {figures['load']:.1f}"
    )


if __name__ == "__main__":
    main()
