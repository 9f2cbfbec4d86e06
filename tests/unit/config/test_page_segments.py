"""Segments of the log in the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.config.load import build_config
from schemas.errors import ConfigurationError

LOG = {"impressions": {"path": "i"}, "interactions": {"path": "e"}}


def test_columns_of_the_log_and_of_queries_are_told_apart_by_their_prefix() -> None:
    segments = ["impressions.device", "category", ["impressions.device", "category"], "traffic_band"]
    config = build_config({"inputs": LOG | {"queries": {"path": "q"}}, "segments": segments}, "test")
    assert config.page_columns == ("device",)
    assert config.segment_columns == ("category",)
    assert config.query_segments == (("category",), ("traffic_band",))
    assert config.page_segments == (("impressions.device",), ("impressions.device", "category"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segments": ["device"]}, r"or write impressions\.device for a column of the log"),
        (
            {"segments": ["impressions.device", "device"], "inputs": LOG | {"queries": {"path": "q"}}},
            r"'device' is a segment of the log and of queries",
        ),
        (
            {
                "segments": ["impressions.device"],
                "inputs": {"rankings": {"path": "r"}, "judgments": {"path": "j"}},
            },
            r"the segment impressions\.device needs inputs\.impressions, a log",
        ),
        ({"segments": ["impressions.weight"]}, r"has the name of a column that query_metrics has already"),
        (
            {
                "segments": ["impressions.device"],
                "gate": [{"metric": "ndcg@10", "segment": "locale", "drop": 0.1}],
                "compare": {"baseline": "a"},
            },
            r"the segment 'locale', which is not reported: add it to segments, or .*device",
        ),
    ],
)
def test_what_cannot_be_a_segment_is_explained(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build_config({"inputs": LOG} | change, "test")
