"""Whole `assay label` commands over a window of days: from scratch, and where all days but the last are kept.

    python -m benchmarks.incremental --impressions 1000000 --days 28
    python -m benchmarks.incremental --impressions 1000000 --days 28 --format csv

Simulates a log with one folder per day, commits the window that ends a day before the last one, and then times the run
of the last day both ways, each in a process of its own with all of its checks. At the end the counts must be equal, and
the labels to 1e-9. With `--copies`, each page is logged several times, with other ids of page, user and event: a large
log without a long simulation.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.commands import ASSAY
from benchmarks.label_scale import OTHER_IDS, connect, copy_rows
from benchmarks.memory import watch_peaks

SHOWN = 10.5  # impressions of a page, with those of crawlers
FIRST = dt.date(2026, 1, 5)
ROUNDING = 1e-9
WAYS = ("incremental", "scratch")


def main() -> None:
    """Prepare the log and the window before the last day, then time the last day both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--impressions", type=int, default=200_000, help="per day")
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the log")
    parser.add_argument("--folder", help="where to keep log and warehouses for another call; default: a temporary one")
    arguments = parser.parse_args()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="incremental-"))
    try:
        if not (folder / "before").exists():
            prepare(folder, arguments)
        measure(folder, arguments.days)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


def prepare(folder: Path, arguments: argparse.Namespace) -> None:
    """Simulate the log, and commit the window that ends a day before the last one."""
    days = arguments.days + 1
    if not (folder / "simulated").exists():
        pages = round(arguments.impressions * days / SHOWN / arguments.copies)
        values = {"queries": arguments.queries, "days": days, "start": FIRST}
        options = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
        call = [*ASSAY, "simulate", "--to", f"{folder}/simulated", "--pages", str(pages), *options]
        subprocess.run(call, check=True, capture_output=True)
    for name in OTHER_IDS:
        for number in range(days):
            _write_day(folder, name, FIRST + dt.timedelta(days=number), arguments)
    for way in WAYS:
        log = {
            name: {"path": f"{folder}/{name}/{{date}}", "days": arguments.days, "format": arguments.format}
            for name in OTHER_IDS
        }
        config = {"inputs": log, "warehouse": str(folder / way), "labels": {"incremental": way == "incremental"}}
        (folder / f"{way}.yaml").write_text(json.dumps(config), "utf-8")
    print(f"the window before, all new: {_run(folder, 'incremental', days - 2):.1f} s", flush=True)
    (folder / "incremental").rename(folder / "before")


def _write_day(folder: Path, name: str, day: dt.date, arguments: argparse.Namespace) -> None:
    """The rows of a day in the order of their times, a file for each copy."""
    target = folder / name / str(day)
    if target.exists():
        return
    started = target.with_name(f".{day}")
    shutil.rmtree(started, ignore_errors=True)
    started.mkdir(parents=True)
    source = f"(FROM read_parquet('{folder}/simulated/{name}/*.parquet') WHERE ts::DATE = '{day}')"
    order = "ts, serp_id, position" if name == "impressions" else "ts, event_id"
    for copy in range(arguments.copies):
        copy_rows(source, started / f"{copy:03d}.{arguments.format}", name, copy, order=order)
    started.rename(target)


def measure(folder: Path, days: int) -> None:
    """Time the last day both ways, and compare what they published."""
    shutil.rmtree(folder / "incremental", ignore_errors=True)
    shutil.copytree(folder / "before", folder / "incremental", copy_function=os.link)  # its files never change
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    seconds = {way: _run(folder, way, days) for way in WAYS}
    manifests = {way: _read_manifest(folder / way, days) for way in WAYS}
    for way, manifest in manifests.items():
        stages = ", ".join(f"{name} {value:.1f}" for name, value in manifest["seconds"].items())
        rows = manifest["labels"]["read"]["impressions"]
        print(f"{way}: {seconds[way]:.1f} s ({stages}); {rows:,} impressions", flush=True)
    print(f"{seconds['incremental'] / seconds['scratch']:.1%} of the time from scratch; load {os.getloadavg()[0]:.1f}")
    compare_results(folder, manifests)


def _run(folder: Path, way: str, number: int) -> float:
    """Label the window that ends with a day; returns the seconds of the command."""
    date = FIRST + dt.timedelta(days=number)
    call = [*ASSAY, "label", "--config", f"{folder}/{way}.yaml", "--date", str(date)]
    start = time.monotonic()
    with watch_peaks() as peaks:
        done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{shlex.join(call)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    seconds = time.monotonic() - start
    print(f"{way}: {', '.join(f'{size:,} MB in {name}' for name, size in peaks.items())}", flush=True)
    return seconds


def _read_manifest(warehouse: Path, number: int) -> dict[str, Any]:
    """The manifest of the only run of a date."""
    (file,) = (warehouse / "runs" / str(FIRST + dt.timedelta(days=number))).glob("*.json")
    manifest: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return manifest


def compare_results(folder: Path, manifests: dict[str, dict[str, Any]]) -> None:
    """Raise unless the counts are equal, and the labels to rounding."""
    one, two = (manifests[way]["labels"] for way in WAYS)
    for name in ("read", "kept", "dropped", "attributions"):
        if one[name] != two[name]:
            raise AssertionError(f"{name} differs: {one[name]}, from scratch {two[name]}")
    with connect() as connection:
        for way in WAYS:
            place = folder / way / manifests[way]["tables"]["labels"]["path"]
            connection.execute(f"CREATE VIEW {way} AS FROM read_parquet('{place}/*.parquet')")
        columns = connection.execute("DESCRIBE scratch").fetchall()
        numbers = [name for name, kind, *_ in columns if kind in ("DOUBLE", "FLOAT")]
        exact = [name for name, *_ in columns if name not in (*numbers, "dt", "run")]
        gap = ", ".join(f"abs(one.{name} - two.{name})" for name in numbers)
        differs = " OR ".join(
            [f"one.{name} IS DISTINCT FROM two.{name}" for name in exact]
            + [f"(one.{name} IS NULL) != (two.{name} IS NULL)" for name in numbers]
        )
        ((rows, largest, unequal),) = connection.execute(
            f"SELECT count(*), max(greatest({gap})), count(*) FILTER ({differs}) "
            "FROM incremental one FULL JOIN scratch two USING (query_id, doc_id)"
        ).fetchall()
    print(f"{rows:,} labels, largest difference {largest:.1e}, {unequal} unequal", flush=True)
    if unequal or largest > ROUNDING:
        raise AssertionError("the labels differ from those from scratch")


if __name__ == "__main__":
    main()
