"""Figures of single inputs, from the values of their aggregates."""

from pipelines.quality.expectations.count_sheet import MetricKey
from pipelines.quality.row_figures import FigureKey, collect_row_figures


def test_values_become_figures_mappings_and_samples_by_their_keys() -> None:
    values = {
        MetricKey("impressions", "column_values.nonnull.unexpected_count", "ts", ""): 9,  # of a suite: no figure
        FigureKey("clicks"): 3,
        FigureKey("days", "2026-11-01"): 0,
        FigureKey("days", "2026-11-02"): 5,
        FigureKey("strange_times_sample", end="smallest"): 12.0,
        FigureKey("strange_times_sample", end="largest"): 34567.0,
        FigureKey("grades", "0"): 0,
        FigureKey("grades", "1"): 4,
    }
    assert collect_row_figures(dict(values), ["2026-11-01", "2026-11-02"]) == {
        "window": ["2026-11-01", "2026-11-02"],
        "clicks": 3,
        "days": {"2026-11-01": 0, "2026-11-02": 5},
        "strange_times_sample": ["12 s", "34,567 s"],
        "grades": {"1": 4},
    }


def test_a_sample_without_values_is_empty() -> None:
    assert collect_row_figures({FigureKey("strange_dwells_sample", end="smallest"): None}, None) == {
        "strange_dwells_sample": []
    }
