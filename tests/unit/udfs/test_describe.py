"""What is said about the metrics, all of it from the registry."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from schemas.errors import ConfigurationError
from udfs.conventions import Conventions
from udfs.describe import render_metric, render_metric_list
from udfs.registry import METRICS, parse_metrics

ROOT = Path(__file__).parents[3]


def test_the_list_has_every_metric_once() -> None:
    lines = render_metric_list().splitlines()
    for name in METRICS:
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1, name


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_states_formula_edges_and_use(name: str) -> None:
    text = render_metric(name)
    for word in ("Formula:", "Edges:", "Use it:", "Not:", "Source"):
        assert word in text
    for parameter in METRICS[name].parameters:
        assert f"\n  {parameter}" in text


def test_a_metric_may_be_named_as_it_is_written() -> None:
    assert render_metric("ndcg(gain=linear)@10") == render_metric("ndcg")
    with pytest.raises(ConfigurationError, match=r"did you mean 'recall'\?"):
        render_metric("recal")


@pytest.mark.parametrize("name", ["faq", "shop", "research", "rag", "trec"])
def test_a_profile_names_metrics_and_conventions_that_exist(name: str) -> None:
    profile = yaml.safe_load((ROOT / "conf" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert set(profile) <= {"metrics", "conventions"}
    assert [spec.name for spec in parse_metrics(profile["metrics"])] == profile["metrics"]  # canonical, none twice
    Conventions.model_validate(profile.get("conventions", {}))


def test_the_page_for_people_names_only_metrics_that_exist() -> None:
    page = (ROOT / "docs" / "which-metric.md").read_text(encoding="utf-8")
    named = [text for text in page.split("`")[1::2] if "@" in text or "(" in text]
    assert len(parse_metrics(named)) > 5  # each is read, or this raises
