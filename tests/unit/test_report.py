"""The report, without Spark: what it counts, what it escapes, and how large it may become."""

import datetime as dt
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pipelines.report import render, report_of, report_of_two, spread
from pipelines.report.facts import gather
from pipelines.report.markup import Markup, h, text
from pipelines.report.page import LARGEST
from pipelines.report.published import Published
from pipelines.report.spread import Deltas, histogram, paired
from pipelines.runs import find_run
from pipelines.vacuum import find, remove
from schemas.errors import ConfigurationError, InputError
from tests.made import HOSTILE, publish


class Tags(HTMLParser):
    """The elements of a page, to see what text became one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


def test_a_value_falls_into_the_bucket_that_begins_with_it() -> None:
    values = np.array([0.0, 0.05, 0.1, 0.3, 0.7, 0.999, 1.0, -0.2, 1.5, np.nan])
    assert histogram(values).tolist() == [1, 2, 1, 0, 1, 0, 0, 0, 1, 0, 2, 1]


def test_differences_are_counted_on_both_sides_of_zero() -> None:
    before, after = np.array([0.5, 0.5, 0.5, 0.5, np.nan]), np.array([0.5, 0.6, 0.35, 1.0, 1.0])
    d = Deltas()
    d.add(before, after)
    assert (d.queries, d.wins, d.ties, d.losses) == (4, 2, 1, 1)
    assert {place: int(n) for place, n in enumerate(d.counts) if n} == {8: 1, 10: 1, 14: 1}
    known = stats.ttest_rel(after[:4], before[:4]).confidence_interval(0.95)
    assert d.interval(0.95) == pytest.approx((0.1125, known.low, known.high))


def test_pairs_are_the_same_however_the_tables_are_laid_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, manifest = publish(tmp_path, files=7)
    run = Published(storage, manifest)

    def told() -> tuple[int, float]:
        frames = list(paired((run, "old"), (run, "new"), ["ndcg_at_10"]))
        d = Deltas()
        for frame in frames:
            d.add(frame["ndcg_at_10_x"].to_numpy(float), frame["ndcg_at_10_y"].to_numpy(float))
        return len(frames), d.total

    at_once = told()
    monkeypatch.setattr(spread, "ROWS_AT_ONCE", 100)
    in_parts = told()
    assert (at_once[0], in_parts[0]) == (1, 8)
    assert at_once[1] == pytest.approx(in_parts[1], abs=1e-12)
    assert at_once[1] == pytest.approx(0.1 * 149)  # three of four of 200 queries, less the one without a value


def test_everything_is_counted_once(tmp_path: Path) -> None:
    facts = gather(Published(*publish(tmp_path)))
    assert facts.spreads["old", "ndcg_at_10"].sum() == 199
    assert facts.spreads["new", "recall_at_20"].tolist() == [0] * 10 + [200, 0]
    assert facts.deltas["old", "new", "ndcg_at_10"].wins == 149


def test_text_of_the_log_never_becomes_markup(tmp_path: Path) -> None:
    """Hostile names make a page of the same elements as harmless ones."""
    made = [
        report_of(*publish(tmp_path / kind, systems=["old", name], queries=[*names, *map(str, range(20))]))
        for kind, name, names in (("plain", "new", "abcdef"), ("hostile", "<script>s</script>", HOSTILE))
    ]
    assert Tags(made[0]).found == Tags(made[1]).found
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in made[1]
    assert "<script>alert" not in made[1] and "<img" not in made[1]


def test_the_page_fetches_nothing_and_allows_only_its_own_script(tmp_path: Path) -> None:
    page = report_of(*publish(tmp_path))
    assert "default-src &#x27;none&#x27;; script-src &#x27;sha256-" in page
    assert page.count("<script") == page.count("<style") == 1
    for fetched in ("src=", "url(", "@import", "<link", "http://", "https://"):
        assert fetched not in page


def test_markup_escapes_what_is_not_markup() -> None:
    assert h("b", "1 < 2", Markup("<i>x</i>"), title='"') == '<b title="&quot;">1 &lt; 2<i>x</i></b>'
    assert text("a\x00b" + "x" * 999) == "<bdi>a\ufffdb" + "x" * 156 + "…</bdi>"


def test_a_report_is_small_whatever_the_run(tmp_path: Path) -> None:
    """Many systems and segments, all with names as long as they are hostile."""
    long = "<&>\"'" * 2000
    systems = [f"{number}{long}" for number in range(60)]
    verdict = {"condition": long, "candidate": long, "segment": long, "value": long, "metric": "m", "verdict": "fail",
               "reason": long, "warning": long}  # fmt: skip
    reading = {"rule": "r", "baseline": long, "candidate": long, "text": long}
    storage, manifest = publish(tmp_path, systems=systems, queries=[f"{n}{long}" for n in range(8)], files=1)
    big = manifest.model_copy(update={
        "gate": (verdict,) * 500, "readings": (reading,) * 500, "conventions": {long: long},
        "config": dict(manifest.config) | {f"k{n}": long for n in range(1000)},
        "inputs": {f"{n}{long}": {"read": 1, "rejected": {long: 1}, "missing_days": [long]} for n in range(7)},
    })  # fmt: skip
    facts = gather(Published(storage, big))
    row = dict(facts.segments[0], value=long)
    full = replace(facts, segments=[row] * 1000, compared=[*facts.compared] * 6)
    page = render(full)
    assert 100_000 < len(page.encode()) < LARGEST
    assert "Segments" in page and "Movers" in page


def test_two_runs_are_compared_on_the_queries_of_both(tmp_path: Path) -> None:
    storage, before = publish(tmp_path)
    queries = [f"q{number}" for number in range(100, 300)]
    _, after = publish(tmp_path, date="2026-11-02", run="b-1", queries=queries, conventions={"unjudged": "condense"})
    page = report_of_two(storage, before, after, "old")
    assert "convention unjudged: zero → condense" in page
    assert page.count("<td><bdi>old</bdi></td><td><bdi>ndcg@10</bdi>") == 1
    assert 'data-v="99"' in page  # 100 common queries, less the one without a value
    with pytest.raises(ConfigurationError, match="did you mean 'new'"):
        report_of_two(storage, before, after, "nev")


def test_a_run_is_found_by_id_or_date_or_as_the_newest(tmp_path: Path) -> None:
    storage, first = publish(tmp_path)
    _, second = publish(tmp_path, date="2026-11-02", run="b-1", committed_at="2026-11-03T00:00:00+00:00")
    assert find_run(storage).run == find_run(storage, "2026-11-02").run == second.run
    assert find_run(storage, first.run).dt == "2026-11-01"
    with pytest.raises(InputError, match=r"no run '2026-11-03'.*did you mean '2026-11-0"):
        find_run(storage, "2026-11-03")
    with pytest.raises(InputError, match="with the table labels"):
        find_run(storage, having="labels")


def test_vacuum_removes_the_reports_of_a_run_with_it(tmp_path: Path) -> None:
    storage, _ = publish(tmp_path)
    publish(tmp_path, run="b-1", committed_at="2026-11-03T00:00:00+00:00")
    for name in ("aaaaaaaaaaaa-000001", "b-1", "b-1-against-aaaaaaaaaaaa-000001"):
        storage.put(f"reports/2026-11-01/{name}.html", "")
    remove(storage, find(storage, keep=1, hours=dt.timedelta(days=1).total_seconds()))
    assert list(storage.list("reports", suffix=".html", recursive=True)) == ["reports/2026-11-01/b-1.html"]
