"""What the process that prints the summary needs: with several workers, it does not load the files of the folders."""

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many corruptions had which outcome."""
    reports = [
        report for of in terminalreporter.stats.values() for report in of if getattr(report, "when", "") == "call"
    ]
    ends = Counter(value for report in reports for key, value in report.user_properties if key == "end")
    if ends:
        summary = ", ".join(f"{count} {end}" for end, count in ends.most_common())
        terminalreporter.write_line(f"corruptions: {summary}")
