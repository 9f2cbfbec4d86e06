"""Rankings, labels with evidence and a prior, drawn at random, for tests of scoring on draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from udfs.collect import ListCollection, collect_lists
from udfs.conventions import Conventions
from udfs.draws import Evidence, LabelDraws, lay_out_evidence
from udfs.posterior.factors import FactorPlan, bin_factors
from udfs.posterior.fit import Prior, fit_prior, hash_bucket, tabulate_pairs
from udfs.tables import TableReader

Tables = tuple[pa.Table, pa.Table, pa.Table]

POSTERIOR = Conventions(unjudged="posterior", max_grade=3)
PLAN = FactorPlan(serving=("a",), compared=("b",))
LAYOUT = lay_out_evidence(len(PLAN.factors))


def draw_tables(seed: int = 0, queries: int = 40) -> Tables:
    """Rankings of two systems with duplicates and unlabelled documents, labels with evidence, and documents."""
    random = np.random.default_rng(seed)
    docs = np.array([f"d{number}" for number in range(30)])
    ranked, labels = [], []
    for query in (f"q{number}" for number in range(queries)):
        places = {}
        for system in ("a", "b")[: 1 + (query != "q3")]:
            picked = random.choice(docs, random.integers(0, 15))
            ranked += [(system, query, doc, place) for place, doc in enumerate(picked)]
            places[system] = {doc: place for place, doc in reversed(list(enumerate(picked, start=1)))}
        pool = random.permutation(docs)[: random.integers(0, 25) if query != "q5" else 0]
        for doc in pool:
            examined = float(random.choice([0.0, 2.5, 40.0]))
            clicks = float(random.binomial(int(examined), 0.2))
            ranks = np.array([[places.get(system, {}).get(doc, 0) for system in ("a", "b")]])
            codes = bin_factors(PLAN, ranks, np.zeros((1, 0), dtype=np.int64))[0]
            fixed = 2.0 if random.random() < 0.05 else np.nan
            shown = examined > 0 or not np.isnan(fixed)
            floor = float(random.random() < 0.1) * 2.0
            evidence = (shown, codes, clicks, examined, random.random(), 0.15, floor, fixed)
            labels.append((query, doc, random.choice([0.0, 1.0, 3.0]) if shown else None, evidence))
    return (
        pa.table(dict(zip(("system", "query_id", "doc_id", "rank"), zip(*ranked, strict=True), strict=True))),
        pa.table(
            {
                "query_id": pa.array([row[0] for row in labels]),
                "doc_id": pa.array([row[1] for row in labels]),
                "grade": pa.array([row[2] for row in labels], pa.float64()),
                "evidence": pack_evidence([row[3] for row in labels]),
            }
        ),
        pa.table({"doc_id": docs, "category": random.choice(["x", "y", "z"], 30), "popularity": random.random(30)}),
    )


def pack_evidence(records: list[tuple[Any, ...]] | Evidence) -> pa.Array:
    """Evidence as a column."""
    return pa.array([record.tobytes() for record in np.array(records, dtype=LAYOUT)], pa.binary())


def unpack_evidence(labels: pa.Table) -> Evidence:
    """The evidence of labels, which can be changed."""
    return np.frombuffer(bytearray(b"".join(labels["evidence"].to_pylist())), dtype=LAYOUT)


def fit_labels(labels: pa.Table) -> Prior:
    """The prior of labels, with 6 draws in each of three sets."""
    evidence = unpack_evidence(labels)
    bucket = hash_bucket(np.arange(len(evidence), dtype=np.uint64))
    numbers = [np.array(evidence[name]) for name in ("codes", "clicks", "examinations", "depth", "rate")]
    table = tabulate_pairs(bucket, *numbers)
    return fit_prior(table, PLAN, draws=6, seed=3, exponent_sd=0.1, not_vouched=("b",))


def collect(tables: Tables, draws: LabelDraws | None) -> ListCollection:
    """The lists of the tables in memory."""
    rankings, labels, documents = tables
    return collect_lists(
        TableReader(rankings, "rankings"),
        TableReader(labels, "labels"),
        documents=TableReader(documents, "documents"),
        conventions=POSTERIOR,
        draws=draws,
    )
