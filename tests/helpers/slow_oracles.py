"""The metrics that no other library has exactly, written a second time: slowly, from the published formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def err(grades: Sequence[float | None], gmax: float, k: int) -> float:
    """Chapelle et al. 2009, algorithm 2."""
    trust, total = 1.0, 0.0
    for rank, grade in enumerate(grades[:k], start=1):
        stop = (2 ** min(max(grade or 0.0, 0.0), gmax) - 1) / 2**gmax
        total += trust * stop / rank
        trust *= 1 - stop
    return total


def q_measure(grades: Sequence[float | None], labels: Sequence[float], k: int, *, cut: bool = False) -> float:
    """Sakai 2007: the mean over relevant documents, with `cut` over k of them at most, of the blended ratio, β = 1."""
    ideal = sorted((label for label in labels if label > 0), reverse=True)
    total = 0.0
    for rank in range(1, min(k, len(grades)) + 1):
        grade = grades[rank - 1] or 0.0
        if grade > 0:
            seen = [g for g in grades[:rank] if g is not None and g > 0]
            total += (len(seen) + math.fsum(seen)) / (rank + math.fsum(ideal[:rank]))
    return total / (min(k, len(ideal)) if cut else len(ideal))


def alpha_ndcg(ranking: Sequence[str], subtopic: Mapping[str, str], alpha: float, k: int) -> float:
    """Clarke et al. 2008; `subtopic` has the relevant documents; the ideal is built greedily, document by document."""

    def gains(order: Sequence[str]) -> list[float]:
        seen: dict[str, int] = {}
        result = []
        for doc in order:
            topic = subtopic.get(doc)
            result.append(0.0 if topic is None else (1 - alpha) ** seen.get(topic, 0))
            if topic is not None:
                seen[topic] = seen.get(topic, 0) + 1
        return result

    def dcg(order: Sequence[str]) -> float:
        return math.fsum(gain / math.log2(i + 2) for i, gain in enumerate(gains(order)[:k]))

    ideal: list[str] = []
    left = sorted(subtopic)
    while left:
        best = max(left, key=lambda doc: gains([*ideal, doc])[-1])
        ideal.append(best)
        left.remove(best)
    return dcg(ranking) / dcg(ideal)


def rbo(first: Sequence[str], second: Sequence[str], p: float) -> float:
    """Webber et al. 2010, equation 32, term by term."""
    short, long = sorted((first, second), key=len)
    s, l = len(short), len(long)  # noqa: E741 - as in the paper

    def overlap(depth: int) -> int:
        return len(set(short[:depth]) & set(long[:depth]))

    agreed = math.fsum(overlap(d) / d * p**d for d in range(1, l + 1))
    stretched = math.fsum(overlap(s) * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * (agreed + stretched) + ((overlap(l) - overlap(s)) / l + overlap(s) / s) * p**l


def retention(later: Sequence[str], earlier: Sequence[str], relevant: set[str], start: int, k: int) -> float:
    """What the later top k keeps of the relevant documents in the earlier top `start`."""
    handed = relevant & set(earlier[:start])
    return len(handed & set(later[:k])) / len(handed)


def tau(values: Sequence[float]) -> tuple[int, int]:
    """Pairs that rise and pairs that fall, by looking at each."""
    pairs = [(a, b) for i, a in enumerate(values) for b in values[i + 1 :]]
    return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
