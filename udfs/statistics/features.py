"""Columns per query whose sums determine every estimate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.ragged import Bools, Floats
from udfs.statistics.counting import TIE

Columns = dict[str, Floats]  # name → units × metrics, or units × 1 where all metrics have the same

# Where every unit is one query, x of the plain mean is 0 or 1 and some sums are equal: they are added once.
_SAME = {"units": "x", "xx": "x", "xy": "y", "query_yy": "yy"}

_MEAN = ("rows", "units", "y", "x", "yy", "xy", "xx", "query_yy", "queries")
OF_SYSTEM = (
    *_MEAN,
    *("w_units", "w_y", "w_x", "w_yy", "w_xy", "w_xx"),
    *("p_units", "p_y", "p_x", "p_yy", "p_xy", "p_xx"),
)
OF_PAIR = (
    *(*_MEAN, "b", "yb", "bb", "w", "w_x", "w_y", "wins", "losses", "absolute"),
    *("spread", "unseen", "idle"),  # of drawn labels, see `label_draws`
)


def build_system_columns(
    values: Floats, counts: Bools, exists: Floats, weight: Floats, pool: Floats, pooled: list[int]
) -> Columns:
    """The columns to sum over the queries of a unit, for one system.

    `counts` marks queries with enough of the list judged; `pool` has a column for each of the `pooled` metrics.
    """
    defined = ~np.isnan(values) & counts
    y, x = np.where(defined, values, 0.0), _narrow(defined).astype(np.float64)
    w_x = weight[:, None] * x
    base = {"rows": exists[:, None], "y": y, "x": x, "w_x": w_x, "w_y": w_x * y}
    base |= {"query_yy": y * y}
    if pooled:
        p_x = np.where(defined[:, pooled] & ~np.isnan(pool), pool, 0.0)
        base |= {"p_x": p_x, "p_y": p_x * y[:, pooled]}
    return base


def build_pair_columns(
    baseline: Floats, candidate: Floats, weight: Floats, counts: Bools, too_little: Bools, *, flipped: bool
) -> Columns:
    """The columns to sum over the queries of a unit, for a pair of systems.

    `counts` marks queries with enough judged in both lists, `too_little` those with too little in one of them: these
    are left out and counted as left out, even where the metric is undefined. With `flipped` signs, the largest possible
    sum is needed too.
    """
    both = ~np.isnan(baseline) & ~np.isnan(candidate)
    used, both = both & counts, both | too_little
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


# What is summed by weight where queries count by their traffic.
_BY_TRAFFIC = ("y", "x", "b", "absolute", "query_yy", "p_x", "p_y", "spread", "unseen", "idle")


def weigh_columns(base: Columns, weight: Floats) -> Columns:
    """The columns with every query counted by its weight; `queries` still counts each as one."""
    weighed = {name: base[name] * weight[:, None] for name in _BY_TRAFFIC if name in base}
    return base | weighed | {"queries": base["x"]}


def _narrow(mask: Bools) -> Bools:
    """One column for all metrics where they agree: metrics defined for the same queries."""
    first: Bools = mask[:, :1]
    return first if (mask == first).all() else mask


def add_products(base: Mapping[str, Floats], *, clustered: bool) -> Columns:
    """The base columns with the squares and products that the errors need, without those that `_SAME` covers."""
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


def expand_sum(name: str, sums: Mapping[str, Floats], metrics: int, pooled: list[int]) -> Floats:
    """The sum `name` for every metric, taken from an equal one where `_SAME` covers it; 0 where there is none."""
    total = sums.get(name if name in sums else _SAME.get(name, ""))
    cells = len(next(iter(sums.values())))
    every = np.zeros((cells, metrics))
    if total is not None:
        every[:, pooled if name.startswith("p_") else slice(None)] = total
    return every
