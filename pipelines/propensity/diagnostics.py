"""When not to believe a curve, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from pipelines.propensity.evidence import Cells, Evidence, Floats, Ints

_PRIOR = 10.0  # examinations of prior weight when one position of a pair is predicted from the others
_TREND = 0.10
_AGREEMENT = 0.10


@dataclass(frozen=True)
class Verdict:
    """One check: its figure, whether it warns, and what that means."""

    check: str
    value: float
    warning: bool
    sentence: str


def link_to_first(evidence: Evidence, minimum_edge: float) -> Floats:
    """1 for positions that documents connect with position 1, 0 for the others."""
    labels = _components(evidence, minimum_edge)
    return np.asarray(labels == labels[0], dtype=np.float64)


def _components(evidence: Evidence, minimum_edge: float) -> NDArray[np.int32]:
    clicks = evidence.edge_clicks.sum(axis=0)
    weight = clicks + evidence.edge_rest.sum(axis=0)
    edges = (weight >= minimum_edge) & (clicks + clicks.T > 0)
    _, labels = connected_components(csr_array(edges.astype(np.int8)), directed=False)
    return np.asarray(labels)


def spans(positions: NDArray[np.intp]) -> str:
    """Positions (from 0) as text (from 1): 1–3, 7."""
    groups = np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1)
    return ", ".join(f"{g[0] + 1}–{g[-1] + 1}" if g.size > 1 else f"{g[0] + 1}" for g in groups if g.size)


def judge_graph(evidence: Evidence, minimum_edge: float, assumed_eta: float) -> list[Verdict]:
    """Whether documents move between positions at all, which positions they leave unconnected, and the weakest link."""
    linked = link_to_first(evidence, minimum_edge) > 0
    away = np.flatnonzero(~linked)
    fallback = f"falling back to an assumed curve (1/k)^{assumed_eta:g} there"
    if linked.sum() == 1 and away.size:
        sentence = (
            "position bias cannot be estimated from this log: no document was seen at position 1 and at another one; "
            f"{fallback} (positions {spans(away)}). Serve some pages by another ranker, or swap results at random."
        )
        return [Verdict("connected", 0.0, True, sentence)]
    if away.size:
        sentence = (
            f"positions {spans(away)} are not connected to {spans(np.flatnonzero(linked))}: no document was seen in "
            f"both; {fallback}."
        )
        return [Verdict("connected", float(linked.mean()), True, sentence)]
    strength = (evidence.edge_clicks + evidence.edge_rest).sum(axis=(0, 2))
    documents = evidence.edge_pairs.sum(axis=(0, 2))
    weak = int(np.argmin(strength))
    sentence = (
        f"all {linked.size} positions are connected; the weakest is {weak + 1}, with evidence worth "
        f"{strength[weak]:,.0f} impressions of {documents[weak]:,.0f} moves between positions."
    )
    return [Verdict("connected", 1.0, False, sentence)]


def judge_moves(shown: float, moved: float, limit: float) -> Verdict:
    """Whether the ranker follows the user: a document's place varying within one system and day."""
    if shown <= 0:
        sentence = "the log does not name its systems, so a personalised ranker would go unnoticed."
        return Verdict("personalised", float("nan"), True, sentence)
    share = moved / shown
    if share > limit:
        sentence = (
            f"{share:.0%} of impressions stand off their document's usual place within one system and day: the ranker "
            "is personalised, its positions follow the users' taste, and the curve is not to be trusted."
        )
        return Verdict("personalised", share, True, sentence)
    sentence = f"within one system and day documents keep their place ({share:.1%} of impressions off it)."
    return Verdict("personalised", share, False, sentence)


def judge_fit(cells: Cells, curve: Floats) -> list[Verdict]:
    """Predict each position of a pair from its other positions, and compare with the position's plain click rate."""
    held = _held_out(cells, curve)
    if held is None:
        return []
    worth, plain = (_perplexity(held, chance) for chance in (held.chance, held.plain))
    every = np.unique(held.position)
    parts = [held.where(held.position == place) for place in every]
    lost = every[[_perplexity(part, part.chance) > _perplexity(part, part.plain) for part in parts]]
    told = f"{worth:.4f} with the curve, {plain:.4f} with the position's click rate alone"
    if worth > plain:
        told += ": the curve does not help"
    elif lost.size:
        told += f"; at {spans(lost)} alone the click rate does better"
    sentence = f"clicks at a position that was not used for the document: perplexity {told}."
    return [Verdict("held_out_perplexity", worth, worth > plain, sentence)]


def judge_trend(evidence: Evidence, curve: Floats) -> list[Verdict]:
    """Whether a document looks more relevant the lower (or the higher) it stands, once the curve is taken out.

    For the documents seen at both k and j: log of (c_kj/θ_k)/(c_jk/θ_j), fitted by slope·log(j/k).
    """
    upper, lower = np.triu_indices(curve.size, 1)
    clicks = evidence.edge_clicks.sum(axis=0)
    above, below = clicks[upper, lower], clicks[lower, upper]
    seen = (above > 0) & (below > 0)
    if not seen.any():
        return []
    upper, lower, above, below = upper[seen], lower[seen], above[seen], below[seen]
    gap = np.log(below / curve[lower]) - np.log(above / curve[upper])
    apart, weight = np.log((lower + 1) / (upper + 1)), above * below / (above + below)
    slope = float(np.sum(weight * gap * apart) / np.sum(weight * apart**2))
    warn = abs(slope) > _TREND
    sentence = f"once the curve is taken out, a document's click rate changes by k^{slope:+.3f} with its position k" + (
        ": the curve does not fit these people." if warn else ", which is hardly anything."
    )
    return [Verdict("relevance_trend", slope, warn, sentence)]


@dataclass(frozen=True)
class HeldOut:
    """Places of pairs, the chance of a click there by what the pair's other places say, and what happened."""

    position: Ints
    chance: Floats
    plain: Floats  # the position's click rate
    clicks: Floats
    missed: Floats

    def where(self, mask: NDArray[np.bool_]) -> HeldOut:
        """Those that a mask chooses."""
        return HeldOut(self.position[mask], self.chance[mask], self.plain[mask], self.clicks[mask], self.missed[mask])


def _held_out(cells: Cells, curve: Floats) -> HeldOut | None:
    looked = cells.shown * curve[cells.position]
    all_looked = np.bincount(cells.pair, weights=looked, minlength=cells.pairs)
    all_clicks = np.bincount(cells.pair, weights=cells.clicks, minlength=cells.pairs)
    others, other_clicks = all_looked[cells.pair] - looked, all_clicks[cells.pair] - cells.clicks
    use = others > 1e-9
    if not use.any() or not cells.clicks.sum():
        return None
    base = cells.clicks.sum() / looked.sum()
    relevance = (other_clicks + _PRIOR * base) / (others + _PRIOR)
    shown = np.bincount(cells.position, weights=cells.shown, minlength=curve.size)
    rate = np.bincount(cells.position, weights=cells.clicks, minlength=curve.size) / np.maximum(shown, 1)
    chance = np.clip(relevance * curve[cells.position], 1e-9, 1 - 1e-9)
    plain = np.clip(rate[cells.position], 1e-9, 1 - 1e-9)
    return HeldOut(cells.position, chance, plain, cells.clicks, cells.shown - cells.clicks).where(use)


def _perplexity(held: HeldOut, chance: Floats) -> float:
    """2^(−mean log2 likelihood per impression); 1 is certainty, 2 is a coin."""
    bits = held.clicks @ np.log2(chance) + held.missed @ np.log2(1 - chance)
    return float(2 ** (-bits / (held.clicks.sum() + held.missed.sum())))


def judge_agreement(name: str, curve: Floats, other: str, other_curve: Floats) -> Verdict:
    """Whether two ways to find the curve find the same one."""
    gap = float(np.mean(np.abs(other_curve / curve - 1)[1:]))
    warn = gap > _AGREEMENT
    sentence = f"{name} and {other} differ by {gap:.1%} on average" + (
        ": the log is thin, or the model does not fit it." if warn else "."
    )
    return Verdict("agreement", gap, warn, sentence)
