"""The report in a real Chromium: charts, sorting, dark mode, a phone, and hostile text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from pipelines.report.render import render_report
from tests.end_to_end.conftest import InTurn
from tests.helpers.browser import PHONE, OpenPage, launch_chromium, open_page
from tests.helpers.published_runs import HOSTILE, publish, write
from udfs.conventions import UNJUDGED


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_chromium() as launched:
        yield launched


@pytest.fixture
def page(browser: Browser, report: str) -> Iterator[OpenPage]:
    with open_page(browser, report) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run with all tables, whose queries and systems have hostile names."""
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
    tables: dict[str, list[dict[str, Any]]] = {
        "sensitivity": [
            {"baseline": "old", "candidate": HOSTILE[1], "metric": "ndcg_at_10", "unjudged": way, "delta": 0.01,
             "delta_low": 0.005, "delta_high": 0.015, "p_value": 0.01, "queries": 60, "kept_traffic": 1.0,
             "gate": "pass"} for way in UNJUDGED],
        "label_prior": [
            {"factor": factor, "kind": kind, "level": level, "effect": 1.0 - n, "low": 0.5 - n, "high": 1.5 - n,
             "clicks": 9.0, "expected": 7.0} for n, level in enumerate(("1", "2–3", "absent"))
            for factor, kind in (("old", "main"), (HOSTILE[1], "main"), ("old × new", "pair"))],
        "propensities": [
            {"context": c, "position": p, "propensity": 1 / p, "low": 0.9 / p, "high": 1.1 / p, "impressions": 5,
             "clicks": 1, "estimator": "em", "basis": "measured"} for c in ("all", HOSTILE[0]) for p in range(1, 11)],
        "denoise_funnel": [
            {"rule": HOSTILE[0], "impressions_dropped": 5, "clicks_dropped": 2, "carts_dropped": 0,
             "purchases_dropped": 0, "users_touched": 1, "only_this_rule": 3}],
        "labels": [
            {"query_id": q, "doc_id": "d", "grade": n % 4 or None, "impressions": 1, "examinations": 1.0, "clicks": 0,
             "carts": 0, "purchases": 0, "users": 1, "positions": 1, "source": "behaviour", "reason": "graded"}
            for n, q in enumerate(queries)],
    }  # fmt: skip
    records = {name: write(storage, manifest.dt, manifest.run, name, rows) for name, rows in tables.items()}
    whole = manifest.model_copy(update={"tables": {**manifest.tables, **records}})
    target = place / "report.html"
    target.write_text(render_report(storage, whole), encoding="utf-8")
    return target.as_uri()


SHAPES = "document.querySelectorAll('svg')"
TEXTS = "[...document.querySelectorAll('bdi')].map(e => e.textContent)"
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
TABLE = "document.querySelector('#segments .sortable')"
MEANS = f"[...{TABLE}.querySelectorAll('tbody tr')].filter(r => !r.hidden).map(r => r.cells[3].dataset.v)"


def test_it_opens_without_errors_and_requests_nothing_else(page: OpenPage, report: str) -> None:
    assert page.problems == []
    assert page.requests == [report]


def test_every_chart_is_drawn(page: OpenPage) -> None:
    sections = page.run("[...document.querySelectorAll('section')].map(s => s.id)")
    assert sections == [
        "answer", "gate", "readings", "systems", "comparison", "basis", "unjudged", "distribution", "cutoffs",
        "segments", "movers", "labels", "quality", "configuration",
    ]  # fmt: skip
    visible = page.run(f"[...{SHAPES}].every(s => s.getBoundingClientRect().height > 10 && s.children.length)")
    assert visible is True
    # 3 histograms of each of 3 systems and 2 of differences; 2 forests of 3 lines and a scale; a line over cut-offs;
    # the prior's effects of two systems; 2 candidates on a scale, and a bar for the queries that each is compared on.
    names = "['distribution', 'comparison', 'cutoffs', 'labels', 'basis', 'answer']"
    counts = page.run(f"{names}.map(id => document.querySelectorAll(`#${{id}} svg`).length)")
    assert counts == [11, 8, 1, 1 + 4 + 1, 2, 3 + 2]
    ticks = page.run("[...document.querySelectorAll('#basis svg')].map(s => s.querySelectorAll('circle').length)")
    assert ticks == [3, 3]
    bars = page.run("[...document.querySelectorAll('#distribution figure')][0].querySelectorAll('rect.bar').length")
    assert bars == 10
    hover = page.run("document.querySelector('#distribution rect.bar title').textContent")
    assert hover.startswith("0.0 to 0.1: ")
    assert page.run("getComputedStyle(document.querySelector('rect.bar')).fill") == "rgb(76, 120, 168)"


def test_sensitivity_to_unjudged_documents_and_agreement_are_shown(page: OpenPage) -> None:
    cells = page.run("[...document.querySelectorAll('#unjudged tbody td')].map(c => c.textContent)")
    numbers = ["+0.0100 [+0.0050, +0.0150]", "60", "100%", "pass"]
    assert [cells[7 * n + 1 : 7 * n + 7] for n in range(len(UNJUDGED))] == [
        ["ndcg@10", words, *numbers] for words in UNJUDGED.values()
    ]
    labels = page.run("document.querySelector('#labels').textContent")
    assert "Behaviour and judges agree on 50% of 10 pairs, weighted κ 0.40." in labels
    assert "Behaviour's order by the judges' grades: NDCG@10 0.900 over 5 queries, 0.700 by chance." in labels


def test_tables_sort_both_ways_and_filter(page: OpenPage) -> None:
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


def test_hostile_text_is_shown_as_text(page: OpenPage) -> None:
    shown = page.run(TEXTS)
    for text in HOSTILE:
        assert text in shown
    assert page.run("document.querySelectorAll('img, script[src], main script, iframe, main a').length") == 0
    assert page.run("document.title").startswith("Assay 2026-11-01")
    assert page.problems == []
    # Even injected markup could not run: the page's own policy forbids it.
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.harmed = 1\">')")
    assert page.run("new Promise(r => setTimeout(() => r(window.harmed === undefined), 200))") is True


def test_light_and_dark_follow_the_machine_and_the_button(browser: Browser, report: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    dark, light = "rgb(20, 23, 27)", "rgb(255, 255, 255)"
    for scheme, first, second in (("dark", dark, light), ("light", light, dark)):
        with open_page(browser, report, color_scheme=scheme) as page:
            assert page.run(ground) == first
            page.page.click("#theme")
            assert page.run(ground) == second


def test_print_has_no_navigation_and_whole_tables(browser: Browser, report: str) -> None:
    with open_page(browser, report, color_scheme="dark") as page:
        page.page.emulate_media(media="print")
        assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert page.run("getComputedStyle(document.querySelector('.wide')).maxHeight") == "none"
        assert page.run("getComputedStyle(document.querySelector('#answer')).breakAfter") == "page"
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_phone_never_scrolls_sideways(browser: Browser, report: str) -> None:
    with open_page(browser, report, width=PHONE) as page:
        page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.run(SIDEWAYS) is False
        heights = page.run(
            "[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)"
        )
        assert min(heights) >= 9  # still readable
        reason = "document.querySelector('#gate td:last-child').getBoundingClientRect()"
        assert page.run(f"{reason}.left >= 0 && {reason}.right <= {PHONE} && {reason}.height > 0"), "why, on the screen"


def test_two_runs_side_by_side(browser: Browser, tmp_path: Path, in_turn: InTurn) -> None:
    publish(tmp_path / "warehouse")
    publish(tmp_path / "warehouse", date="2026-11-02", run="b-1", lift=0.2)
    target = tmp_path / "two.html"
    dates = ("2026-11-01", "2026-11-02")
    place = ("--warehouse", tmp_path / "warehouse", "--to", target)
    (compared,) = in_turn([("assay", "report", "--compare", *dates, *place)])
    assert compared.returncode == 0, compared.stderr
    with open_page(browser, target.as_uri(), width=PHONE) as page:
        assert page.problems == []
        assert page.run(SIDEWAYS) is False
        row = page.run("[...document.querySelectorAll('#difference tbody tr')[3].cells].map(c => c.textContent)")
        assert row[:2] == ["new", "ndcg@10"] and row[4].startswith("+0.0749")
        assert row[8:11] == ["< .0001", "149 / 50 / 0", "199"]
        page.page.click("#difference th:nth-child(10) button")
        wins = page.run("[...document.querySelectorAll('#difference tbody tr')].map(r => Number(r.cells[9].dataset.v))")
        assert wins == [0, 0, 0, 0, 0, 149]  # W / T / L sorts by wins − losses
