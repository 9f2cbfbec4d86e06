"""Published runs without Spark: small tables, written as a run publishes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.warehouse.runs import Manifest, TableRecord, manifest_path
from pipelines.warehouse.storage import Storage
from schemas.outputs import OUTPUTS
from udfs.registry import POOL

KINDS = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "שלום עולם",
    "👟 red shoes 🥾",
    "javascript:alert(3)",
    "</title></style><b>loud</b>",
)
QUERIES = tuple(f"q{number}" for number in range(200))
Row = dict[str, Any]


def write(storage: Storage, date: str, run: str, name: str, rows: Sequence[Row], files: int = 1) -> TableRecord:
    """One table of a run, with the types of its contract; columns beyond it are numbers or texts."""
    path = f"{name}/dt={date}/run={run}"
    folder = Path(storage.path(path).removeprefix("file://"))
    folder.mkdir(parents=True)
    declared = {c.name: KINDS[c.type] for c in OUTPUTS[name].columns}
    more = {k: pa.string() if isinstance(v, str) else pa.float64() for k, v in rows[0].items() if k not in declared}
    schema = pa.schema(list((declared | more).items()))
    for number in range(files):
        pq.write_table(pa.Table.from_pylist(rows[number::files], schema), folder / f"part-{number}.parquet")
    return TableRecord(path=path, rows=len(rows))


def publish(
    place: Path,
    *,
    date: str = "2026-11-01",
    run: str = "aaaaaaaaaaaa-000001",
    systems: Sequence[str] = ("old", "new"),
    queries: Sequence[str] = QUERIES,
    lift: float = 0.1,
    files: int = 3,
    gate: Sequence[Mapping[str, Any]] = (),
    committed_at: str = "2026-11-02T04:00:00.000000+00:00",
    judged: Sequence[tuple[float | None, float | None]] = (),
    **fields: Any,
) -> tuple[Storage, Manifest]:
    """A run of `systems` on `queries`: each system's ndcg@10 is `lift` better than the one before.

    `judged` has the judged share of the top 10 per query for each of two systems; None stands for an empty list.
    """
    storage = Storage(str(place))
    scored = _score(systems, queries, lift)
    for row, share in zip(scored, (share for shares in judged for share in shares), strict=False):
        row |= {"judged_at_10": share, "retrieved": 0 if share is None else 10}
    tables = {
        "query_metrics": scored,
        "segment_metrics": [_average(scored, s, *cut, m) for s in systems for cut in CUTS for m in METRICS],
        "comparisons": [_comparison(scored, systems[0], s, *cut) for s in systems[1:] for cut in CUTS],
        "query_changes": [
            _change(scored, systems[0], s, q, n) for s in systems[1:] for n, q in enumerate(queries[:6], 1)
        ],
    }
    records = {name: write(storage, date, run, name, rows, files if name == "query_metrics" else 1)
               for name, rows in tables.items() if rows}  # fmt: skip
    config = {"metrics": ["ndcg@10", "recall@10", "recall@20"], "segments": [["device"]], "gate": [],
              "statistics": {"confidence": 0.95}, "labels": {"grade": {"scale": "grades"}}}  # fmt: skip
    defaults = {
        "config": config,
        "config_hash": "c0ffee",
        "code": "v1",
        "conventions": {"unjudged": "zero", "ties": "doc_id_desc"},
        "inputs": {"judgments": {"read": 900, "rejected": {"grade is null": 3}, "missing_days": [], "digest": "d1"}},
        "readings": [
            {"rule": "r", "baseline": systems[0], "candidate": systems[-1], "text": "It is better everywhere."}
        ],
    }
    manifest = Manifest(
        run=run, key=run.partition("-")[0], dt=date, status="committed", committed_at=committed_at,
        seconds={"read": 1.5, "score": 3.25}, spark="4.1", systems=tuple(systems), tables=records, gate=tuple(gate),
        **(defaults | fields),
    )  # fmt: skip
    storage.put(manifest_path(date, run), manifest.model_dump_json())
    return storage, manifest


CUTS = (("all", "all"), ("device", "ios"), ("device", "desktop"))
METRICS = ("ndcg_at_10", "recall_at_10", "recall_at_20")


def _score(systems: Sequence[str], queries: Sequence[str], lift: float) -> list[Row]:
    values = np.random.default_rng(5).random(len(queries)) * 0.8
    return [
        {
            "system": system, "query_id": query, "weight": 1.0, "retrieved": 10, "duplicates": 0, "tied": 0,
            "labelled": 5, "relevant": 3, "judged": 4, "device": "ios" if at % 2 else "desktop",
            "ndcg_at_10": float(values[at] + lift * place * (at % 4 > 0)) if at != 7 else None,
            "recall_at_10": float(at % 11) / 10, "recall_at_20": 1.0, **{f"{metric}{POOL}": 3.0 for metric in METRICS},
        }
        for at, query in enumerate(queries)
        for place, system in enumerate(systems)
    ]  # fmt: skip


def _select_values(scored: Sequence[Row], system: str, segment: str, value: str, metric: str) -> dict[str, float]:
    rows = [r for r in scored if r["system"] == system and (segment == "all" or r[segment] == value)]
    return {r["query_id"]: r[metric] for r in rows if r[metric] is not None}


def _average(scored: Sequence[Row], system: str, segment: str, value: str, metric: str) -> Row:
    values = list(_select_values(scored, system, segment, value, metric).values())
    mean = float(np.mean(values))
    return {
        "system": system, "segment": segment, "value": value, "metric": metric, "macro": mean, "macro_low": mean - 0.02,
        "macro_high": mean + 0.02, "weighted": mean, "stddev": float(np.std(values)), "queries": len(values),
        "skipped": 1,
    }  # fmt: skip


def _comparison(scored: Sequence[Row], baseline: str, candidate: str, segment: str, value: str) -> Row:
    before, after = (_select_values(scored, s, segment, value, "ndcg_at_10") for s in (baseline, candidate))
    delta = np.array([after[query] - before[query] for query in before])
    return {
        "baseline": baseline, "candidate": candidate, "segment": segment, "value": value, "metric": "ndcg_at_10",
        "delta": float(delta.mean()), "delta_low": float(delta.mean()) - 0.01, "delta_high": float(delta.mean()) + 0.01,
        "relative": 0.2, "p_value": 0.001, "p_adjusted": 0.002, "significant": True, "wins": int((delta > 0).sum()),
        "ties": int((delta == 0).sum()), "losses": 0, "queries": len(delta), "unjudged": 0, "detectable_delta": 0.01,
    }  # fmt: skip


def _change(scored: Sequence[Row], baseline: str, candidate: str, query: str, place: int) -> Row:
    top = json.dumps([{"doc_id": f"<i>{query}", "grade": 3.0, "title": "<b>A boot"}, {"doc_id": "boot-7"}])
    return {
        "baseline": baseline, "candidate": candidate, "metric": "ndcg_at_10", "direction": "gain", "place": place,
        "query_id": query, "weight": 1.0, "baseline_value": 0.25, "candidate_value": 0.5, "delta": 0.25,
        "moved": f"<i>{query} (3) 4 → 1", "baseline_top": top, "candidate_top": top,
        "query": f"<u>text of {query}",
    }  # fmt: skip
