"""The difference estimator: what the model says of all queries, corrected by its errors on the judged ones.

Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, chapter 6; Angelopoulos et al., Prediction-powered
inference, Science 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.ragged import Floats
from udfs.statistics.plan import Row
from udfs.statistics.ratio import Estimate

FEWEST = 30  # judged queries, below which nothing is corrected: the error of a mean of so few is not normal
# Documents that nobody judged are in the ideal ranking by the model alone, or not at all: the relative error that is
# allowed for them, chosen by the worst of the worlds of `benchmarks/judging.py`.
IDEAL_ERROR = 0.05


@dataclass(frozen=True)
class JudgedSample:
    """Per judged query its chance, and its difference between two systems by the model and by the judges."""

    chance: Floats
    model: Floats
    judged: Floats


@dataclass(frozen=True)
class ModelAnswer:
    """What the model says of all queries: the mean difference, and the parts of its variance.

    `other` is a second answer that the log cannot tell apart, for a candidate that may have learned from clicks.
    """

    value: float
    within: float  # variance between queries, of the mean
    labels: float  # variance from labels, of the mean
    queries: int
    other: float | None = None

    @property
    def apart(self) -> float:
        """The distance of two answers; 0 where there is one."""
        return 0.0 if self.other is None else abs(self.other - self.value)


def read_answer(row: Row) -> ModelAnswer:
    """The answer of a row of estimates or comparisons on drawn labels."""
    within = (1.0 - row["label_share"]) * row["stderr"] ** 2
    return ModelAnswer(
        value=row["delta"],
        within=within,
        labels=row["stderr"] ** 2 - within,
        queries=row["queries"],
        other=row["other"] if row["hull"] else None,
    )


def correct_answer(answer: ModelAnswer, sample: JudgedSample) -> Estimate:
    """The corrected difference with its standard error.

    With e = Δ_judged − Δ_model of the judged queries and weights 1/π, the mean error is ē = Σ(e/π) / Σ(1/π). Since
    Σ(1/π), rather than the number of queries that it estimates, is the divisor, an error that all queries share cancels
    exactly, and it is enough that a random part of the sheet is graded. The variance of ē is
    v = n/(n−1) · Σ(1−π)·((e − ē)/π)² / Σ(1/π)².

    Δ_model + ē is then pooled with Δ_model by inverse variance. That of the model is max(labels, 4·v) + ē²: what the
    judges found counts as its error, so that a biased model loses its weight, and it is never taken as more certain
    than the judges can check. Where ē is normal, a 95 % interval covers at least 93 % for any bias of the model. A
    model with two answers is not pooled at all.
    """
    weight = 1.0 / sample.chance
    total, n = weight.sum(), len(weight)
    error = sample.judged - sample.model
    mean = float((weight * error).sum() / total)
    variance = float(n / (n - 1.0) * ((1.0 - sample.chance) * (weight * (error - mean)) ** 2).sum() / total**2)
    center = (weight * sample.judged).sum() / total
    spread = float(n / (n - 1.0) * (weight * (sample.judged - center) ** 2).sum() / total)
    return _combine(answer, mean, variance, mean**2, spread, n)


def predict_answer(answer: ModelAnswer, differences: Floats, spread: Floats, chance: Floats) -> Estimate:
    """The corrected difference to expect from a sample with these chances, if the model is right.

    `differences` are the model's of all queries, `spread` their standard deviations over draws; the error of a judged
    query has variance `spread`² then, with the squared half distance of two answers, and ē that of the labels.
    """
    used = chance > 0
    squares, n = spread[used] ** 2 + answer.apart**2 / 4.0, float(chance.sum())
    variance = float(((1.0 - chance[used]) / chance[used] * squares).sum() / answer.queries**2)
    between = float(np.var(differences[used]) + squares.mean())
    return _combine(answer, 0.0, variance, answer.labels + variance, between, n)


def _combine(
    answer: ModelAnswer, error: float, variance: float, square: float, spread: float, judged: float
) -> Estimate:
    """Pool the model with its mean error, whose square is `square`; `spread` is the variance between queries."""
    doubt = max(answer.labels, 4.0 * variance) + square
    share = doubt / (doubt + variance) if answer.other is None and variance > 0 else 1.0
    value = answer.value + share * error
    within = max(answer.within, spread / answer.queries)
    stderr = np.sqrt(share * variance + within + (IDEAL_ERROR * value) ** 2)
    return Estimate(np.array(value), np.array(stderr), np.array(max(judged - 1.0, 1.0)))
