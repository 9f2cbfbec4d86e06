"""Print the verdicts, the means, the comparisons and the readings of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobs.support.grids import Grid, choose_columns, show_grid, total_width
from pipelines.comparison.answers import (
    CandidateAnswer,
    find_baseline,
    order_systems,
    read_confidence,
    sort_by_effect,
    sort_readings,
)
from schemas.printable import format_count

if TYPE_CHECKING:
    from rich.console import Console

    from pipelines.warehouse.runs import Manifest

_TESTS = {"p_randomisation": "p\n(signs)", "p_bootstrap": "p\n(boot.)"}
_CHANGE, _TRAFFIC, _COUNTS, _DETECTABLE = "change", "Δ by\ntraffic", "W/T/L", "min.\ndetectable\nΔ"
_QUERIES = "queries"
_LEAST = (_DETECTABLE, _COUNTS, _CHANGE, *_TESTS.values(), _TRAFFIC, "p")  # left out in this order where it is narrow
_BASIS = {  # what a comparison on drawn labels rests on, and its heading
    "label_share": "variance\nfrom labels",
    "unseen_weight": "top results\nshown to nobody",
    "untrafficked": "queries with\nno traffic",
}
_MARKS = {"pass": "✓", "fail": "✗", "undecidable": "?"}
_OUTCOMES = {"better": "✓", "worse": "✗", "unclear": "=", "undecidable": "?", "empty": "✗"}
READINGS = 3  # of each candidate, unless all are asked for
_OTHER = "†"  # marks a mean over other queries than the baseline's


def show_answers(answers: Sequence[CandidateAnswer]) -> None:
    """Print the verdict on each candidate, and what to do."""
    from jobs.support.terminal import open_console, print_line

    console = open_console(wide=True)
    for answer in answers:
        mark = _OUTCOMES[answer.outcome] if answer.gate is None else _MARKS[answer.gate]
        print_line(console, f"{mark} {answer.sentence}")
        print_line(console, f"  → {answer.advice}")
    if answers:
        print_line(console, "")


def show_means(
    manifest: Manifest,
    means: Sequence[Mapping[str, Any]],
    compared: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
) -> None:
    """Print the mean of every metric per system: the baseline first, then candidates by their effect.

    A mean over a number of queries of its own has that number, and a mark where the baseline's has another.
    """
    from jobs.support.terminal import open_console, print_line
    from pipelines.comparison.headline import list_mean_forms, name_mean
    from udfs.registry import parse_metrics

    baseline = find_baseline(manifest, compared)
    values = {(row["system"], row["metric"]): row for row in means}
    columns = [(spec, form) for spec in parse_metrics(metrics) for form in list_mean_forms(spec)]
    systems = order_systems(manifest, compared)
    cells = []
    for system in systems:
        rows = [values[system, spec.key] for spec, _ in columns]
        base = [values.get((baseline, spec.key), row) for (spec, _), row in zip(columns, rows, strict=True)]
        counts = f"{rows[0]['queries']:,}", f"{rows[0]['skipped']:,}"
        shown = [
            _format_mean(row, form, rows[0], reference)
            for row, (_, form), reference in zip(rows, columns, base, strict=True)
        ]
        cells.append([*shown, *counts])
    grid = Grid(
        title=f"Mean over queries, {manifest.dt}",
        corner="system",
        across="metric",
        names=[f"{system} (baseline)" if system == baseline else system for system in systems],
        headings=[*(name_mean(spec, form) for spec, form in columns), _QUERIES, "skipped"],
        cells=cells,
        fold_names=True,
    )
    console = open_console(wide=True)
    show_grid(console, grid)
    if any(_OTHER in cell for row in cells for cell in row):
        print_line(
            console,
            f"{_OTHER} over different queries from {baseline}'s, so the two means are not comparable; the differences "
            "below are over the same queries",
        )


def _format_mean(row: Mapping[str, Any], form: str, first: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    if row[form] is None:
        return "–"
    from pipelines.comparison.headline import counts_other_queries

    mark = _OTHER if counts_other_queries(row, base) else ""
    count = f" (n={row['queries']:,})" if row["queries"] != first["queries"] else ""
    return f"{row[form]:.4f}{mark}{count}"


def show_conclusions(
    manifest: Manifest,
    compared: Sequence[Mapping[str, Any]],
    sensitivity: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    *,
    every_reading: bool = False,
) -> None:
    """Print what a run concludes beyond its means: comparisons, the gate's verdicts and the readings."""
    from jobs.support.terminal import open_console, print_line

    console = open_console(wide=True)
    if compared:
        show_comparisons(console, compared, metrics, read_confidence(manifest))
        show_basis(console, compared, metrics)
    if sensitivity:
        show_sensitivity(console, sensitivity, metrics, alpha=1 - read_confidence(manifest))
    for verdict in manifest.gate:
        value = "" if verdict["segment"] == "all" else f" [{verdict['segment']} = {verdict['value']}]"
        outcome = f"{_MARKS[verdict['verdict']]} gate {verdict['verdict']}"
        line = f"{outcome}: {verdict['condition']}{value} for {verdict['candidate']}: {verdict['reason']}"
        print_line(console, line)
        if verdict["warning"]:
            print_line(console, f"! {verdict['warning']}")
    if manifest.readings:
        places = {system: place for place, system in enumerate(order_systems(manifest, compared))}
        by_effect = sorted(manifest.readings, key=lambda entry: places.get(entry["candidate"], len(places)))
        show_readings(console, by_effect, every=every_reading)


def show_readings(console: Console, readings: Sequence[Mapping[str, Any]], *, every: bool) -> None:
    """Print the readings of each candidate, its largest risks first; the first few unless `every` is set."""
    from jobs.support.terminal import print_line

    groups: dict[tuple[str, str], list[str]] = {(r["candidate"], r["baseline"]): [] for r in readings}
    for entry in sort_readings(readings):
        groups[entry["candidate"], entry["baseline"]].append(entry["text"])
    left = 0
    for (candidate, baseline), texts in groups.items():
        print_line(console, f"{candidate} against {baseline}:")
        shown = texts if every else texts[:READINGS]
        left += len(texts) - len(shown)
        for text in shown:
            print_line(console, f"  • {text}")
    if left:
        print_line(console, f"{format_count(left, 'more reading')}: --all prints all, and the report has them")


def show_comparisons(
    console: Console, compared: Sequence[Mapping[str, Any]], metrics: Sequence[str], confidence: float
) -> None:
    """Print a table per pair with a line per configured metric, over all queries; pairs by their effect.

    A narrow console leaves out `_LEAST` columns. Other tests have a column where there are any, differences by traffic
    where sums of gains are shown, and the queries where they differ between metrics.
    """
    from udfs.registry import parse_metric

    order = {parse_metric(name).key: (place, name) for place, name in enumerate(metrics)}
    configured = [row for row in compared if row["metric"] in order]  # judged@k may have been computed besides
    first = min((order[row["metric"]][0] for row in configured), default=0)
    leading = [row for row in configured if order[row["metric"]][0] == first]
    absent = {heading for key, heading in _TESTS.items() if all(row[key] is None for row in compared)}
    absent |= set() if any(name.startswith("dcg") for _, name in order.values()) else {_TRAFFIC}
    for pair in dict.fromkeys((row["baseline"], row["candidate"]) for row in sort_by_effect(leading)):
        rows = [row for row in configured if (row["baseline"], row["candidate"]) == pair and row["delta"] is not None]
        rows.sort(key=lambda row: order[row["metric"]])
        if not rows:
            continue
        same = len({row.get(_QUERIES) for row in rows}) == 1
        cells = [_list_cells(row, confidence) for row in rows]
        names = [order[row["metric"]][1] for row in rows]
        widths = {
            heading: max(len(part) for part in (*heading.split("\n"), *(line[heading] for line in cells)))
            for heading in cells[0]
            if heading not in absent | ({_QUERIES} if same else set())
        }
        room = console.width - total_width([max(map(len, names))])
        headings = choose_columns(widths, _LEAST, room)
        table = [[line[heading] for heading in headings] for line in cells]
        title = f"{pair[1]} − {pair[0]}, paired by query"
        show_grid(console, Grid(title, "metric", names, headings, table))


def _list_cells(row: Mapping[str, Any], confidence: float) -> dict[str, str]:
    """The numbers of a comparison by their headings."""
    star = "*" if row["significant"] else ""
    return {
        "Δ": _format_change(row["delta"]),
        f"{100 * confidence:g} % CI": f"[{_format_change(row['delta_low'])}, {_format_change(row['delta_high'])}]",
        _CHANGE: "–" if row["relative"] is None else f"{row['relative']:+.1%}",
        _TRAFFIC: _format_change(row.get("weighted_delta")),
        "p": _format_p(row["p_value"]),
        **{heading: _format_p(row[key]) for key, heading in _TESTS.items()},
        "p\n(adjusted)": _format_p(row["p_adjusted"]) + star,
        _QUERIES: f"{row.get(_QUERIES) or 0:,}",
        _COUNTS: f"{row['wins']:,}/{row['ties']:,}/{row['losses']:,}",
        _DETECTABLE: "–" if row["detectable_delta"] is None else f"±{row['detectable_delta']:.4f}",
    }


def show_basis(console: Console, compared: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> None:
    """Print what each comparison by the first metric rests on, where its labels are drawn."""
    from udfs.registry import parse_metric

    first = parse_metric(metrics[0])
    rows = [row for row in compared if row["metric"] == first.key and row.get("label_share") is not None]
    names, cells = [], []
    for row in sort_by_effect(rows):
        shares = ["–" if row[key] is None else f"{row[key]:.0%}" for key in _BASIS]
        answers = f"{_format_change(row['delta'])} and {_format_change(row['other'])}"
        names.append(f"{row['candidate']} − {row['baseline']}")
        cells.append([*shares, answers if row["hull"] else "one answer"])
    title = f"What the difference in {first.name} rests on"
    headings = [*_BASIS.values(), "interval\ncovers"]
    show_grid(console, Grid(title, "candidate − baseline", names, headings, cells, fold_names=True))


def show_sensitivity(console: Console, rows: Sequence[Mapping[str, Any]], metrics: Sequence[str], alpha: float) -> None:
    """Print a table per headline metric and baseline: the differences by each way to count unjudged documents."""
    from udfs.conventions import UNJUDGED
    from udfs.registry import parse_metric

    rules = [rule for rule in UNJUDGED if rule in {row["unjudged"] for row in rows}]
    by_rule = {(row["baseline"], row["candidate"], row["metric"], row["unjudged"]): row for row in rows}
    own = [row for row in rows if row["unjudged"] == rules[0]]  # the run's rule comes first
    headings = ["\n".join(textwrap.wrap(UNJUDGED[rule], 16)) for rule in rules]
    for name in metrics:
        compared = [row for row in sort_by_effect(own) if row["metric"] == parse_metric(name).key]
        for baseline in dict.fromkeys(row["baseline"] for row in compared):
            candidates = [row["candidate"] for row in compared if row["baseline"] == baseline]
            subjects = [(baseline, candidate, parse_metric(name).key) for candidate in candidates]
            cells = [_list_variants([by_rule[*subject, rule] for rule in rules], alpha) for subject in subjects]
            title = f"Δ {name} against {baseline}, with unjudged documents …"
            show_grid(console, Grid(title, "candidate", candidates, headings, cells, fold_names=True))


def _list_variants(rows: Sequence[Mapping[str, Any]], alpha: float) -> list[str]:
    """The difference by each rule, and its number of queries where that is not the first rule's."""
    cells = []
    for row in rows:
        star = "*" if row["p_value"] is not None and row["p_value"] < alpha else ""
        mark = f" {_MARKS[row['gate']]}" if row["gate"] else ""
        count = f" n={row['queries']:,}" if row["queries"] != rows[0]["queries"] else ""
        cells.append(f"{_format_change(row['delta'])}{star}{mark}{count}")
    return cells


def _format_change(value: float | None) -> str:
    return "–" if value is None else f"{value:+.4f}"


def _format_p(value: float | None) -> str:
    from pipelines.report.tables import format_p

    return "–" if value is None else format_p(value)
