"""A metric over runs, and where runs stop being comparable."""

import datetime as dt
from pathlib import Path

import pytest

from jobs.trend import drawn
from pipelines.comparable import incomparable
from pipelines.storage import Storage
from pipelines.trend import render_trend, trend
from schemas.errors import InputError
from tests.made import publish
from udfs.registry import parse

NDCG = parse("ndcg@10")


@pytest.fixture
def week(tmp_path: Path) -> Storage:
    """Three dates; the second was evaluated twice, and from the third on, unjudged documents are taken out."""
    storage, _ = publish(tmp_path, date="2026-11-01", run="a-1")
    publish(tmp_path, date="2026-11-02", run="b-1", lift=0.5, committed_at="2026-11-02T00:00:00+00:00")
    publish(tmp_path, date="2026-11-02", run="b-2", lift=0.2, committed_at="2026-11-02T01:00:00+00:00")
    publish(tmp_path, date="2026-11-03", run="c-1", conventions={"unjudged": "condense", "ties": "doc_id_desc"})
    return storage


def test_each_date_has_its_live_run_and_says_what_changed(week: Storage) -> None:
    found = trend(week, NDCG, systems=["old", "new"])
    lead = [new.mean - old.mean for old, new in zip(found.systems["old"], found.systems["new"], strict=True)]
    assert lead == pytest.approx([0.1 * 149 / 199, 0.2 * 149 / 199, 0.1 * 149 / 199])
    assert [v.run for v in found.systems["new"]] == ["a-1", "b-2", "c-1"]
    assert [v.changed for v in found.systems["new"]] == [(), (), ("convention unjudged: zero → condense",)]
    assert found.systems["new"][0].queries == 199


def test_a_trend_can_begin_late_and_be_about_a_segment(week: Storage) -> None:
    found = trend(week, parse("recall@20"), since=dt.date(2026, 11, 3), segment="device", value="ios")
    assert {system: [v.dt for v in values] for system, values in found.systems.items()} == {
        "old": ["2026-11-03"],
        "new": ["2026-11-03"],
    }
    assert found.systems["old"][0].queries == 100


def test_what_is_not_there_is_said(week: Storage) -> None:
    with pytest.raises(InputError, match="no run with metrics since 2027-01-01"):
        trend(week, NDCG, since=dt.date(2027, 1, 1))
    with pytest.raises(InputError, match=r"system 'nev'.*did you mean 'new'"):
        trend(week, NDCG, systems=["nev"])


def test_the_terminal_draws_one_line_per_date_and_one_per_change(week: Storage) -> None:
    lines = drawn(trend(week, NDCG, systems=["new"]))
    assert [line.split()[0] for line in lines] == ["ndcg@10", "2026-11-01", "2026-11-02", "──", "2026-11-03"]
    assert lines[3].strip() == "── not comparable with the dates before: convention unjudged: zero → condense"
    places = [line.index("●") for line in lines if "●" in line]
    assert places[1] > places[0] == places[2]


def test_the_page_marks_the_change(week: Storage) -> None:
    page = render_trend(trend(week, NDCG))
    assert page.count('class="mark"') == 1
    assert "2026-11-03: convention unjudged: zero → condense" in page
    assert page.count("<circle") == 6


def test_runs_differ_by_conventions_labels_settings_and_code(tmp_path: Path) -> None:
    _, first = publish(tmp_path)
    other = {"judgments": {"read": 1, "rejected": {}, "missing_days": [], "digest": "d2"}}
    behaviour = {"impressions": {"digest": "i"}, "interactions": {"digest": "j"}}
    config = dict(first.config) | {"labels": {"grade": {"scale": "lift"}}}

    def told(**changes: object) -> list[str]:
        return incomparable(first, first.model_copy(update=changes))

    assert told(dt="2026-11-09", config_hash="x", systems=("a",)) == []
    assert told(inputs=other) == ["other judgments"]
    dated = {"judgments": dict(other["judgments"], places=["judgments/dt=2026-11-02"])}
    assert told(inputs=dated) == []  # those of another date, under a path of their own
    moved = dict(first.config) | {"inputs": {"judgments": {"path": "elsewhere"}}}
    assert told(config=moved) == ["configuration inputs.judgments.path: not known → elsewhere"]
    assert told(inputs=behaviour) == ["labels from judgments → behaviour"]
    assert told(code="v2") == ["another version of the code"]
    assert told(config=config) == ["configuration labels.grade.scale: grades → lift"]
    assert told(conventions={"ties": "doc_id_desc"}) == ["convention unjudged: zero → not known"]
