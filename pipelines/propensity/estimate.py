"""The stage: from counts to a curve per context, with intervals and verdicts, in one small task."""

import json

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from pipelines.denoise.pairs import BUCKETS
from pipelines.propensity.diagnostics import (
    Verdict,
    judge_agreement,
    judge_fit,
    judge_graph,
    judge_moves,
    judge_trend,
    link_to_first,
)
from pipelines.propensity.estimators import estimator_named
from pipelines.propensity.evidence import Evidence, Floats, gather
from pipelines.propensity.intervals import Estimate, estimate, shrink
from pipelines.propensity.settings import PropensitySettings
from pipelines.propensity.statistics import gather_statistics
from schemas.outputs import PROPENSITIES

POOLED = "all"
_RESULT = (
    "record STRING, context STRING, position INT, last_click INT, propensity DOUBLE, offset DOUBLE, low DOUBLE, "
    "high DOUBLE, impressions BIGINT, clicks BIGINT, estimator STRING, check STRING, value DOUBLE, warning BOOLEAN, "
    "sentence STRING"
)


def estimate_propensities(cells: DataFrame, tallied: DataFrame, settings: PropensitySettings) -> DataFrame:
    """One small table of records: `use` (what grading joins), `curve` (what is published), `verdict`.

    The statistics have a few rows per context and pair of positions, whatever the size of the log, so one task fits
    all curves; nothing is collected.
    """
    chosen = estimator_named(settings.estimator)
    max_cells = settings.max_cells if chosen.cells else settings.checked_cells
    wanted = settings.model_dump_json()

    def fit(statistics: pd.DataFrame) -> pd.DataFrame:
        return fit_curves(statistics, PropensitySettings(**json.loads(wanted)))

    return gather_statistics(cells, tallied, max_cells=max_cells).groupBy().applyInPandas(fit, _RESULT)


def published(records: DataFrame) -> DataFrame:
    """The table `propensities`."""
    return records.where("record = 'curve'").select(*PROPENSITIES.names)


def verdicts_of(records: DataFrame) -> DataFrame:
    """What the diagnostics say."""
    return records.where("record = 'verdict'").select("check", "value", "warning", "sentence")


def fit_curves(statistics: pd.DataFrame, settings: PropensitySettings) -> pd.DataFrame:
    """All curves and verdicts from the statistics of a log."""
    chosen = estimator_named(settings.estimator)
    places = statistics[statistics["statistic"] == "place"]
    size = int(places["position"].max()) if len(places) else 1
    assumed = np.arange(1, size + 1, dtype=np.float64) ** -settings.assumed_eta

    def collect(rows: pd.DataFrame) -> Evidence:
        return gather(rows, positions=size, buckets=BUCKETS, history=chosen.history)

    everything = collect(statistics)
    pooled = estimate(chosen, everything, assumed, jackknife=settings.jackknife)
    names = sorted(set(places["context"]))
    curves = {POOLED: (everything, pooled)}
    if names != [POOLED]:
        parts = [collect(statistics[statistics["context"] == name]) for name in names]
        own = [estimate(chosen, part, pooled.positions, jackknife=settings.jackknife) for part in parts]
        links = [link_to_first(part, settings.minimum_edge) for part in parts]
        curves |= dict(zip(names, zip(parts, shrink(own, pooled, links), strict=True), strict=True))
    linked = link_to_first(everything, settings.minimum_edge) if chosen.graph else np.ones(size)
    rows = [row for name, pair in curves.items() for row in _curve_rows(name, *pair, linked, settings.estimator)]
    rows += [_verdict_row(verdict) for verdict in _judge(statistics, everything, pooled.positions, assumed, settings)]
    columns = [part.split()[0] for part in _RESULT.split(", ")]
    return pd.DataFrame(rows, columns=columns)


def _curve_rows(
    context: str, evidence: Evidence, found: Estimate, linked: Floats, name: str
) -> list[dict[str, object]]:
    low, high = found.bounds()
    shown, clicks = evidence.shown.sum(axis=(0, 2)), evidence.clicks.sum(axis=(0, 2))
    rows: list[dict[str, object]] = []
    for place, value in enumerate(found.positions):
        place_row = {"context": context, "position": place + 1}
        interval = {"low": low[place], "high": high[place]} if np.isfinite(low[place]) and linked[place] else {}
        counts = {"impressions": int(shown[place]), "clicks": int(clicks[place])}
        told = {"propensity": float(value), "estimator": name if linked[place] else "assumed"}
        rows.append({"record": "curve"} | place_row | told | interval | counts)
        for last, chance in enumerate(found.curve.propensity[place]):
            use = {"last_click": last, "propensity": float(chance), "offset": float(found.curve.offset[place])}
            rows.append({"record": "use"} | place_row | use)
    return rows


def _verdict_row(verdict: Verdict) -> dict[str, object]:
    told = {"check": verdict.check, "value": verdict.value, "warning": verdict.warning, "sentence": verdict.sentence}
    return {"record": "verdict"} | told


def _judge(
    statistics: pd.DataFrame, evidence: Evidence, curve: Floats, assumed: Floats, settings: PropensitySettings
) -> list[Verdict]:
    chosen = estimator_named(settings.estimator)
    verdicts = judge_graph(evidence, settings.minimum_edge, settings.assumed_eta) if chosen.graph else []
    moved = statistics[statistics["statistic"] == "moved"]
    if settings.estimator not in ("randomized", "none"):
        verdicts.append(judge_moves(moved["shown"].sum(), moved["clicks"].sum(), settings.moving_share))
    verdicts += judge_trend(evidence, curve)
    cells = evidence.cells
    if not cells.pair.size or not cells.clicks.sum():
        return verdicts
    verdicts += judge_fit(cells, curve)
    other = "em" if settings.estimator == "all_pairs" else "all_pairs"
    if not any(verdict.check == "connected" and verdict.warning for verdict in verdicts):
        other_curve = estimator_named(other).fit(evidence, assumed).by_position(evidence)
        verdicts.append(judge_agreement(settings.estimator, curve, other, other_curve))
    return verdicts
