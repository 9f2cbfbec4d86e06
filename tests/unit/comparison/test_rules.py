"""The rules that report, tracking and commands share: headline, worst verdict, counting, bands and conditions."""

from typing import Any

import pytest

from pipelines.comparison.conditions.registry import CONDITIONS, ConditionKind, list_conditions, register_condition
from pipelines.comparison.counting import read_min_judged
from pipelines.comparison.headline import select_headline_metrics
from pipelines.comparison.readings.registry import READINGS, reading
from pipelines.comparison.segments import DERIVED
from pipelines.comparison.settings import BANDS, BandSettings
from pipelines.comparison.verdicts import find_worst_outcome
from pipelines.warehouse.runs import Manifest
from udfs.registry import parse_metric


def manifest(**values: Any) -> Manifest:
    text = dict.fromkeys(("run", "key", "dt", "status", "committed_at", "config_hash", "code", "spark"), "x")
    empty: dict[str, Any] = {"seconds": {}, "config": {}, "inputs": {}, "systems": (), "conventions": {}, "tables": {}}
    return Manifest(**text | empty | values)


def test_the_headline_has_the_gated_metrics_in_the_order_of_the_run() -> None:
    specs = [parse_metric(name) for name in ("catalog_coverage@10", "ndcg@10", "recall@10", "mrr@10")]
    assert [spec.name for spec in select_headline_metrics(specs, {"mrr@10", "ndcg@10"})] == ["ndcg@10", "mrr@10"]
    assert [spec.name for spec in select_headline_metrics(specs, ())] == ["ndcg@10"], "coverage has no value per query"


def test_fail_is_worse_than_undecidable_and_undecidable_than_pass() -> None:
    assert find_worst_outcome(["pass", "fail", "undecidable"]) == "fail"
    assert find_worst_outcome(["undecidable", "pass"]) == "undecidable"
    assert find_worst_outcome([]) == "none"


def test_a_published_run_has_the_minimum_that_it_was_evaluated_with() -> None:
    condense = {"unjudged": "cut_then_condense"}
    log, people = {"impressions": {"path": "log"}}, {"judgments": {"path": "j"}, "impressions": None}
    assert read_min_judged(manifest(config={"inputs": log}, conventions=condense)) == 0.7
    assert read_min_judged(manifest(config={"labels_of": "2026-11-01"}, conventions=condense)) == 0.7
    assert read_min_judged(manifest(config={"inputs": people}, conventions=condense)) is None
    assert read_min_judged(manifest(config={"compare": {"min_judged": 0.5}})) == 0.5


def test_every_key_of_the_bands_has_its_segment() -> None:
    assert DERIVED.keys() == BandSettings.model_fields.keys()
    assert set(BANDS) == {"traffic_band", "relevant_band"}


def test_conditions_are_documented_with_those_that_need_a_baseline_first() -> None:
    assert [kind.key for kind in list_conditions()] == ["drop", "relative_drop", "superiority", "at_least"]


def test_a_condition_and_a_reading_are_registered_once() -> None:
    drop: ConditionKind = CONDITIONS["drop"]
    with pytest.raises(ValueError, match="two entries are registered as gate condition 'drop'"):
        register_condition(drop)
    with pytest.raises(ValueError, match="two entries are registered as reading 'low_power'"):
        reading(READINGS["low_power"])
