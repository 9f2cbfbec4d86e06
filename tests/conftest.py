"""What every process needs; with several workers, the one that prints the summary loads no files of the folders."""

import os
from collections import Counter

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Give each worker, and what it starts, its own part of the processors.

    Python and Java wake each other for every call. From one processor to another, most of all in a virtual machine,
    that takes the kernel longer than the call.
    """
    worker: dict[str, str | int] | None = getattr(config, "workerinput", None)
    if worker is None or not hasattr(os, "sched_setaffinity"):
        return
    processors = sorted(os.sched_getaffinity(0))
    number, workers = int(str(worker["workerid"]).removeprefix("gw")), int(worker["workercount"])
    if len(processors) >= workers:
        os.sched_setaffinity(0, processors[number::workers])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many corruptions had which outcome."""
    reports = [
        report for of in terminalreporter.stats.values() for report in of if getattr(report, "when", "") == "call"
    ]
    ends = Counter(value for report in reports for key, value in report.user_properties if key == "end")
    if ends:
        summary = ", ".join(f"{count} {end}" for end, count in ends.most_common())
        terminalreporter.write_line(f"corruptions: {summary}")
