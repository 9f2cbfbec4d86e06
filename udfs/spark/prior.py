"""Fit the prior and describe the posterior inside Spark workers: functions for `DataFrame.mapInArrow`.

The rows are those of a pool: query_id, doc_id, clicks, examinations, depth, rate, floor, fixed, ranks, one rank per
system of the plan, and opinion_0, opinion_1, … in the order of their scales. Partial tables of the prior are merged and
fitted in one task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from udfs.draws import EVIDENCE, lay_out_evidence
from udfs.posterior.draw import CUTS, PoolEvidence, describe_posterior, draw_grades
from udfs.posterior.factors import Codes, FactorPlan, bin_factors
from udfs.posterior.fit import (
    MOMENTS,
    POSTERIOR,
    Prior,
    PriorTable,
    fit_prior,
    hash_bucket,
    merge_tables,
    round_to_grid,
    tabulate_pairs,
)
from udfs.posterior.gamma import Singles
from udfs.posterior.opinions import OpinionScale, bin_opinions
from udfs.ragged import Bools, Floats, Ragged
from udfs.tables import encode_ids, hash_texts, pack_bytes, slice_bytes

Batches = Iterable[pa.RecordBatch]

PARTIAL_DDL = "bucket int, codes binary, clicks double, expected double, depth double, moments array<double>"
PRIOR_DDL = "subset int, prior binary"  # 0 with all opinions, then without the first subset of them, the second, …
SPREAD_DDL = "subset int, documents bigint, covered bigint, variance double"
POSTERIOR_DDL = (
    "query_id string, doc_id string, relevance double, relevance_sd double, relevance_low double, "
    "relevance_high double, lift double, grade double, grade_mean double, grade_sd double, grade_draws string, "
    "source string, evidence binary"
)
_LOW, _HIGH = 0.05, 0.95
_SOURCES = pa.array(["human", "behaviour", "prior"])  # NumPy's text becomes several arrays above some million rows
_ROWS_PER_PIECE = 1 << 17


def tabulate_pool(plan: FactorPlan, scales: Sequence[OpinionScale] = ()) -> Callable[[Batches], Batches]:
    """The function from rows of the pool to partial sums by bucket of the query and codes of the factors."""

    def run(batches: Batches) -> Batches:
        tables = [_tabulate_batch(batch, plan, scales) for batch in batches if batch.num_rows]
        if tables:
            yield _pack_table(merge_tables(tables))

    return run


def fit_partials(
    plan: FactorPlan,
    *,
    draws: int,
    seed: int,
    exponent_sd: float,
    not_vouched: Sequence[str],
    other_days: Sequence[str] = (),
    without: Sequence[tuple[str, ...]] = (),
) -> Callable[[Batches], Batches]:
    """The function from all partial sums to fitted priors, serialised: one, and one per subset of opinions left out."""

    def run(batches: Batches) -> Batches:
        tables = [_unpack_table(batch, plan) for batch in batches if batch.num_rows]
        table = merge_tables(tables or [_empty_table(plan)])
        learned = {"not_vouched": tuple(not_vouched), "other_days": tuple(other_days)}
        priors = [fit_prior(table, plan, draws=draws, seed=seed, exponent_sd=exponent_sd, **learned)]
        for subset in without:
            fewer = replace(table, codes=table.codes[:, plan.select(without=subset)])
            rest = replace(plan, opinions=tuple(name for name in plan.opinions if name not in subset))
            priors.append(fit_prior(fewer, rest, draws=draws, seed=seed, exponent_sd=exponent_sd))
        rows = [pickle.dumps(each) for each in priors]
        yield pa.RecordBatch.from_pydict(
            {"subset": pa.array(range(len(rows)), pa.int32()), "prior": pa.array(rows, pa.binary())}
        )

    return run


def describe_pool(
    prior: Prior, cuts: tuple[float, float, float] = CUTS, scales: Sequence[OpinionScale] = ()
) -> Callable[[Batches], Batches]:
    """The function from rows of the pool, all of a query in one partition, to posteriors and their evidence."""

    def run(batches: Batches) -> Batches:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            for piece in _split_queries(pa.Table.from_batches(filled).combine_chunks()):
                yield _describe_rows(piece, prior, cuts, scales)

    return run


def sum_spread(
    prior: Prior, without: Mapping[tuple[str, ...], Prior], scales: Sequence[OpinionScale]
) -> Callable[[Batches], Batches]:
    """The function from rows of the pool to sums of (sd/m_q)², with all opinions (subset 0) and without some.

    `covered` is the number of documents that have one of the opinions left out. Terms are on a grid: sums are exact.
    """

    def run(batches: Batches) -> Batches:
        filled = [batch for batch in batches if batch.num_rows]
        if not filled:
            return
        _, pool = _collect_pool(pa.Table.from_batches(filled).combine_chunks(), prior.plan, scales)
        plan, open_grade = prior.plan, np.isnan(pool.fixed)
        sums = [_sum_variance(prior, pool, open_grade, np.zeros_like(open_grade))]
        for subset, other in without.items():
            of_subset = [number for number, factor in enumerate(plan.factors) if factor.name in subset]
            fewer = replace(pool, codes=pool.codes[:, plan.select(without=subset)])
            covered = np.asarray((pool.codes[:, of_subset] > 0).any(axis=1))
            sums.append(_sum_variance(other, fewer, open_grade, covered))
        rows = [(number, *each) for number, each in enumerate(sums)]
        fields = {"subset": pa.int32(), "documents": pa.int64(), "covered": pa.int64(), "variance": pa.float64()}
        columns = zip(*rows, strict=True)
        yield pa.RecordBatch.from_pydict(
            {name: pa.array(column, kind) for (name, kind), column in zip(fields.items(), columns, strict=True)}
        )

    return run


def _sum_variance(prior: Prior, pool: PoolEvidence, open_grade: Bools, covered: Bools) -> tuple[int, int, float]:
    """Documents without a grade of a person, how many of them are covered, and their sum of (sd/m_q)²."""
    variance = round_to_grid((describe_posterior(prior, pool).sd / pool.rate) ** 2)
    return int(open_grade.sum()), int((open_grade & covered).sum()), float(variance[open_grade].sum())


def _split_queries(table: pa.Table) -> Iterator[pa.Table]:
    """The rows in pieces of whole queries: what is computed of a document takes a hundred times its own memory."""
    (query,), names = encode_ids(table["query_id"])
    order = np.argsort(query, kind="stable")
    ends = np.cumsum(np.bincount(query, minlength=len(names)))
    pieces = np.arange(_ROWS_PER_PIECE, table.num_rows + _ROWS_PER_PIECE, _ROWS_PER_PIECE)
    borders = np.unique(ends[np.minimum(np.searchsorted(ends, pieces), len(ends) - 1)])
    for start, end in pairwise([0, *borders.tolist()]):
        yield table.take(pa.array(order[start:end]))


def _collect_pool(table: pa.Table, plan: FactorPlan, scales: Sequence[OpinionScale]) -> tuple[pa.Table, PoolEvidence]:
    """The rows by query, and the same as evidence."""
    (query,), names = encode_ids(table["query_id"])
    order = np.argsort(query, kind="stable")
    table, query = table.take(pa.array(order)), query[order]
    pool = PoolEvidence(
        queries=Ragged.of_lengths(np.bincount(query, minlength=len(names))),
        query_hash=hash_texts(names).view(np.uint64),
        doc_hash=hash_texts(table["doc_id"].cast(pa.large_string()).combine_chunks()).view(np.uint64),
        codes=_bin_rows(table, plan, scales),
        **{name: _read_floats(table, name) for name in ("clicks", "examinations", "depth", "rate", "floor", "fixed")},
    )
    return table, pool


def _describe_rows(
    table: pa.Table, prior: Prior, cuts: tuple[float, float, float], scales: Sequence[OpinionScale]
) -> pa.RecordBatch:
    table, pool = _collect_pool(table, prior.plan, scales)
    posterior = describe_posterior(prior, pool)
    lift = posterior.mean / np.maximum(posterior.base[pool.queries.owner], 1e-300)
    grade = np.maximum(np.digitize(lift, cuts), pool.floor)
    shown = (pool.examinations > 0) | ~np.isnan(pool.fixed)
    evidence = np.empty(len(shown), dtype=lay_out_evidence(pool.codes.shape[1]))
    evidence["shown"] = shown
    for name in ("codes", *EVIDENCE):
        evidence[name] = getattr(pool, name)
    return pa.RecordBatch.from_pydict(
        {
            "query_id": table["query_id"].combine_chunks(),
            "doc_id": table["doc_id"].combine_chunks(),
            "relevance": posterior.mean,
            "relevance_sd": posterior.sd,
            "relevance_low": posterior.find_quantiles(_LOW),
            "relevance_high": posterior.find_quantiles(_HIGH),
            "lift": lift,
            "grade": np.where(np.isnan(pool.fixed), grade, pool.fixed),
            **_describe_grades(draw_grades(prior, POSTERIOR, pool, cuts)),
            "source": _SOURCES.take(pa.array(np.where(~np.isnan(pool.fixed), 0, np.where(shown, 1, 2)))),
            "evidence": slice_bytes(pack_bytes(evidence), 0, len(evidence)),
        }
    )


def _describe_grades(grades: Singles) -> dict[str, pa.Array]:
    """Per document, mean and standard deviation of its grades [draws × documents], and the grades as digits."""
    draws, documents = grades.shape
    digits = grades.T.astype(np.uint8)
    total, squares = digits.sum(axis=1, dtype=np.int64), (digits**2).sum(axis=1, dtype=np.int64)
    offsets = np.arange(documents + 1, dtype=np.int32) * np.int32(draws)
    text = np.ascontiguousarray(digits + ord("0"), dtype=np.uint8)
    return {
        "grade_mean": pa.array(total / draws),
        "grade_sd": pa.array(np.sqrt((draws * squares - total**2) / (draws * (draws - 1)))),
        "grade_draws": pa.StringArray.from_buffers(documents, pa.py_buffer(offsets), pa.py_buffer(text)),
    }


def _tabulate_batch(batch: pa.RecordBatch, plan: FactorPlan, scales: Sequence[OpinionScale]) -> PriorTable:
    table = pa.Table.from_batches([batch])
    queries = hash_texts(table["query_id"].cast(pa.large_string()).combine_chunks())
    return tabulate_pairs(
        hash_bucket(queries.view(np.uint64)),
        _bin_rows(table, plan, scales),
        *(_read_floats(table, name) for name in ("clicks", "examinations", "depth", "rate")),
    )


def _bin_rows(table: pa.Table, plan: FactorPlan, scales: Sequence[OpinionScale]) -> Codes:
    ranks = table["ranks"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    opinions = bin_opinions(scales, [table[f"opinion_{place}"] for place in range(len(scales))], table.num_rows)
    return bin_factors(plan, ranks.reshape(table.num_rows, len(plan.systems)), opinions)


def _read_floats(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name].to_numpy(), dtype=np.float64)


def _pack_table(table: PriorTable) -> pa.RecordBatch:
    moments = table.moments.astype(np.float64)
    offsets = np.arange(len(moments) + 1, dtype=np.int32) * len(MOMENTS)
    return pa.RecordBatch.from_pydict(
        {
            "bucket": pa.array(table.bucket, pa.int32()),
            "codes": pa.array([row.tobytes() for row in table.codes], pa.binary()),
            "clicks": table.clicks,
            "expected": table.expected,
            "depth": table.depth,
            "moments": pa.ListArray.from_arrays(pa.array(offsets), moments.ravel()),
        }
    )


def _unpack_table(batch: pa.RecordBatch, plan: FactorPlan) -> PriorTable:
    codes = np.frombuffer(b"".join(batch["codes"].to_pylist()), dtype=np.int8)
    return PriorTable(
        bucket=batch["bucket"].to_numpy().astype(np.int64),
        codes=codes.reshape(batch.num_rows, len(plan.factors)),
        clicks=batch["clicks"].to_numpy(),
        expected=batch["expected"].to_numpy(),
        depth=batch["depth"].to_numpy(),
        moments=batch["moments"].flatten().to_numpy().reshape(batch.num_rows, len(MOMENTS)),
    )


def _empty_table(plan: FactorPlan) -> PriorTable:
    none = np.zeros(0)
    return PriorTable(
        bucket=np.zeros(0, dtype=np.int64),
        codes=np.zeros((0, len(plan.factors)), dtype=np.int8),
        clicks=none,
        expected=none,
        depth=none,
        moments=np.zeros((0, len(MOMENTS))),
    )
