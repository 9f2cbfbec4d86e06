"""Where the numbers come from: labels, data quality, conventions and configuration."""

from __future__ import annotations

import json
import math
from typing import Any

from pipelines.agreed import agreement_lines
from pipelines.configure import leaves
from pipelines.report.charts import Point, bars, lines, whole_numbers
from pipelines.report.facts import Facts
from pipelines.report.markup import Markup, h, text
from pipelines.report.table import Number, table

CONTEXTS, POSITIONS, SETTINGS = 8, 50, 250


def labels(facts: Facts) -> Markup | None:
    """How a log became labels: the curve of attention, what was dropped, the grades, and whether judges agree."""
    told = facts.manifest.labels
    if not facts.grades and not told:
        return None
    earlier = told.get("from_run")
    return h(
        "section",
        h("h2", "Labels"),
        h("p", "Labels of run ", text(earlier), ".", class_="quiet") if earlier else None,
        h("div", _curves(facts), _grades(facts), _funnel(facts), class_="plots"),
        [
            h("p", "! " if verdict["warning"] else "", text(verdict["sentence"], 500), class_="quiet")
            for verdict in told.get("verdicts", ())[:20]
        ],
        [h("p", f"{line[0].upper()}{line[1:]}.") for line in agreement_lines(told.get("agreement"))],
        id="labels",
    )


def _curves(facts: Facts) -> Markup | None:
    contexts = list(dict.fromkeys(row["context"] for row in facts.propensities))[:CONTEXTS]
    series = []
    for context in contexts:
        mine = [r for r in facts.propensities if r["context"] == context and r["position"] <= POSITIONS]
        points = [
            Point(
                r["position"], r["propensity"], r["low"], r["high"], f"position {r['position']}: {r['propensity']:.3f}"
            )
            for r in sorted(mine, key=lambda r: int(r["position"]))
        ]
        series.append((context, points))
    positions = [p.x for _, points in series for p in points]
    return lines(series, "Chance of being looked at, by position", ticks=whole_numbers(positions)) if series else None


def _grades(facts: Facts) -> Markup | None:
    if not facts.grades:
        return None
    total = sum(facts.grades.values())

    def none(grade: Any) -> bool:
        return grade is None or math.isnan(grade)

    shown = sorted(facts.grades.items(), key=lambda item: (item[0][0], none(item[0][1]), item[0][1]))
    rows = []
    for (source, grade), pairs in shown:
        name = f"{source}, {'no grade' if none(grade) else f'grade {grade:g}'}"
        rows.append((name, pairs, f"{pairs:,}", f"{pairs:,} pairs, {pairs / total:.1%}"))
    return bars(rows, f"{total:,} labels by grade")


def _funnel(facts: Facts) -> Markup | None:
    if not facts.funnel:
        return None
    rows = [
        (
            row["rule"],
            row["impressions_dropped"] + row["clicks_dropped"],
            f"{row['impressions_dropped']:,} + {row['clicks_dropped']:,}",
            f"{row['impressions_dropped']:,} impressions, {row['clicks_dropped']:,} clicks, "
            f"{row['users_touched']:,} users; {row['only_this_rule']:,} rows by this rule alone",
        )
        for row in facts.funnel
    ]
    return bars(rows, "Dropped as noise, by rule: impressions + clicks")


def quality(facts: Facts) -> Markup:
    """What was read, what could not be used, and which checks of the data failed."""
    manifest = facts.manifest
    rows = []
    for name, counts in manifest.inputs.items():
        rejected = counts.get("rejected", {})
        reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in rejected.items())
        missing = ", ".join(counts.get("missing_days", ()))
        rows.append(
            [
                name,
                Number(counts.get("read"), ","),
                Number(sum(rejected.values()), ",", "worse" if rejected else ""),
                text(reasons or "–", 400),
                missing or "–",
                str(counts.get("digest", ""))[:12],
            ]
        )
    columns = ["input", "rows read", "unusable", "reasons", "missing days", "digest"]
    return h("section", h("h2", "Data quality"), table(columns, rows), _checks(manifest.checks), id="quality")


def _checks(checks: Any) -> Markup | None:
    if not checks:
        return None
    counted = [
        [name, *[Number(found.get(kind, 0), ",") for kind in ("passed", "warned", "failed")]]
        for name, found in checks.get("tables", {}).items()
    ]
    failing = [
        [
            h("span", row["severity"], class_=f"badge {'fail' if row['severity'] == 'error' else 'unsure'}"),
            row["table"],
            " ".join(filter(None, [row["check"], row.get("column")])),
            Number(row.get("failed_rows"), ","),
            f"{row.get('observed') or '–'}; allowed: {row.get('allowed') or '–'}",
            ", ".join(str(value) for value in row.get("sample") or ()),
            text(row.get("advice") or "", 300),
        ]
        for row in checks.get("failing", ())[:50]
    ]
    columns = ["severity", "table", "check", "rows", "found", "sample", "what to do"]
    return h(
        "div",
        h("h3", f"Checks ({checks.get('mode', 'full')})"),
        table(["table", "passed", "warned", "failed"], counted),
        [h("h3", "Not passed"), table(columns, failing)] if failing else None,
        h("p", f"Every check as Data Docs: {checks['docs']}/index.html in the warehouse") if "docs" in checks else None,
    )


def conditions(facts: Facts) -> Markup:
    """Conventions, timings and the whole configuration, for whoever wants to repeat it."""
    manifest = facts.manifest
    stages = [
        (name, seconds, f"{seconds:.1f} s", f"{seconds:.3f} seconds") for name, seconds in manifest.seconds.items()
    ]
    settings = list(leaves(dict(manifest.config)))
    rows = [[key, text(json.dumps(value, ensure_ascii=False), 300)] for key, value in settings[:SETTINGS]]
    facts_of_run = {
        "run": manifest.run,
        "date": manifest.dt,
        "committed": manifest.committed_at,
        "configuration": manifest.config_hash,
        "code": manifest.code,
        "Spark": manifest.spark,
    }
    return h(
        "section",
        h("h2", "Conventions and configuration"),
        h("dl", [[h("dt", name), h("dd", text(value))] for name, value in facts_of_run.items()]),
        h("h3", "Conventions"),
        h("dl", [[h("dt", name), h("dd", text("–" if v is None else v))] for name, v in manifest.conventions.items()]),
        h("div", bars(stages, "Seconds by stage"), class_="plots") if stages else None,
        h("details", h("summary", "Configuration"), table(["key", "value"], rows, of=len(settings), whole="manifest")),
        id="configuration",
    )
