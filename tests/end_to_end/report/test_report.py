"""The report in a real Chromium: drawn, sorted, dark, on a phone, and deaf to what hostile text asks of it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.report import report_of, report_of_two
from tests.browser import NAMES, Page, browser, find
from tests.made import HOSTILE, publish, write
from udfs.conventions import UNJUDGED


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    executable = find()
    if executable is None:
        missing = f"no Chromium: none of {', '.join(NAMES)} is on the PATH, and ASSAY_CHROMIUM is not set"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with browser(executable) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run with all tables, whose queries and systems are named to do harm."""
    place = tmp_path_factory.mktemp("hostile")
    queries = [*HOSTILE, *[f"q{number}" for number in range(60)]]
    failing = {"condition": "ndcg@10 drop < 0.1", "candidate": HOSTILE[1], "segment": "device", "value": HOSTILE[0],
               "metric": "ndcg_at_10", "verdict": "fail", "reason": HOSTILE[0], "warning": ""}  # fmt: skip
    orders = {"behaviour_order": 0.9, "behaviour_order_by_chance": 0.7, "behaviour_order_queries": 5}
    labels = {"agreement": {"pairs": 10, "equal": 0.5, "weighted_kappa": 0.4} | orders, "verdicts": []}
    checks = {"mode": "full", "tables": {"rankings": {"passed": 3, "warned": 1, "failed": 0}},
              "failing": [{"severity": "warn", "table": "rankings", "check": "unique", "column": "doc_id",
                           "failed_rows": 2, "sample": [HOSTILE[0]], "advice": "look"}]}  # fmt: skip
    storage, manifest = publish(
        place, systems=["old", HOSTILE[1], "new"], queries=queries, gate=[failing], labels=labels, checks=checks
    )
    made: dict[str, list[dict[str, Any]]] = {
        "sensitivity": [
            {"baseline": "old", "candidate": HOSTILE[1], "metric": "ndcg_at_10", "unjudged": way, "delta": 0.01,
             "delta_low": 0.005, "delta_high": 0.015, "p_value": 0.01, "queries": 60, "kept_traffic": 1.0,
             "gate": "pass"} for way in UNJUDGED],
        "propensities": [
            {"context": c, "position": p, "propensity": 1 / p, "low": 0.9 / p, "high": 1.1 / p, "impressions": 5,
             "clicks": 1, "estimator": "em"} for c in ("all", HOSTILE[0]) for p in range(1, 11)],
        "denoise_funnel": [
            {"rule": HOSTILE[0], "impressions_dropped": 5, "clicks_dropped": 2, "carts_dropped": 0,
             "purchases_dropped": 0, "users_touched": 1, "only_this_rule": 3}],
        "labels": [
            {"query_id": q, "doc_id": "d", "grade": n % 4 or None, "impressions": 1, "examinations": 1.0, "clicks": 0,
             "carts": 0, "purchases": 0, "users": 1, "positions": 1, "source": "behaviour", "reason": "graded"}
            for n, q in enumerate(queries)],
    }  # fmt: skip
    records = {name: write(storage, manifest.dt, manifest.run, name, rows) for name, rows in made.items()}
    whole = manifest.model_copy(update={"tables": {**manifest.tables, **records}})
    target = place / "report.html"
    target.write_text(report_of(storage, whole), encoding="utf-8")
    return target.as_uri()


SHAPES = "document.querySelectorAll('svg')"
TEXTS = "[...document.querySelectorAll('bdi')].map(e => e.textContent)"
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
TABLE = "document.querySelector('#segments .sortable')"
MEANS = f"[...{TABLE}.querySelectorAll('tbody tr')].filter(r => !r.hidden).map(r => r.cells[3].dataset.v)"


def test_it_opens_without_complaint_and_asks_for_nothing_else(page: Page, report: str) -> None:
    page.size(1100)
    page.open(report)
    assert page.problems == []
    assert page.requests == [report]


def test_every_chart_is_drawn(page: Page, report: str) -> None:
    page.open(report)
    sections = page.run("[...document.querySelectorAll('section')].map(s => s.id)")
    assert sections == [
        "verdict", "readings", "comparison", "unjudged", "distribution", "cutoffs", "segments", "movers", "labels",
        "quality", "configuration",
    ]  # fmt: skip
    drawn = page.run(f"[...{SHAPES}].every(s => s.getBoundingClientRect().height > 10 && s.children.length)")
    assert drawn is True
    # 3 histograms of each of 3 systems and 2 of differences; 2 forests of 3 lines; a line over cut-offs.
    counts = page.run(
        "['distribution', 'comparison', 'cutoffs', 'labels'].map(id => document.querySelectorAll(`#${id} svg`).length)"
    )
    assert counts == [11, 6, 1, 1 + 4 + 1]
    bars = page.run("[...document.querySelectorAll('#distribution figure')][0].querySelectorAll('rect.bar').length")
    assert bars == 10
    said = page.run("document.querySelector('#distribution rect.bar title').textContent")
    assert said.startswith("0.0 to 0.1: ")
    assert page.run("getComputedStyle(document.querySelector('rect.bar')).fill") == "rgb(76, 120, 168)"


def test_what_rests_on_the_unjudged_and_on_agreement_is_told(page: Page, report: str) -> None:
    page.open(report)
    cells = page.run("[...document.querySelectorAll('#unjudged tbody td')].map(c => c.textContent)")
    told = ["+0.0100 [+0.0050, +0.0150]", "60", "100%", "pass"]
    assert [cells[7 * n + 1 : 7 * n + 7] for n in range(3)] == [
        ["ndcg@10", words, *told] for words in UNJUDGED.values()
    ]
    said = page.run("document.querySelector('#labels').textContent")
    assert "Behaviour and judges agree on 50% of 10 pairs, weighted κ 0.40." in said
    assert "Behaviour's order by the judges' grades: NDCG@10 0.900 over 5 queries, 0.700 by chance." in said


def test_tables_sort_both_ways_and_filter(page: Page, report: str) -> None:
    page.open(report)
    click = f"{TABLE}.querySelectorAll('th button')[3].click()"
    page.run(click)
    rising = [float(v) for v in page.run(MEANS)]
    page.run(click)
    falling = [float(v) for v in page.run(MEANS)]
    assert rising == sorted(rising) and falling == sorted(rising, reverse=True) and rising != falling
    assert len(rising) == 18  # 3 systems, 2 values of the segment, 3 metrics
    for words, left in (("ios recall@20", 3), ("", 18)):
        page.run(f"{TABLE}.querySelector('input').value = '{words}'")
        page.run(f"{TABLE}.querySelector('input').dispatchEvent(new Event('input'))")
        assert len(page.run(MEANS)) == left


def test_hostile_text_is_shown_as_text(page: Page, report: str) -> None:
    page.open(report)
    shown = page.run(TEXTS)
    for text in HOSTILE:
        assert text in shown
    assert page.run("document.querySelectorAll('img, script[src], main script, iframe, main a').length") == 0
    assert page.run("document.title").startswith("Assay 2026-11-01")
    assert page.problems == []
    # Even markup that slipped in could not run: the page's own policy refuses it.
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.harmed = 1\">')")
    assert page.run("new Promise(r => setTimeout(() => r(window.harmed === undefined), 200))") is True


def test_light_and_dark_follow_the_machine_and_the_button(page: Page, report: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page.prefer("dark")
    page.open(report)
    assert page.run(ground) == "rgb(20, 23, 27)"
    page.run("document.getElementById('theme').click()")
    assert page.run(ground) == "rgb(255, 255, 255)"
    page.prefer("light")
    page.open(report)
    assert page.run(ground) == "rgb(255, 255, 255)"
    page.run("document.getElementById('theme').click()")
    assert page.run(ground) == "rgb(20, 23, 27)"
    page.prefer("dark", media="print")
    page.open(report)
    assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.run("getComputedStyle(document.querySelector('.wide')).maxHeight") == "none"
    page.prefer("light")


def test_a_phone_never_scrolls_sideways(page: Page, report: str) -> None:
    page.size(390)
    page.open(report)
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.run(SIDEWAYS) is False
    small = page.run("[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)")
    assert min(small) >= 9  # still to be read
    page.size(1100)


def test_two_runs_side_by_side(page: Page, tmp_path: Path) -> None:
    storage, before = publish(tmp_path)
    _, after = publish(tmp_path, date="2026-11-02", run="b-1", lift=0.2)
    (tmp_path / "two.html").write_text(report_of_two(storage, before, after), encoding="utf-8")
    page.size(390)
    page.open((tmp_path / "two.html").as_uri())
    assert page.problems == []
    assert page.run(SIDEWAYS) is False
    row = page.run("[...document.querySelectorAll('#difference tbody tr')[3].cells].map(c => c.textContent)")
    assert (
        row[0] == "new"
        and row[1] == "ndcg@10"
        and row[4].startswith("+0.0749")
        and row[5:] == ["149", "50", "0", "199"]
    )
    page.size(1100)
