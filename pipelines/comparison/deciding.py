"""What would decide a comparison that the log alone cannot: judged queries, or days in which the candidate serves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from pipelines.comparison.judging.difference import FEWEST
from udfs.statistics.plan import Row
from udfs.statistics.power import POWER

TRAFFIC = 0.1  # the share of the traffic for which days are estimated
_LONGEST = 365  # days
_DEPTH = 10  # of a metric without a cutoff
_FLOOR = 0.1  # of the width of a hull: a limit nearer to an answer could not be told from it anyway


@dataclass(frozen=True)
class LogExposure:
    """What the log offers to the documents of a query: examinations per day, and how many weigh as much as the prior.

    With strength s and rate m of the prior, the posterior variance halves at E = s / m examinations.
    """

    examinations: float  # per query and day, of all its documents, with all of the traffic
    halving: float


@dataclass(frozen=True)
class Undecided:
    """A difference, in units of the metric, that must be told from a limit, and the variances that hide it."""

    distance: float  # of the limit from the nearer answer
    within: float  # variance between queries, of the mean
    labels: float  # variance from labels, of the mean
    per_query: float  # variance of one query's difference given the log, with the squared distance of two answers
    queries: int


def describe_undecided(row: Row, edge: float, scale: float = 1.0) -> Undecided:
    """The two answers of a row of estimates against a limit, which is in units of the metric after `scale`."""
    value, other = row["delta"], row["other"]
    apart = abs(other - value)
    within = (1.0 - row["label_share"]) * row["stderr"] ** 2
    return Undecided(
        distance=max(min(abs(value - scale * edge), abs(other - scale * edge)), _FLOOR * apart),
        within=within,
        labels=row["stderr"] ** 2 - within + apart**2 / 4,
        per_query=row["query_variance"] + apart**2,
        queries=row["queries"],
    )


def count_judged_queries(undecided: Undecided, confidence: float) -> int | None:
    """Queries to judge so that the difference estimator decides with 80 % power; None where all would not suffice.

    Of Q queries m are judged; the variance is σ²·(1/m − 1/Q) + W with the variance σ² of one query's difference.
    """
    left = _allow_variance(undecided, confidence) + undecided.per_query / undecided.queries
    if left <= 0 or undecided.per_query / left > undecided.queries:
        return None
    return min(max(FEWEST, round_up(undecided.per_query / left)), undecided.queries)


def count_days(undecided: Undecided, confidence: float, k: int | None, exposure: LogExposure) -> int | None:
    """Days with `TRAFFIC` of all pages until the labels' variance is small enough; None for more than a year.

    E examinations of a document divide its variance by 1 + E / halving.
    """
    allowed = _allow_variance(undecided, confidence)
    daily = TRAFFIC * exposure.examinations / (k or _DEPTH)
    if allowed <= 0 or daily <= 0:
        return None
    days = exposure.halving * max(undecided.labels / allowed - 1.0, 0.0) / daily
    return max(1, round_up(days)) if days <= _LONGEST else None


def describe_remedy(undecided: Undecided, confidence: float, k: int | None, exposure: LogExposure | None) -> str:
    """What would decide, in words."""
    judged = count_judged_queries(undecided, confidence)
    days = None if exposure is None else count_days(undecided, confidence, k, exposure)
    ways = [] if judged is None else [f"about {judged:,} judged queries"]
    if days is not None:
        ways.append(f"about {days:,} day{'s' if days > 1 else ''} with {TRAFFIC:.0%} of the traffic")
    if not ways:
        return f"even {undecided.queries:,} judged queries might not decide it: the limit is too close to the answer"
    return f"{' or '.join(ways)} would decide it"


def round_up(number: float) -> int:
    """A number rounded up to two digits."""
    unit = int(10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1))
    return math.ceil(number / unit) * unit


def _allow_variance(undecided: Undecided, confidence: float) -> float:
    """The variance from labels with which a difference this far from the limit is decided with 80 % power."""
    quantile = float(special.ndtri(confidence) + special.ndtri(POWER))
    return (undecided.distance / quantile) ** 2 - undecided.within
