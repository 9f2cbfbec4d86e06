"""What MLflow is told of a run: one parent, one child per system; bounded, and without secrets."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from pipelines.configure import leaves
from pipelines.report.published import Published, Row
from pipelines.runs import Manifest, manifest_name, report_name
from pipelines.storage import Storage
from udfs.statistics.plan import EVERYTHING

# MLflow's own limits, and ours on what one run may say there.
KEY, VALUE, TAG = 250, 6000, 5000
METRICS, PARAMS, ROWS = 5000, 500, 200_000
TABLES = (
    "segment_metrics",
    "comparisons",
    "sensitivity",
    "query_changes",
    "propensities",
    "denoise_funnel",
    "validation_results",
)
NUMBERS = ("spark", "warehouse", "report", "tracking", "prometheus")  # settings that decide no number


class Tracked(BaseModel):
    """One run as MLflow knows it."""

    model_config = ConfigDict(frozen=True)

    name: str
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    params: Mapping[str, str] = {}


class Payload(BaseModel):
    """All that is sent of one evaluation. Tables and the report are named and read when it is sent."""

    model_config = ConfigDict(frozen=True)

    run: str
    key: str
    dt: str
    experiment: str
    started: int  # milliseconds
    ended: int
    parent: Tracked
    systems: tuple[Tracked, ...]
    inputs: tuple[Mapping[str, str], ...]
    files: Mapping[str, str]  # name of an artifact -> name in the warehouse

    @property
    def at(self) -> int:
        """Midnight of the date in milliseconds: the time that metrics are logged with, so that charts run over days."""
        return self.step * 86_400_000

    @property
    def step(self) -> int:
        """The date as days since 1970."""
        return (dt.date.fromisoformat(self.dt) - dt.date(1970, 1, 1)).days


def payload_of(storage: Storage, manifest: Manifest, experiment: str) -> Payload:
    """Gather it from the manifest and the published averages and comparisons."""
    run = Published(storage, manifest)
    ended = int(dt.datetime.fromisoformat(manifest.committed_at).timestamp() * 1000)
    common = {"dt": manifest.dt, "run": manifest.run, "config_hash": manifest.config_hash}
    common |= {"git_sha": sha} if (sha := _git_sha()) else {}
    said = "\n\n".join(f"{r['candidate']} against {r['baseline']}: {r['text']}" for r in manifest.readings)
    parent = Tracked(
        name=f"{manifest.dt} {manifest.run}",
        tags=_tags(
            common
            | {"key": manifest.key, "code": manifest.code, "gate": gate_of(manifest), "mlflow.note.content": said}
        ),
        metrics=_of_run(run),
        params=_params(manifest),
    )
    return Payload(
        run=manifest.run,
        key=manifest.key,
        dt=manifest.dt,
        experiment=experiment,
        started=ended - int(sum(manifest.seconds.values()) * 1000),
        ended=ended,
        parent=parent,
        systems=tuple(_of_system(run, system, common) for system in manifest.systems),
        inputs=tuple(_input(name, facts) for name, facts in manifest.inputs.items()),
        files={
            "manifest.json": manifest_name(manifest.dt, manifest.run),
            "report.html": report_name(manifest.dt, manifest.run),
            **{f"tables/{t}.parquet": manifest.tables[t].path for t in TABLES if 0 < run.count(t) <= ROWS},
            **_data_docs(storage, manifest),
        },
    )


def _data_docs(storage: Storage, manifest: Manifest) -> dict[str, str]:
    """The pages on data quality, where there are any."""
    folder = manifest.checks.get("docs")
    pages = storage.list(folder, suffix=".html") if folder else ()
    return {f"data_docs/{page.rpartition('/')[2]}": page for page in pages}


def gate_of(manifest: Manifest) -> str:
    """The gate's verdict as one word."""
    said = {verdict["verdict"] for verdict in manifest.gate}
    return next((word for word in ("fail", "undecidable", "pass") if word in said), "none")


def metric_key(*parts: str) -> str:
    """A key that MLflow takes; parts that had to be changed end with a digest, so that no two become one."""
    return "/".join(_part(part) for part in parts)[:KEY]


def _part(text: str) -> str:
    plain = re.sub(r"[^\w\-. :]", "_", text, flags=re.ASCII).strip(" .")[:80] or "_"
    return plain if plain == text else f"{plain[:70]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _of_system(run: Published, system: str, common: Mapping[str, str]) -> Tracked:
    """Every average of one system: over everything with its interval, then by segment, the largest first."""
    rows = run.rows(
        "segment_metrics",
        most=METRICS,
        first=lambda row: (row["segment"] != EVERYTHING, -row["queries"], row["segment"], row["value"], row["metric"]),
        where=(pc.field("system") == system) & pc.field("macro").is_valid(),
    )
    found: dict[str, float] = {}
    for row in rows:
        if row["segment"] != EVERYTHING:
            found[metric_key("segment", row["segment"], row["value"], row["metric"])] = row["macro"]
            continue
        found[row["metric"]] = row["macro"]
        ends = {"low": row["macro_low"], "high": row["macro_high"], "queries": row["queries"]}
        found |= {f"{end}/{row['metric']}": value for end, value in ends.items() if value is not None}
    name = system[:200]
    return Tracked(name=name, tags=_tags({**common, "system": system}), metrics=found)


def _of_run(run: Published) -> dict[str, float]:
    """What belongs to no single system: their means side by side, differences, verdicts, rows and seconds."""
    manifest = run.manifest
    found: dict[str, float] = {}
    for verdict in ("pass", "fail", "undecidable"):
        found[f"gate/{verdict}"] = sum(v["verdict"] == verdict for v in manifest.gate)
    found |= {f"rows/{name}": record.rows for name, record in manifest.tables.items()}
    found |= {f"seconds/{stage}": seconds for stage, seconds in manifest.seconds.items()}
    everything = (pc.field("segment") == EVERYTHING) & pc.field("macro").is_valid()
    for row in run.rows("segment_metrics", most=METRICS, first=lambda r: (r["metric"], r["system"]), where=everything):
        found[metric_key(row["metric"], row["system"])] = row["macro"]
    for row in run.rows("comparisons", most=METRICS, first=_by_pair, where=pc.field("segment") == EVERYTHING):
        if row["delta"] is not None:
            found[metric_key("delta", row["metric"], f"{row['candidate']} - {row['baseline']}")] = row["delta"]
    return found


def _by_pair(row: Row) -> tuple[Any, ...]:
    return row["baseline"], row["candidate"], row["metric"]


def _params(manifest: Manifest) -> dict[str, str]:
    """What decided the numbers; the manifest's configuration is free of secrets already."""
    settings = {key: value for key, value in manifest.config.items() if key not in NUMBERS}
    told = {metric_key(key): _shown(value) for key, value in leaves(settings)}
    told |= {f"conventions.{name}": _shown(value) for name, value in manifest.conventions.items()}
    return {key: value[:VALUE] for key, value in list(told.items())[:PARAMS] if value}


def _shown(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _input(name: str, facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": name,
        "digest": str(facts.get("digest", ""))[:36] or "unknown",
        "source": json.dumps({"places": list(facts.get("places", ()))[:20]})[:VALUE],
        "profile": json.dumps({"read": facts.get("read"), "rejected": facts.get("rejected", {})})[:VALUE],
    }


def _tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value[:TAG] for key, value in tags.items() if value}


def _git_sha() -> str:
    """The commit of this project's folder; nothing where it is no repository."""
    asked = ["git", "-C", str(Path(__file__).resolve().parents[2]), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
