"""A metric over runs, and where runs stop being comparable."""

import datetime as dt
from pathlib import Path

import pytest

from jobs.trend import draw_trend
from pipelines.comparison.comparable import find_differences
from pipelines.report.trend import read_trend, render_trend
from pipelines.warehouse.storage import Storage
from schemas.errors import InputError
from tests.helpers.published_runs import publish
from udfs.registry import parse_metric

NDCG = parse_metric("ndcg@10")


@pytest.fixture
def week(tmp_path: Path) -> Storage:
    """Three dates; the second was evaluated twice, and from the third on, unjudged documents are taken out."""
    storage, _ = publish(tmp_path, date="2026-11-01", run="a-1")
    publish(tmp_path, date="2026-11-02", run="b-1", lift=0.5, committed_at="2026-11-02T00:00:00+00:00")
    publish(tmp_path, date="2026-11-02", run="b-2", lift=0.2, committed_at="2026-11-02T01:00:00+00:00")
    publish(tmp_path, date="2026-11-03", run="c-1", conventions={"unjudged": "condense", "ties": "doc_id_desc"})
    return storage


def test_each_date_has_its_live_run_and_lists_what_changed(week: Storage) -> None:
    trend = read_trend(week, NDCG, systems=["old", "new"])
    lead = [new.mean - old.mean for old, new in zip(trend.systems["old"], trend.systems["new"], strict=True)]
    assert lead == pytest.approx([0.1 * 149 / 199, 0.2 * 149 / 199, 0.1 * 149 / 199])
    assert [v.run for v in trend.systems["new"]] == ["a-1", "b-2", "c-1"]
    assert [v.changed for v in trend.systems["new"]] == [(), (), ("convention unjudged: zero → condense",)]
    assert trend.systems["new"][0].queries == 199


def test_a_trend_can_begin_late_and_be_about_a_segment(week: Storage) -> None:
    trend = read_trend(week, parse_metric("recall@20"), since=dt.date(2026, 11, 3), segment="device", value="ios")
    assert {system: [v.dt for v in values] for system, values in trend.systems.items()} == {
        "old": ["2026-11-03"],
        "new": ["2026-11-03"],
    }
    assert trend.systems["old"][0].queries == 100


def test_what_does_not_exist_is_refused(week: Storage) -> None:
    with pytest.raises(InputError, match="no run with metrics since 2027-01-01"):
        read_trend(week, NDCG, since=dt.date(2027, 1, 1))
    with pytest.raises(InputError, match=r"no run has the metric ndcg@5 .*mean 'ndcg@10'\? Known: ndcg@10, rec"):
        read_trend(week, parse_metric("ndcg@5"))
    with pytest.raises(InputError, match=r"no run has the segment 'devise' .*did you mean 'device'"):
        read_trend(week, NDCG, segment="devise", value="ios")
    with pytest.raises(InputError, match=r"the value 'io' of the segment device .*did you mean 'ios'\? Known: "):
        read_trend(week, NDCG, segment="device", value="io")
    with pytest.raises(InputError, match=r"system 'nev'.*did you mean 'new'"):
        read_trend(week, NDCG, systems=["nev"])


def test_the_terminal_draws_one_line_per_date_and_one_per_change(week: Storage) -> None:
    lines = draw_trend(read_trend(week, NDCG, systems=["new"]))
    assert [line.split()[0] for line in lines] == ["ndcg@10", "2026-11-01", "2026-11-02", "──", "2026-11-03"]
    assert lines[3].strip() == "── not comparable with earlier dates: convention unjudged: zero → condense"
    places = [line.index("●") for line in lines if "●" in line]
    assert places[1] > places[0] == places[2]


def test_the_page_marks_the_change(week: Storage) -> None:
    page = render_trend(read_trend(week, NDCG))
    assert page.count('class="mark"') == 1
    assert "2026-11-03: convention unjudged: zero → condense" in page
    assert page.count("<circle") == 6


def test_runs_differ_by_conventions_labels_settings_and_code(tmp_path: Path) -> None:
    _, first = publish(tmp_path)
    other = {"judgments": {"read": 1, "rejected": {}, "missing_days": [], "digest": "d2"}}
    behaviour = {"impressions": {"digest": "i"}, "interactions": {"digest": "j"}}
    config = dict(first.config) | {"labels": {"grade": {"scale": "lift"}}}

    def differences(**changes: object) -> list[str]:
        return find_differences(first, first.model_copy(update=changes))

    assert differences(dt="2026-11-09", config_hash="x", systems=("a",)) == []
    assert differences(inputs=other) == ["other judgments"]
    dated = {"judgments": dict(other["judgments"], places=["judgments/dt=2026-11-02"])}
    assert differences(inputs=dated) == []  # those of another date, under a path of their own
    moved = dict(first.config) | {"inputs": {"judgments": {"path": "elsewhere"}}}
    assert differences(config=moved) == ["configuration inputs.judgments.path: not known → elsewhere"]
    assert differences(inputs=behaviour) == ["labels from judgments → behaviour"]
    assert differences(code="v2") == ["another version of the code"]
    assert differences(config=config) == ["configuration labels.grade.scale: grades → lift"]
    former = dict(first.conventions)
    assert "depth" not in former
    assert differences(conventions=former | {"depth": None}) == []  # of a run before it could be set
    assert differences(conventions=former | {"depth": 5}) == ["convention depth: none → 5"]
    assert differences(conventions={"ties": "doc_id_desc"}) == ["convention unjudged: zero → not known"]
