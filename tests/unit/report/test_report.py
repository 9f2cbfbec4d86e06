"""The report, without Spark: what it counts, what it escapes, and its largest size."""

import datetime as dt
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.comparison.two_runs import RunComparison
from pipelines.report import pairs
from pipelines.report.charts import choose_ticks
from pipelines.report.data import gather_report_data
from pipelines.report.histograms import DeltaCounts, count_histogram
from pipelines.report.markup import Markup, h, text
from pipelines.report.page import LARGEST
from pipelines.report.pairs import pair_queries
from pipelines.report.render import render_report, render_within_limit
from pipelines.report.sections.answer import render_answer
from pipelines.report.sections.basis import render_basis
from pipelines.report.sections.systems import render_systems
from pipelines.report.settings import ReportSettings, read_report_settings
from pipelines.report.tables import format_p
from pipelines.report.two_runs import find_common_systems, gather_two_runs, render_two_runs
from pipelines.sharing.tracking.payload import build_payload
from pipelines.warehouse.runs import find_run
from pipelines.warehouse.tables import RunTables
from pipelines.warehouse.vacuum import find_removable, remove_runs
from schemas.errors import ConfigurationError, InputError
from tests.helpers.published_runs import HOSTILE, publish, write

COMPARISON = {"baseline": "before", "candidate": "after", "baseline_mean": 0.5, "candidate_mean": 0.6, "delta": 0.1,
              "delta_low": 0.05, "delta_high": 0.15, "relative": 0.2, "p_adjusted": 0.0123, "significant": True,
              "wins": 60, "ties": 0, "losses": 39, "detectable_delta": 0.03, "weighted_delta": 0.04}  # fmt: skip


class Tags(HTMLParser):
    """The elements of a page, to see what text became one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)


def test_a_value_falls_into_the_bucket_that_begins_with_it() -> None:
    values = np.array([0.0, 0.05, 0.1, 0.3, 0.7, 0.999, 1.0, -0.2, 1.5, np.nan])
    assert count_histogram(values).tolist() == [1, 2, 1, 0, 1, 0, 0, 0, 1, 0, 2, 1]


def test_differences_are_counted_on_both_sides_of_zero() -> None:
    before, after = np.array([0.5, 0.5, 0.5, 0.5, np.nan]), np.array([0.5, 0.6, 0.35, 1.0, 1.0])
    d = DeltaCounts()
    d.add(before, after)
    assert (d.queries, d.ties) == (4, 1)
    assert {place: int(n) for place, n in enumerate(d.counts) if n} == {8: 1, 10: 1, 14: 1}


def test_pairs_are_the_same_however_the_tables_are_laid_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, manifest = publish(tmp_path, files=7)
    run = RunTables(storage, manifest)

    def sum_deltas() -> tuple[int, float]:
        batches = list(pair_queries((run, "old"), (run, "new"), ["ndcg_at_10"], judged={}, min_judged=0.0))
        deltas = [after - before for before, after in (batch.values("ndcg_at_10") for batch in batches)]
        return len(batches), float(np.nansum(np.concatenate(deltas)))

    at_once = sum_deltas()
    monkeypatch.setattr(pairs, "ROWS_AT_ONCE", 100)
    in_parts = sum_deltas()
    assert (at_once[0], in_parts[0]) == (1, 8)
    assert at_once[1] == pytest.approx(in_parts[1], abs=1e-12)
    assert at_once[1] == pytest.approx(0.1 * 149)  # three of four of 200 queries, without the one that has no value


def test_differences_count_only_queries_where_enough_is_judged(tmp_path: Path) -> None:
    """Of eight queries, three have too little judged in one list; an empty list counts all the same."""
    shares = [(1.0, 1.0), (0.7, 0.7), (0.6, 1.0), (1.0, 0.6), (0.0, 0.0), (None, 1.0), (1.0, 1.0), (1.0, 1.0)]
    config = {"metrics": ["ndcg@10", "judged@10"], "compare": {"min_judged": 0.7}}
    storage, manifest = publish(tmp_path, queries=[f"q{n}" for n in range(8)], config=config, judged=shares)
    deltas = gather_report_data(RunTables(storage, manifest)).deltas["old", "new", "ndcg_at_10"]
    assert deltas.queries == 4  # the eighth has no value
    everything = manifest.model_copy(update={"config": config | {"compare": {"min_judged": None}}})
    assert gather_report_data(RunTables(storage, everything)).deltas["old", "new", "ndcg_at_10"].queries == 7


def test_everything_is_counted_once(tmp_path: Path) -> None:
    data = gather_report_data(RunTables(*publish(tmp_path)))
    assert data.histograms["old", "ndcg_at_10"].sum() == 199
    assert data.histograms["new", "recall_at_20"].tolist() == [0] * 10 + [200, 0]
    assert data.deltas["old", "new", "ndcg_at_10"].counts.sum() == 149


def test_text_of_the_log_never_becomes_markup(tmp_path: Path) -> None:
    """Hostile names make a page of the same elements as harmless ones."""
    plain, hostile = (
        render_report(*publish(tmp_path / kind, systems=["old", name], queries=[*names, *map(str, range(20))]))
        for kind, name, names in (("plain", "new", "abcdef"), ("hostile", "<script>s</script>", HOSTILE))
    )
    assert Tags(plain).names == Tags(hostile).names
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hostile
    assert "<script>alert" not in hostile and "<img" not in hostile


def test_the_page_fetches_nothing_and_allows_only_its_own_script(tmp_path: Path) -> None:
    page = render_report(*publish(tmp_path))
    assert "default-src &#x27;none&#x27;; script-src &#x27;sha256-" in page
    assert page.count("<script") == page.count("<style") == 1
    for fetched in ("src=", "url(", "@import", "<link", "http://", "https://"):
        assert fetched not in page


def test_the_report_and_the_tracked_run_have_the_verdict_in_one_sentence(tmp_path: Path) -> None:
    storage, manifest = publish(tmp_path)
    sentence = "new beats old: ndcg@10 +0.0749 (95 % CI +0.0649 to +0.0849) on 199 queries."  # 0.1 · 149 / 199
    unbroken = sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    assert f"<b><bdi>{unbroken}</bdi></b>" in render_report(storage, manifest)
    note = build_payload(storage, manifest, "assay").parent.tags["mlflow.note.content"]
    assert note.startswith(f"**{sentence}** No query got worse: try it online.")


def test_the_first_section_is_the_answer(tmp_path: Path) -> None:
    """Candidates by effect on one scale, what they cover, the queries that moved with their text, and what to do."""
    reading = {"rule": "low_power", "baseline": "old", "candidate": "worst", "text": "Only a large one could be seen."}
    storage, manifest = publish(tmp_path, systems=["old", "worst", "best"], lift=0.1, readings=[reading])
    run = RunTables(storage, manifest)
    data = gather_report_data(run)
    assert data.baseline == "old" and data.systems == ("old", "best", "worst")
    assert [answer.candidate for answer in data.answers] == ["best", "worst"]
    rows = [dict(row) | {"unseen_weight": 0.25, "kept_traffic": 0.5} for row in data.comparisons]
    changes = [dict(row) | {"query": "red shoes"} for row in data.changes]
    shares = {"old": 0.9, "best": 0.6, "worst": 0.8}
    page = str(render_answer(replace(data, comparisons=rows, changes=changes, judged=shares)))
    assert page.index("best beats old") < page.index("worst beats old")
    assert page.count("What to do: </b><bdi>No query got worse: try it online.") == 2
    assert page.count("Only a large one could be seen.") == 1
    assert "← worse than old" in page and ">+0.05</text>" in page and ">0</text>" in page
    assert "90% → 60%" in page and ">25%</span>" in page and ">199 of 199</span>" in page
    assert "<bdi>red shoes</bdi><small> <bdi>q0</bdi></small>" in page
    assert page.count("<details open") == 1 and page.count("<details") == 2 * 3


def test_nothing_is_shown_that_nobody_asked_for(tmp_path: Path) -> None:
    storage, manifest = publish(tmp_path)
    tables = RunTables(storage, manifest)
    for name in ("segment_metrics", "comparisons"):
        rows = tables.rows(name, most=999, first=lambda row: row["metric"])
        more = [dict(row) | {"metric": "judged_at_10"} for row in rows if row["metric"] == "ndcg_at_10"]
        record = write(storage, manifest.dt, "more", name, [*rows, *more])
        manifest = manifest.model_copy(update={"tables": {**manifest.tables, name: record}})
    page = render_report(storage, manifest)
    assert "judged" not in page.replace("_judged", "").split("</style>")[1].split("<h3>Conventions")[0]
    assert gather_report_data(RunTables(storage, manifest)).sizes == {"segment_metrics": 12, "comparisons": 3}


def test_a_mean_over_other_queries_than_the_baselines_is_marked(tmp_path: Path) -> None:
    data = gather_report_data(RunTables(*publish(tmp_path)))
    fewer = [dict(row) for row in data.overall]
    next(row for row in fewer if (row["system"], row["metric"]) == ("new", "ndcg_at_10"))["queries"] = 150
    page = str(render_systems(replace(data, overall=fewer)))
    assert page.count("]†</small>") == 1 and "† is over different queries from old’s" in page
    assert page.index("old (baseline)") < page.index("<bdi>new</bdi>")
    assert "†" not in str(render_systems(data))


def test_title_owner_and_links_are_configured(tmp_path: Path) -> None:
    links = {"MLflow <run>": "https://mlflow.example.com/#/experiments/1?q=tags.run%3D'{run}'&d={date}"}
    settings = {"title": "Shop & search", "owner": "Team Ranking", "links": links}
    storage, manifest = publish(tmp_path)
    named = manifest.model_copy(update={"config": dict(manifest.config) | {"report": settings}})
    page = render_report(storage, named)
    assert "<h1>Shop &amp; search, 2026-11-01</h1>" in page and "Team Ranking · 2 systems · run aaaaaaaaaaaa" in page
    address = "https://mlflow.example.com/#/experiments/1?q=tags.run%3D&#x27;aaaaaaaaaaaa-000001&#x27;&amp;d=2026-11-01"
    assert f'<a href="{address}" rel="noreferrer" class="link"><bdi>MLflow &lt;run&gt;</bdi></a>' in page
    with pytest.raises(ValidationError, match="not a web address: begin it with https://"):
        ReportSettings(links={"x": "javascript:alert(1)"})
    assert read_report_settings({"report": True}) == read_report_settings({}) == ReportSettings()


def test_p_values_have_one_convention() -> None:
    shown = [format_p(p) for p in (0.0, 0.00009, 0.0001, 0.0123, 0.5, 0.99995, 1.0)]
    assert shown == ["< .0001", "< .0001", ".0001", ".0123", ".5000", "> .9999", "> .9999"]


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [
        ((-0.13, 0.24), [-0.1, 0.0, 0.1, 0.2]),
        ((-0.0004, 0.0019), [0.0, 0.0005, 0.001, 0.0015]),
        ((-3.1, 12.0), [0.0, 5.0, 10.0]),
        ((-0.97, 0.02), [-0.5, 0.0]),
    ],
)
def test_ticks_are_round_numbers_with_zero(ends: tuple[float, float], ticks: list[float]) -> None:
    assert choose_ticks(*ends) == ticks


def test_markup_escapes_what_is_not_markup() -> None:
    assert h("b", "1 < 2", Markup("<i>x</i>"), title='"') == '<b title="&quot;">1 &lt; 2<i>x</i></b>'
    assert text("a\x00b" + "x" * 999) == "<bdi>a\ufffdb" + "x" * 156 + "…</bdi>"


def test_with_a_posterior_dcg_stands_beside_ndcg(tmp_path: Path) -> None:
    gate = [{"metric": "ndcg@10"}]
    config = {"metrics": ["ndcg@10", "recall@10"], "gate": gate}
    data = gather_report_data(RunTables(*publish(tmp_path, config=config, conventions={"unjudged": "posterior"})))
    assert [spec.name for spec in data.metrics] == ["ndcg@10", "dcg@10", "recall@10"]
    assert data.headline == ("ndcg_at_10", "dcg_at_10")
    assert {metric for _, metric in data.histograms} == {"ndcg_at_10", "recall_at_10"}, "dcg is not bounded by 1"
    averages = {"system": "new", "metric": "dcg_at_10", "macro": 5.25, "macro_low": 5.0, "macro_high": 5.5,
                "weighted": 6.75, "weighted_low": 6.5, "weighted_high": 7.0, "queries": 199, "skipped": 1}  # fmt: skip
    page = str(render_systems(replace(data, overall=[*data.overall, averages])))
    assert "5.2500<small> [5.000, 5.500]" in page and "6.7500<small> [6.500, 7.000]" in page
    assert "dcg@10 by traffic" in page and "ndcg@10 by traffic" not in page
    by_people = gather_report_data(RunTables(*publish(tmp_path / "people", config=config)))
    assert [spec.name for spec in by_people.metrics] == ["ndcg@10", "recall@10"]


def test_what_a_comparison_rests_on_is_shown_with_the_prior(tmp_path: Path) -> None:
    data = gather_report_data(RunTables(*publish(tmp_path)))
    assert render_basis(data) is None, "labels of people are not drawn"
    rests = {"label_share": 0.61, "unseen_weight": 0.3, "untrafficked": 0.05, "hull": True, "other": -0.04,
             "curve_shift": 0.002}  # fmt: skip
    effects = [(HOSTILE[0], level, effect) for level, effect in (("1", 0.7), ("2–3", 0.1), ("absent", -0.9))]
    prior = [
        {"factor": f, "kind": "main", "level": level, "effect": e, "low": e - 0.2, "high": e + 0.2, "clicks": 10.0,
         "expected": 8.0} for f, level, e in effects
    ]  # fmt: skip
    full = replace(data, comparisons=[dict(row) | rests for row in data.comparisons], prior=prior)
    page = str(render_basis(full))
    assert all(figure in page for figure in (">61%<", ">30%<", ">5%<", ">+0.0020<", " or -0.0400<"))
    assert page.count(" or -0.0400<") == 1, "over all queries only"
    assert "2–3: 0.10 [-0.10, 0.30], 10 clicks, 8 expected" in page
    assert page.count("<circle") == 3 and "<script>" not in page


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
    data = gather_report_data(RunTables(storage, big))
    row = dict(data.segments[0], value=long)
    full = replace(data, segments=[row] * 1000, comparisons=[*data.comparisons] * 6)
    page = render_within_limit(full)
    assert 100_000 < len(page.encode()) < LARGEST
    assert "Segments" in page and "Movers" in page


def test_two_runs_are_compared_on_the_queries_of_both(tmp_path: Path) -> None:
    storage, before = publish(tmp_path)
    queries = [f"q{number}" for number in range(100, 300)]
    _, after = publish(tmp_path, date="2026-11-02", run="b-1", queries=queries, conventions={"unjudged": "condense"})
    row = COMPARISON | {"metric": "ndcg_at_10", "segment": "all", "value": "all", "queries": 99, "p_value": 0.00001}
    other = row | {"segment": "device", "value": "ios", "queries": 50}
    data = gather_two_runs(storage, (before, after), {"old": RunComparison([row, other], [])})
    assert data.deltas["old"].queries == 99  # 100 common queries, less the one without a value
    assert len(data.movers["old"]) == 20
    page = render_two_runs(data)
    assert "convention unjudged: zero → condense" in page
    assert page.count('<td class="short"><bdi>old</bdi></td><td class="short"><bdi>ndcg@10</bdi>') == 1
    assert 'data-v="99"' in page and "&lt; .0001" in page and "60 / 0 / 39" in page
    for heading in ("Δ [95 % CI]", "p (adjusted)", "W / T / L", "min. detectable Δ"):
        assert heading in page


def test_systems_that_two_runs_do_not_share_are_refused(tmp_path: Path) -> None:
    _, before = publish(tmp_path)
    _, after = publish(tmp_path, date="2026-11-02", run="b-1")
    assert find_common_systems((before, after)) == ["old", "new"]
    with pytest.raises(ConfigurationError, match="did you mean 'new'"):
        find_common_systems((before, after), "nev")
    with pytest.raises(InputError, match="no system in common"):
        find_common_systems((before, after.model_copy(update={"systems": ("other",)})))


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
    remove_runs(storage, find_removable(storage, keep=1, hours=dt.timedelta(days=1).total_seconds()))
    assert list(storage.list("reports", suffix=".html", recursive=True)) == ["reports/2026-11-01/b-1.html"]
