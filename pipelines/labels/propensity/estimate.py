"""Estimate one curve per context from counts, with confidence intervals and diagnostics, in one small task."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from pipelines.labels.denoise.pairs import BUCKETS
from pipelines.labels.propensity.diagnostics import (
    CurveDiagnostic,
    diagnose_agreement,
    diagnose_graph,
    diagnose_moves,
    diagnose_trend,
)
from pipelines.labels.propensity.evidence import Floats, PositionEvidence, gather_evidence
from pipelines.labels.propensity.held_out import diagnose_fit
from pipelines.labels.propensity.intervals import CurveEstimate, estimate_curve, shrink_curves
from pipelines.labels.propensity.registry import ESTIMATORS, Estimator
from pipelines.labels.propensity.settings import PropensitySettings
from pipelines.labels.propensity.statistics import gather_statistics, merge_sums
from schemas.outputs import PROPENSITIES

POOLED = "all"
_RESULT = (
    "record STRING, context STRING, position INT, history INT, propensity DOUBLE, offset DOUBLE, low DOUBLE, "
    "high DOUBLE, impressions BIGINT, clicks BIGINT, estimator STRING, basis STRING, error DOUBLE, check STRING, "
    "value DOUBLE, warning BOOLEAN, sentence STRING"
)


def estimate_propensities(cells: DataFrame, tallied: DataFrame, settings: PropensitySettings) -> DataFrame:
    """One small table of records: `use` (joined by grading), `curve` (published), `exponent`, `diagnostic`.

    An `exponent` is the η of a context's curve (`value`) with its standard deviation (`error`): the leading error of
    its propensities is a factor k^δ with δ ~ N(0, error²).

    The statistics have a few rows per context and pair of positions, whatever the size of the log, so one task fits
    all curves; nothing is collected.
    """
    estimator = ESTIMATORS.require(settings.estimator)
    max_cells = settings.max_cells if estimator.cells else settings.checked_cells
    serialised = settings.model_dump_json()

    def fit_statistics(sums: pd.DataFrame) -> pd.DataFrame:
        return fit_curves(merge_sums(sums), PropensitySettings(**json.loads(serialised)))

    return gather_statistics(cells, tallied, max_cells=max_cells).groupBy().applyInPandas(fit_statistics, _RESULT)


def select_propensities(records: DataFrame) -> DataFrame:
    """The table `propensities`."""
    return records.where("record = 'curve'").select(*PROPENSITIES.names)


def select_exponent(records: DataFrame) -> DataFrame:
    """One row with `exponent_sd`: how far the pooled curve may be off, as a power of the position."""
    return records.where(f"record = 'exponent' AND context = '{POOLED}'").selectExpr("error AS exponent_sd")


def select_diagnostics(records: DataFrame) -> DataFrame:
    """The diagnostics of the curves."""
    return records.where("record = 'diagnostic'").select("check", "value", "warning", "sentence")


def fit_curves(statistics: pd.DataFrame, settings: PropensitySettings) -> pd.DataFrame:
    """All curves and diagnostics from the statistics of a log."""
    estimator = ESTIMATORS.require(settings.estimator)
    places = statistics[statistics["statistic"] == "place"]
    size = int(places["position"].max()) if len(places) else 1
    assumed = np.arange(1, size + 1, dtype=np.float64) ** -settings.assumed_eta

    def gather(rows: pd.DataFrame) -> PositionEvidence:
        return gather_evidence(rows, positions=size, buckets=BUCKETS, history=estimator.history)

    everything = gather(statistics)
    pooled = estimate_curve(estimator, everything, assumed, settings)
    names = sorted(set(places["context"]))
    curves = {POOLED: (everything, pooled)}
    if names != [POOLED]:
        parts = [gather(statistics[statistics["context"] == name]) for name in names]
        own = [estimate_curve(estimator, part, pooled.positions, settings) for part in parts]
        curves |= dict(zip(names, zip(parts, shrink_curves(own, pooled), strict=True), strict=True))
    rows = [row for name, pair in curves.items() for row in _curve_rows(name, *pair, estimator)]
    moved = statistics[statistics["statistic"] == "moved"]
    diagnostics = [] if estimator.name in ("randomized", "none") else _diagnose_moves(moved, settings)
    diagnostics += diagnose_curve(estimator, everything, pooled, assumed, settings)
    rows += [{"record": "diagnostic"} | asdict(diagnostic) for diagnostic in diagnostics]
    columns = [part.split()[0] for part in _RESULT.split(", ")]
    return pd.DataFrame(rows, columns=columns)


def _curve_rows(
    context: str, evidence: PositionEvidence, estimate: CurveEstimate, estimator: Estimator
) -> list[dict[str, object]]:
    low, high = estimate.bounds()
    shown, clicks = evidence.shown.sum(axis=(0, 2)), evidence.clicks.sum(axis=(0, 2))
    rows: list[dict[str, object]] = []
    if np.isfinite(estimate.eta):
        exponent = {"value": estimate.eta, "error": estimate.eta_deviation}
        rows.append({"record": "exponent", "context": context, **exponent})
    for place, value in enumerate(estimate.positions):
        place_row = {"context": context, "position": place + 1}
        has_interval = np.isfinite(estimate.error[place])
        interval = {"low": low[place], "high": high[place], "error": estimate.error[place]} if has_interval else {}
        counts = {"impressions": int(shown[place]), "clicks": int(clicks[place])}
        basis = estimate.basis[place]
        source = "assumed" if basis == "assumed" and not estimator.fixed else estimator.name
        values = {"propensity": float(value), "estimator": source, "basis": basis}
        rows.append({"record": "curve"} | place_row | values | interval | counts)
        for state, chance in enumerate(estimate.curve.propensity[place]):
            use = {"history": state, "propensity": float(chance), "offset": float(estimate.curve.offset[place])}
            rows.append({"record": "use"} | place_row | use)
    return rows


def _diagnose_moves(moved: pd.DataFrame, settings: PropensitySettings) -> list[CurveDiagnostic]:
    shown = float(moved["shown"].sum())
    return [diagnose_moves(shown, float(moved["clicks"].sum()), settings.moving_share)] if shown > 0 else []


def diagnose_curve(
    estimator: Estimator,
    evidence: PositionEvidence,
    estimate: CurveEstimate,
    assumed: Floats,
    settings: PropensitySettings,
) -> list[CurveDiagnostic]:
    """The diagnostics that apply to an estimator: whether the log can decide, and whether the curve fits it."""
    diagnostics = [diagnose_graph(evidence, estimate, settings)] if estimator.graph else []
    connected = not any(diagnostic.warning for diagnostic in diagnostics)
    by_position = estimator.history is None and not estimate.curve.offset.any()
    if by_position:
        diagnostics += diagnose_trend(evidence, estimate.positions)
    cells = evidence.cells
    if estimator.history == "read" or not cells.clicks.sum():
        return diagnostics
    if not estimate.curve.offset.any():
        diagnostics += diagnose_fit(cells, estimate.curve)
    if connected and not (estimator.fixed and estimator.history):
        other = ESTIMATORS.require("em" if estimator.name == "all_pairs" else "all_pairs")
        other_estimate = estimate_curve(other, evidence, assumed, settings)
        diagnostics.append(diagnose_agreement((estimator.name, other.name), estimate, other_estimate))
    return diagnostics
