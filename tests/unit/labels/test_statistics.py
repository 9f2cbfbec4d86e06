"""The sums that estimators read: those of a slow version, for any partitions."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pipelines.labels.propensity.statistics import merge_sums, sum_rows

Rows = list[dict[str, Any]]


def draw_rows(size: int, seed: int) -> Rows:
    """Cells of 40 pairs, and rows of their days."""
    random = np.random.default_rng(seed)
    places = {}
    for _ in range(size):
        pair = int(random.integers(40))
        place = (f"c{pair % 3}", pair - 20, int(random.integers(1, 6)), int(random.integers(2)), bool(pair % 2))
        shown = int(random.integers(1, 129))
        places[place] = {
            "pair": place[1],
            "sampled": pair % 4 != 0,
            "context": place[0],
            "bucket": pair % 5,
            "position": place[2],
            "history": place[3],
            "shuffled": place[4],
            "impressions": shown,
            "clicks": int(random.integers(0, shown + 1)),
            "served": None,
        }
    days = [
        {
            "pair": int(random.integers(40)),
            "position": int(random.integers(1, 4)),
            "impressions": int(random.integers(9)),
        }
        | {"served": int(random.integers(4))}
        for _ in range(size)
    ]
    return [*places.values(), *days]


def build_table(rows: Rows) -> pa.Table:
    kinds = {"context": pa.string(), "shuffled": pa.bool_(), "sampled": pa.bool_(), "bucket": pa.int32()}
    names = (
        "pair",
        "sampled",
        "context",
        "bucket",
        "position",
        "history",
        "shuffled",
        "impressions",
        "clicks",
        "served",
    )
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, kinds.get(name, pa.int64())) for name in names]))


def sum_partitions(rows: Rows, partitions: int) -> pd.DataFrame:
    def sum_all() -> Iterator[pa.Table]:
        for number in range(partitions):
            part = [row for row in rows if row["pair"] % partitions == number]
            yield from sum_rows(build_table(part))

    return merge_sums(pa.concat_tables(sum_all()).to_pandas())


def round_to_millionths(value: float) -> int:
    return int(Decimal(value * 1_000_000).to_integral_value(ROUND_HALF_UP))


def sum_slowly(rows: Rows) -> dict[str, Any]:
    """The sums by position and pair of positions, on shuffled pages, and how far documents move."""
    cells = [row for row in rows if row["served"] is None]
    place: Counter[Any] = Counter()
    shuffled: Counter[Any] = Counter()
    seen: dict[Any, Counter[Any]] = defaultdict(Counter)
    for row in cells:
        place[row["context"], row["bucket"], row["position"], row["history"]] += row["impressions"]
        shuffled[row["context"], row["bucket"], row["position"]] += row["impressions"] * row["shuffled"]
        of_pair = seen[row["context"], row["bucket"], row["pair"]]
        of_pair[row["position"], "n"] += row["impressions"]
        of_pair[row["position"], "c"] += row["clicks"]
    edges: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (context, bucket, _), counts in seen.items():
        positions = {position for position, _ in counts}
        for here in positions:
            for there in positions - {here}:
                n, m = counts[here, "n"], counts[there, "n"]
                weight = n * m / (n + m)
                sums = edges[context, bucket, here, there]
                sums[0] += round_to_millionths(weight)
                sums[1] += round_to_millionths(weight * counts[here, "c"] / n)
                sums[2] += 1
    lists: dict[Any, Counter[int]] = defaultdict(Counter)
    for row in rows:
        if row["served"] is not None:
            lists[row["pair"], row["served"]][row["position"]] += row["impressions"]
    shown = sum(sum(of_list.values()) for of_list in lists.values())
    moved = shown - sum(max(of_list.values()) for of_list in lists.values())
    exact = {key: (micros / 1e6, clicks / 1e6, pairs) for key, (micros, clicks, pairs) in edges.items()}
    return {
        "place": dict(place),
        "shuffled": {k: v for k, v in shuffled.items() if v},
        "edge": exact,
        "moved": (shown, moved),
    }


@pytest.mark.parametrize("partitions", [1, 3, 50])
@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_a_slow_version(seed: int, partitions: int) -> None:
    rows = draw_rows(300, seed)
    expected, merged = sum_slowly(rows), sum_partitions(rows, partitions)
    by_kind = dict(tuple(merged.groupby("statistic")))
    place = {(r.context, r.bucket, r.position, r.other): r.shown for r in by_kind["place"].itertuples()}
    shuffled = {(r.context, r.bucket, r.position): r.shown for r in by_kind["shuffled"].itertuples()}
    edge = {
        (r.context, r.bucket, r.position, r.other): (r.shown, r.clicks, r.weight) for r in by_kind["edge"].itertuples()
    }
    assert place == expected["place"]
    assert shuffled == expected["shuffled"]
    assert edge == expected["edge"], "to the last bit"
    assert (by_kind["moved"]["shown"].sum(), by_kind["moved"]["clicks"].sum()) == expected["moved"]
    cells = {(r.pair, r.position, r.other): r.shown for r in by_kind["cell"].itertuples()}
    assert cells == {
        (r["pair"], r["position"], r["history"]): r["impressions"] for r in rows if r["served"] is None and r["sampled"]
    }


def test_no_rows_have_no_statistics() -> None:
    merged = merge_sums(pa.concat_tables(sum_rows(build_table([]))).to_pandas())
    assert merged[["shown", "clicks", "weight"]].to_numpy().sum() == 0
