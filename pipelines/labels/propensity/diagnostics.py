"""Diagnostics of a curve: when not to trust it, in words. A correct curve passes them, whatever the click rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special  # not scipy.stats, which takes a second to import

from pipelines.labels.propensity.edges import find_connected_positions, score_evidence
from pipelines.labels.propensity.evidence import Floats, PositionEvidence
from pipelines.labels.propensity.information import combine_information
from pipelines.labels.propensity.intervals import CurveEstimate
from pipelines.labels.propensity.power import compute_slopes
from pipelines.labels.propensity.settings import PropensitySettings

SIGNIFICANCE = 0.01
_TREND = 0.10  # smallest exponent that matters
_MISFIT = 0.25  # smallest error of log θ at one position that matters
_AGREEMENT = 0.10  # smallest mean relative difference that matters


@dataclass(frozen=True)
class CurveDiagnostic:
    """One check: its figure, whether it is a warning, and what it means."""

    check: str
    value: float
    warning: bool
    sentence: str


def format_positions(positions: NDArray[np.intp]) -> str:
    """Positions (from 0) as text (from 1): 1–3, 7."""
    groups = np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1)
    return ", ".join(f"{g[0] + 1}–{g[-1] + 1}" if g.size > 1 else f"{g[0] + 1}" for g in groups if g.size)


def diagnose_graph(
    evidence: PositionEvidence, estimate: CurveEstimate, settings: PropensitySettings
) -> CurveDiagnostic:
    """Whether shared documents connect all positions with position 1, and what the others are based on."""
    linked = find_connected_positions(evidence, settings.minimum_edge)
    away = np.flatnonzero(~linked)
    consequence = _describe_basis(estimate, settings.assumed_eta)
    if not away.size:
        strength = (evidence.edge_clicks + evidence.edge_rest).sum(axis=(0, 2))
        documents = evidence.edge_pairs.sum(axis=(0, 2))
        weak = int(np.argmin(strength))
        sentence = (
            f"All {linked.size} positions are connected; the weakest is position {weak + 1}, with the evidence of "
            f"{strength[weak]:,.0f} impressions from {documents[weak]:,.0f} moves of documents"
        )
        return CurveDiagnostic("connected", 1.0, False, f"{sentence}{consequence and '; '}{consequence}.")
    reason = _describe_gap(evidence, linked, settings.minimum_edge)
    if linked.sum() == 1:
        can = "cannot" if set(estimate.basis[1:]) == {"assumed"} else "can hardly"
        sentence = (
            f"Position bias {can} be estimated from this log: {reason}; {consequence}. Serve some pages with another "
            "ranker, or swap results at random."
        )
        return CurveDiagnostic("connected", 0.0, True, sentence)
    connected = format_positions(np.flatnonzero(linked))
    which = f"Positions {format_positions(away)} are" if away.size > 1 else f"Position {away[0] + 1} is"
    sentence = f"{which} not connected to {connected}: {reason}; {consequence}."
    return CurveDiagnostic("connected", float(linked.mean()), True, sentence)


def _describe_gap(evidence: PositionEvidence, linked: NDArray[np.bool_], minimum_edge: float) -> str:
    """Why documents do not connect positions: none was shown at both sides, or too few."""
    across = np.outer(linked, ~linked)
    moves = float(evidence.edge_pairs.sum(axis=0)[across].sum())
    one_side = "at position 1" if linked.sum() == 1 else "there"
    if not moves:
        return f"no document was shown both {one_side} and at another position"
    weight = (evidence.edge_clicks + evidence.edge_rest).sum(axis=0)[across]
    clicks = evidence.edge_clicks.sum(axis=0)
    clicked = (clicks + clicks.T)[across] > 0
    best = float(np.max(weight[clicked], initial=0.0))
    shortage = f"below minimum_edge ({minimum_edge:g})" if clicked.any() else "none of them clicked"
    return (
        f"documents were shown both {one_side} and at another position {moves:,.0f} times, with evidence worth "
        f"{best if clicked.any() else float(weight.max()):,.1f} impressions for the best pair of positions, {shortage}"
    )


def _describe_basis(estimate: CurveEstimate, assumed_eta: float) -> str:
    """Which positions are not measured on their own, and what is used there."""
    basis = np.array(estimate.basis)
    pulled, assumed = (np.flatnonzero(basis == name) for name in ("pulled", "assumed"))
    parts = []
    if pulled.size:
        parts.append(f"a curve pulled to (1/k)^{estimate.eta:.2f} is used for {format_positions(pulled)}")
    if assumed.size:
        parts.append(f"an assumed curve (1/k)^{assumed_eta:g} is used for {format_positions(assumed)}")
    return ", ".join(parts)


def diagnose_moves(shown: float, moved: float, limit: float) -> CurveDiagnostic:
    """Whether the ranker is personalised: the position of a document varies within one system and day."""
    share = moved / shown
    if share > limit:
        sentence = (
            f"{share:.0%} of impressions are off their document's usual position within one system and day: the ranker "
            "is personalised, its positions depend on relevance to the user, and the curve cannot be trusted."
        )
        return CurveDiagnostic("personalised", share, True, sentence)
    sentence = f"Documents keep their position within one system and day ({share:.1%} of impressions are off it)."
    return CurveDiagnostic("personalised", share, False, sentence)


def diagnose_trend(evidence: PositionEvidence, curve: Floats) -> list[CurveDiagnostic]:
    """Whether documents still look more relevant at lower (or higher) positions after correction by the curve.

    The slope b of θ_k·k^b that fits the documents shown at several positions best, with its standard error, and the
    positions that the same documents place elsewhere. Both must matter and be significant to be reported.
    """
    log_p = np.log(curve / curve[0])
    slope, error = _fit_slope(log_p, evidence)
    if not np.isfinite(error):
        return []
    significant = bool(2 * special.ndtr(-abs(slope) / error) < SIGNIFICANCE)
    trend, wrong = significant and abs(slope) > _TREND, _find_wrong_positions(log_p, evidence)
    sentence = f"After correction, a document's click rate changes with its position k as k^{slope:+.3f} (±{error:.3f})"
    if trend:
        sentence += ": the curve does not fit this log"
    elif wrong.size:
        sentence += f"; the curve does not fit at {format_positions(wrong)}"
    else:
        sentence += ", which is within its error" if not significant else ", which is negligible"
    return [CurveDiagnostic("relevance_trend", slope, trend or wrong.size > 0, f"{sentence}.")]


def _fit_slope(log_p: Floats, evidence: PositionEvidence) -> tuple[float, float]:
    """The exponent that the edges add to a curve, by Newton steps, and its standard error; infinite without edges."""
    direction = np.append(0.0, -compute_slopes(log_p.size))
    slope = 0.0
    for _ in range(30):
        scores, curvature = score_evidence(log_p + slope * direction, evidence)
        information = float(direction @ curvature @ direction)
        if information <= 0:
            return 0.0, float("inf")
        step = float(np.clip((scores @ direction).sum() / information, -0.5, 0.5))
        slope += step
        if abs(step) < 1e-6:
            break
    along = scores @ direction
    along = np.where(along != 0, along - along.sum() / max(np.count_nonzero(along), 1), 0.0)
    return slope, float(combine_information(np.array([[information]]), along[:, None])[0, 0] ** -0.5)


def _find_wrong_positions(log_p: Floats, evidence: PositionEvidence) -> NDArray[np.intp]:
    """The positions (from 0) at which the edges contradict the curve, given all other positions."""
    scores, curvature = score_evidence(log_p, evidence)
    level = -special.ndtri(SIGNIFICANCE / 10 / log_p.size)  # of all positions together a tenth of the slope's
    wrong = []
    for place in range(log_p.size):
        information, along = float(curvature[place, place]), scores[:, place]
        if information <= 0:
            continue
        shift = float(along.sum()) / information
        centred = np.where(along != 0, along - along.sum() / max(np.count_nonzero(along), 1), 0.0)
        error = float(combine_information(np.array([[information]]), centred[:, None])[0, 0] ** -0.5)
        if abs(shift) > max(_MISFIT, level * error):
            wrong.append(place)
    return np.array(wrong, dtype=np.intp)


def diagnose_agreement(names: Sequence[str], one: CurveEstimate, other: CurveEstimate) -> CurveDiagnostic:
    """Whether two estimators find the same curve, as far as their errors allow."""
    gap = float(np.mean(np.abs(other.positions / one.positions - 1)[1:])) if one.positions.size > 1 else 0.0
    error = np.sqrt(np.nan_to_num(one.error) ** 2 + np.nan_to_num(other.error) ** 2)[1:]
    level = -special.ndtri(SIGNIFICANCE / 2 / max(error.size, 1))
    beyond = np.abs(np.log(other.positions / one.positions))[1:] > level * error
    warn = gap > _AGREEMENT and bool(beyond.any())
    sentence = f"The curves of {names[0]} and {names[1]} differ by {gap:.1%} on average"
    if warn:
        where = format_positions(np.flatnonzero(beyond) + 1)
        sentence += f", beyond their errors at {where}: the model does not fit this log"
    elif gap > _AGREEMENT:
        sentence += ", within their errors"
    return CurveDiagnostic("agreement", gap, warn, f"{sentence}.")
