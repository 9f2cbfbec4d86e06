"""Random numbers by hash of the seed and the row, so that they do not depend on the partitioning."""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate

from pyspark.sql import Column
from pyspark.sql import functions as F

_UNIT = 2.0**-53


def draw_uniform(seed: int, purpose: str, *ids: Column | str) -> Column:
    """A uniform number in [0, 1), determined by the seed, the purpose and the ids of the row."""
    return F.shiftrightunsigned(F.xxhash64(F.lit(seed), F.lit(purpose), *ids), 11) * F.lit(_UNIT)


def draw_normal(seed: int, purpose: str, *ids: Column | str) -> Column:
    """A standard normal number (Box and Muller 1958)."""
    first = draw_uniform(seed, purpose + ":radius", *ids)
    second = draw_uniform(seed, purpose + ":angle", *ids)
    return F.sqrt(-2.0 * F.log(1.0 - first)) * F.cos(2.0 * math.pi * second)


def draw_zipf(draw: Column, n: int, exponent: float) -> Column:
    """A number in 0..n−1 with probability ∝ rank^−exponent, by inverting the integral of the density."""
    if abs(exponent - 1.0) < 1e-9:
        place = F.exp(draw * math.log(n + 1.0))
    else:
        power = 1.0 - exponent
        place = F.pow(1.0 + draw * ((n + 1.0) ** power - 1.0), F.lit(1.0 / power))
    return F.least(F.floor(place), F.lit(n)).cast("int") - 1


def zipf_share(rank: Column, n: int, exponent: float) -> Column:
    """The probability that `draw_zipf` gives to a number in 0..n−1."""
    if abs(exponent - 1.0) < 1e-9:
        return (F.log(rank + 2.0) - F.log(rank + 1.0)) / math.log(n + 1.0)
    power = 1.0 - exponent
    whole = F.lit(float((n + 1.0) ** power - 1.0))
    return (F.pow(rank + 2.0, F.lit(power)) - F.pow(rank + 1.0, F.lit(power))) / whole


def choose_name(draw: Column, shares: Mapping[str, float]) -> Column:
    """One of the names, chosen with their shares as probabilities."""
    names = list(shares)
    choice = F.lit(names[-1])
    for name, upto in reversed(list(zip(names[:-1], accumulate(list(shares.values())[:-1]), strict=True))):
        choice = F.when(draw < upto, F.lit(name)).otherwise(choice)
    return choice


def value_by_grade(values: Sequence[float], grade: Column | str = "grade") -> Column:
    """The value of the row's grade."""
    return F.element_at(F.array(*map(F.lit, values)), F.col(grade) + 1 if isinstance(grade, str) else grade + 1)
