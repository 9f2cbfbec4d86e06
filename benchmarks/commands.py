"""Whole commands, cold, as users run them, beside what they are compared with.

    python -m benchmarks.commands                          # every command, once in each of two rounds
    python -m benchmarks.commands --only small --rounds 3
    python -m benchmarks.commands --write docs/speed.md    # put the table into the page

Each command is a process of its own and starts its own Java. The smallest of its times counts, and ratios are between
times of one call of this benchmark: seconds depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.duckdb_scores import CUTS

FOLDER = Path("build/bench/commands").resolve()
DATE = "2026-11-01"
DOCUMENTS, LABELS = 20, 10
METRICS = [f"{name}@{k}" for name in ("ndcg", "precision", "recall", "map") for k in CUTS] + ["mrr", "rprec"]
ASSAY = [str(Path(sys.executable).with_name("assay"))]
BARE = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
print(spark.range(1000).count())
spark.stop()
"""
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Command:
    """A command, what it is compared with, and the largest ratio that is wanted."""

    name: str
    arguments: Sequence[str]
    beside: str | None = None
    limit: float | None = None


def write_six_rows(folder: Path) -> Path:
    """Write the example of the README; returns its configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    lists = {"old": ("shoe-1", "boot-7", "shoe-2"), "new": ("shoe-2", "shoe-1", "sock-4")}
    rows = [f"{name},red shoes,{doc},{rank}" for name, docs in lists.items() for rank, doc in enumerate(docs, 1)]
    (folder / "rankings.csv").write_text("\n".join(["system,query_id,doc_id,rank", *rows]) + "\n", "utf-8")
    labels = "query_id,doc_id,grade\nred shoes,shoe-1,2\nred shoes,shoe-2,3\nred shoes,boot-7,0\n"
    (folder / "labels.csv").write_text(labels, "utf-8")
    sources = {
        name: {"path": f"{file}.csv", "format": "csv"}
        for name, file in (("rankings", "rankings"), ("judgments", "labels"))
    }
    return _write_config(folder, sources, ["ndcg@3", "recall@2", "judged@3"])


def write_lists(folder: Path, queries: int) -> Path:
    """Write lists of 20 documents and 10 labels per query, half of them of ranked documents, as Parquet."""
    document = "'d' || lpad((hash(id, {}) % 10000000)::VARCHAR, 8, '0')"
    number = f"CASE WHEN n <= {LABELS // 2} THEN n * 4 ELSE n + 1000000000 END"
    query = "'q' || lpad(id::VARCHAR, 7, '0') AS query_id"
    tables = {
        "rankings": f"SELECT 's' AS system, {query}, {document.format('n')} AS doc_id, n::INTEGER AS rank "
        f"FROM range({queries}) AS q(id), range(1, {DOCUMENTS + 1}) AS r(n)",
        "labels": f"SELECT {query}, {document.format(number)} AS doc_id, (hash(n, id) % 4)::DOUBLE AS grade "
        f"FROM range({queries}) AS q(id), range(1, {LABELS + 1}) AS r(n)",
        "queries": f"SELECT {query}, 1.0::DOUBLE AS weight, 'segment ' || (hash(id) % 40) AS segment_of "
        f"FROM range({queries}) AS q(id)",
    }
    with duckdb.connect(config={"threads": 2}) as connection:
        for name, sql in tables.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            if not (folder / name / "part.parquet").exists():
                connection.execute(f"COPY ({sql}) TO '{folder / name / 'part.parquet'}'")
    sources = {
        name: {"path": file, "format": "parquet"}
        for name, file in (("rankings", "rankings"), ("judgments", "labels"), ("queries", "queries"))
    }
    return _write_config(folder, sources, METRICS, segments=["segment_of"])


def _write_config(folder: Path, sources: dict[str, dict[str, str]], metrics: Sequence[str], **more: object) -> Path:
    """Write a configuration; JSON is YAML."""
    target = folder / "config.yaml"
    settings = {"inputs": sources, "metrics": list(metrics), "warehouse": "results", **more}
    target.write_text(json.dumps(settings), "utf-8")
    return target


def list_small() -> list[Command]:
    """Commands on six rows."""
    config = str(write_six_rows(FOLDER / "six"))
    evaluate = [*ASSAY, "evaluate", "--config", config, "--date", DATE]
    return [
        Command("a bare Spark session", [sys.executable, "-c", BARE]),
        Command("six rows", [*evaluate, "--force"], "a bare Spark session", 2.0),
        Command("assay runs", [*ASSAY, "runs", "--warehouse", str(FOLDER / "six" / "results")]),
        Command("six rows again, already committed", evaluate, "assay runs", 1.5),
    ]


def list_medium() -> list[Command]:
    """50,000 lists, beside a bare session."""
    config = str(write_lists(FOLDER / "50k", 50_000))
    return [
        Command("a bare Spark session", [sys.executable, "-c", BARE]),
        Command(
            "50,000 lists",
            [*ASSAY, "evaluate", "--config", config, "--date", DATE, "--force"],
            "a bare Spark session",
            2.5,
        ),
    ]


def list_large() -> list[Command]:
    """A million lists, beside DuckDB with the columns that Assay publishes."""
    config = str(write_lists(FOLDER / "1m", 1_000_000))
    return [
        Command("DuckDB, a million lists", [sys.executable, "-m", "benchmarks.duckdb_scores", str(FOLDER / "1m")]),
        Command(
            "a million lists",
            [*ASSAY, "evaluate", "--config", config, "--date", DATE, "--force"],
            "DuckDB, a million lists",
            3.0,
        ),
    ]


def list_demo() -> list[Command]:
    """The demo, in an environment that exists, with its log and without."""
    demo = [sys.executable, "-m", "jobs.demo", "build/demo"]
    fresh = [sys.executable, "-c", "import shutil; shutil.rmtree('build/demo', ignore_errors=True)"]
    return [Command("remove the demo", fresh), Command("make demo", demo)]


GROUPS: dict[str, Callable[[], list[Command]]] = {
    "small": list_small,
    "medium": list_medium,
    "large": list_large,
    "demo": list_demo,
}


def measure(commands: Sequence[Command], rounds: int) -> dict[str, float]:
    """The smallest seconds of each command over the rounds, all commands in each round."""
    seconds: dict[str, list[float]] = {command.name: [] for command in commands}
    for _ in range(rounds):
        for command in commands:
            start = time.perf_counter()
            done = subprocess.run(command.arguments, capture_output=True, text=True, check=False)
            seconds[command.name].append(time.perf_counter() - start)
            if done.returncode:
                sys.exit(f"{command.name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return {name: min(times) for name, times in seconds.items()}


def build_table(commands: Sequence[Command], seconds: dict[str, float]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| command | seconds | beside | ratio | wanted |", "|---|---|---|---|---|"]
    for command in {command.name: command for command in commands if command.name != "remove the demo"}.values():
        took, ratio, wanted = seconds[command.name], "", ""
        if command.beside is not None:
            ratio, wanted = f"{took / seconds[command.beside]:.2f}", f"≤ {command.limit:g}"
        lines.append(f"| {command.name} | {took:.1f} | {command.beside or ''} | {ratio} | {wanted} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure, print the table, and return the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--write", type=Path, help="The page whose table is replaced.")
    options = parser.parse_args(arguments)
    commands: list[Command] = []
    seconds: dict[str, float] = {}
    before = os.getloadavg()[0]
    for group in options.only:
        listed = GROUPS[group]()
        seconds |= measure(listed, options.rounds)
        commands += listed
    loads = f"Load of the machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after; {os.cpu_count()} cores."
    lines = [*build_table(commands, seconds), "", loads]
    print("\n".join(lines))
    if options.write is not None:
        text = options.write.read_text("utf-8")
        head, tail = text.split(BEGIN)[0], text.split(END)[1]
        options.write.write_text("\n".join([head + BEGIN, *lines, END + tail]), "utf-8")
    return seconds


if __name__ == "__main__":
    main()
