"""Conventions, timings and the configuration: what is needed to reproduce the numbers."""

from __future__ import annotations

import json

from pipelines.config.load import flatten
from pipelines.report.charts import draw_bars
from pipelines.report.data import ReportData
from pipelines.report.markup import Markup, h, text
from pipelines.report.tables import render_table

SETTINGS = 250


def render_configuration(data: ReportData) -> Markup:
    """The identity of the run, its conventions, seconds by stage and every setting."""
    manifest = data.manifest
    stages = [
        (name, seconds, f"{seconds:.1f} s", f"{seconds:.3f} seconds") for name, seconds in manifest.seconds.items()
    ]
    settings = list(flatten(dict(manifest.config)))
    rows = [[key, text(json.dumps(value, ensure_ascii=False), 300)] for key, value in settings[:SETTINGS]]
    identity = {
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
        h("dl", [[h("dt", name), h("dd", text(value))] for name, value in identity.items()]),
        h("h3", "Conventions"),
        h("dl", [[h("dt", name), h("dd", text("–" if v is None else v))] for name, v in manifest.conventions.items()]),
        h("div", draw_bars(stages, "Seconds by stage"), class_="plots") if stages else None,
        h(
            "details",
            h("summary", "Configuration"),
            render_table(["key", "value"], rows, of=len(settings), whole="manifest"),
        ),
        id="configuration",
    )
