"""From the values of queries to the columns whose sums are all that the estimates need."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.ragged import Bools, Floats
from udfs.statistics.plan import TIE

Columns = dict[str, Floats]  # name -> units × metrics that have it, or units × 1 where all of them have the same

# Where every unit is one query, x of the plain mean is 0 or 1 and some sums are the same: they are added once.
_SAME = {"units": "x", "xx": "x", "xy": "y", "query_yy": "yy"}

_MEAN = ("rows", "units", "y", "x", "yy", "xy", "xx", "query_yy")
OF_SYSTEM = (
    *_MEAN,
    *("w_units", "w_y", "w_x", "w_yy", "w_xy", "w_xx"),
    *("p_units", "p_y", "p_x", "p_yy", "p_xy", "p_xx"),
)
OF_PAIR = (*_MEAN, "b", "yb", "bb", "w", "w_x", "w_y", "wins", "losses", "absolute")


def system_base(values: Floats, kept: Bools, there: Floats, weight: Floats, pool: Floats, pooled: list[int]) -> Columns:
    """What is summed over the queries of a unit, for one system.

    `kept` tells where enough of its list is judged; `pool` has a column for each of the `pooled` metrics.
    """
    defined = ~np.isnan(values) & kept
    y, x = np.where(defined, values, 0.0), _narrow(defined).astype(np.float64)
    w_x = weight[:, None] * x
    base = {"rows": there[:, None], "y": y, "x": x, "w_x": w_x, "w_y": w_x * y}
    base |= {"query_yy": y * y}
    if pooled:
        p_x = np.where(defined[:, pooled] & ~np.isnan(pool), pool, 0.0)
        base |= {"p_x": p_x, "p_y": p_x * y[:, pooled]}
    return base


def pair_base(
    baseline: Floats, candidate: Floats, weight: Floats, kept: Bools, lacking: Bools, *, flipped: bool
) -> Columns:
    """What is summed over the queries of a unit, for a pair of systems.

    `kept` tells where enough is judged in both lists, `lacking` where too little is in one of them: such a query is
    left out and counted as such, also where so little is judged that it has no value at all. Where signs are
    `flipped`, it is told how far their sums can go.
    """
    both = ~np.isnan(baseline) & ~np.isnan(candidate)
    used, both = both & kept, both | lacking
    y, b = np.where(used, candidate - baseline, 0.0), np.where(used, baseline, 0.0)
    x, w, both = _narrow(used).astype(np.float64), weight[:, None], _narrow(both)
    return {
        "rows": both.astype(np.float64),
        "y": y,
        "x": x,
        "b": b,
        "w": w * both,
        "w_x": w * x,
        "w_y": w * y,
        "wins": (y > TIE).astype(np.float64),
        "losses": (y < -TIE).astype(np.float64),
        "query_yy": y * y,
        **({"absolute": np.abs(y)} if flipped else {}),
    }


def _narrow(mask: Bools) -> Bools:
    """One column for all metrics where they agree, as metrics do that are defined for the same queries."""
    first: Bools = mask[:, :1]
    return first if (mask == first).all() else mask


def summands(base: Mapping[str, Floats], *, clustered: bool) -> Columns:
    """The base columns with the squares and products that the errors need, leaving out what `_SAME` can say."""
    columns = {name: values for name, values in base.items() if clustered or name not in _SAME}
    y, x = base["y"], base["x"]
    columns["yy"] = y * y if clustered else base["query_yy"]
    if clustered:
        columns |= {"units": (x != 0).astype(np.float64), "xy": x * y, "xx": x * x}
    if "b" in base:
        columns |= {"yb": y * base["b"], "bb": base["b"] ** 2}
        return columns
    for form in ("w", "p"):
        if f"{form}_x" in base:
            fy, fx = base[f"{form}_y"], base[f"{form}_x"]
            columns |= {f"{form}_units": _narrow(fx != 0).astype(np.float64)}
            columns |= {f"{form}_yy": fy * fy, f"{form}_xy": fx * fy, f"{form}_xx": fx * fx}
    return columns


def spelled_out(name: str, sums: Mapping[str, Floats], metrics: int, pooled: list[int]) -> Floats:
    """The sum called `name` for every metric, also where another one is the same, or some metrics have none."""
    found = sums.get(name if name in sums else _SAME.get(name, ""))
    cells = len(next(iter(sums.values())))
    every = np.zeros((cells, metrics))
    if found is not None:
        every[:, pooled if name.startswith("p_") else slice(None)] = found
    return every
