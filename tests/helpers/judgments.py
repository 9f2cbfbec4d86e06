"""A small, fixed data set with people's judgments: three systems, a few thousand queries, two segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATE = "2026-11-01"
QUERIES = 3_000
DOCUMENTS = 30  # candidates per query
SHOWN = 20
NOISE = {"bm25": 1.6, "hybrid": 0.9, "neural": 0.7}  # how far a system's scores stray from the truth
GRADES_DDL = "query_id string, doc_id string, grade double"  # judgments without the chance of a sheet


def write(folder: Path, *, queries: int = QUERIES) -> None:
    """Write rankings, judgments and queries below `folder`, one Parquet file each."""
    random = np.random.default_rng(11)
    query = np.array([f"q{number:05d}" for number in range(queries)])
    device = random.choice(["desktop", "ios", "android"], queries, p=[0.4, 0.35, 0.25])
    locale = random.choice(["de", "en", "fr"], queries, p=[0.3, 0.5, 0.2])
    weight = np.ceil(20_000 / (1 + random.permutation(queries)) ** 0.8)
    grade = random.choice([0.0, 1.0, 2.0, 3.0], (queries, DOCUMENTS), p=[0.7, 0.15, 0.1, 0.05])
    document = np.array([[f"d{q * 7 + d:06d}" for d in range(DOCUMENTS)] for q in range(queries)])

    _save(folder, "queries", {"query_id": query, "weight": weight, "device": device, "locale": locale})
    judged = random.random(grade.shape) < 0.8
    _save(
        folder,
        "judgments",
        {"query_id": np.repeat(query, judged.sum(axis=1)), "doc_id": document[judged], "grade": grade[judged]},
    )
    lists = []
    for system, noise in NOISE.items():
        stray = noise + 0.4 * (device == "ios")[:, None] * (system == "neural")  # a weakness to be found
        order = np.argsort(-(grade + stray * random.standard_normal(grade.shape)), axis=1)[:, :SHOWN]
        lists.append(
            pa.table(
                {
                    "system": np.full(order.size, system),
                    "query_id": np.repeat(query, SHOWN),
                    "doc_id": np.take_along_axis(document, order, axis=1).ravel(),
                    "rank": np.tile(np.arange(1, SHOWN + 1, dtype=np.int32), queries),
                }
            )
        )
    _save(folder, "rankings", pa.concat_tables(lists))


def _save(folder: Path, name: str, columns: pa.Table | dict[str, object]) -> None:
    target = folder / name / f"dt={DATE}"
    target.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, target / "part-0.parquet")
