"""Build the payload of a run: one parent, one child per system; bounded in size and without secrets."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from pipelines.comparison.answers import CandidateAnswer, answer_comparisons, find_baseline, find_headline
from pipelines.comparison.verdicts import find_worst_outcome
from pipelines.config.load import flatten
from pipelines.sharing.tracking.protocol import Payload, TrackedRun
from pipelines.warehouse.runs import Manifest, manifest_path, report_path
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import Row, RunTables
from udfs.statistics.plan import EVERYTHING

# MLflow's limits on lengths, and ours on how much one run may log.
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
OF_PAIRS = ("delta", "weighted_delta", "label_share", "unseen_weight")  # what is logged of a comparison
UNRELATED = ("spark", "warehouse", "report", "tracking", "prometheus")  # settings that do not affect any number


def build_payload(storage: Storage, manifest: Manifest, experiment: str) -> Payload:
    """Collect the payload from the manifest and the published averages and comparisons."""
    run = RunTables(storage, manifest)
    ended = int(dt.datetime.fromisoformat(manifest.committed_at).timestamp() * 1000)
    common = {"dt": manifest.dt, "run": manifest.run, "config_hash": manifest.config_hash}
    common |= {"git_sha": sha} if (sha := _read_git_sha()) else {}
    compared = run.rows("comparisons", most=METRICS, first=_pair_order, where=pc.field("segment") == EVERYTHING)
    answers = answer_comparisons(manifest, compared)
    verdicts = [_describe_answer(answer) for answer in answers]
    readings = [f"{r['candidate']} against {r['baseline']}: {r['text']}" for r in manifest.readings]
    note = "\n\n".join([*verdicts, *readings])
    parent = TrackedRun(
        name=_name_run(manifest),
        tags=_clean_tags(
            common
            | {
                "key": manifest.key,
                "code": manifest.code,
                "gate": summarise_gate(manifest),
                "mlflow.note.content": note,
            }
        ),
        metrics=_collect_headline_metrics(manifest, answers) | _collect_run_metrics(run),
        params=_collect_params(manifest),
    )
    return Payload(
        run=manifest.run,
        key=manifest.key,
        dt=manifest.dt,
        experiment=experiment,
        started=ended - int(sum(manifest.seconds.values()) * 1000),
        ended=ended,
        parent=parent,
        systems=tuple(_build_system_run(run, system, common, compared, answers) for system in manifest.systems),
        inputs=tuple(_describe_input(name, record) for name, record in manifest.inputs.items()),
        files={
            "manifest.json": manifest_path(manifest.dt, manifest.run),
            "report.html": report_path(manifest.dt, manifest.run),
            **{f"tables/{t}.parquet": manifest.tables[t].path for t in TABLES if 0 < run.count(t) <= ROWS},
            **_list_data_docs(storage, manifest),
        },
    )


def _list_data_docs(storage: Storage, manifest: Manifest) -> dict[str, str]:
    """The Data Docs pages, where there are any."""
    folder = manifest.checks.get("docs")
    pages = storage.list(folder, suffix=".html") if folder else ()
    return {f"data_docs/{page.rpartition('/')[2]}": page for page in pages}


def summarise_gate(manifest: Manifest) -> str:
    """The gate's verdict as one word."""
    return find_worst_outcome(verdict["verdict"] for verdict in manifest.gate)


def metric_key(*parts: str) -> str:
    """A key that MLflow accepts; parts that had to be changed end with a digest, so that no two collide."""
    return "/".join(_clean_part(part) for part in parts)[:KEY]


def _clean_part(text: str) -> str:
    plain = re.sub(r"[^\w\-. :]", "_", text, flags=re.ASCII).strip(" .")[:80] or "_"
    return plain if plain == text else f"{plain[:70]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _name_run(manifest: Manifest) -> str:
    """The date, the gate's verdict where there is one, and the beginning of the run's id."""
    gate = f" {summarise_gate(manifest)}" if manifest.gate else ""
    return f"{manifest.dt}{gate} ({manifest.run[:8]})"


def _describe_answer(answer: CandidateAnswer) -> str:
    return f"**{answer.sentence}** {answer.advice}"


def _collect_headline_metrics(manifest: Manifest, answers: Sequence[CandidateAnswer]) -> dict[str, float]:
    """The difference of each candidate in the headline metric; MLflow sorts charts, and `answer` comes first."""
    spec = find_headline(manifest)
    return {
        metric_key("answer", f"{spec.key} {answer.candidate} - {answer.baseline}"): answer.delta
        for answer in answers
        if spec is not None and answer.delta is not None
    }


def _build_system_run(
    run: RunTables,
    system: str,
    common: Mapping[str, str],
    compared: Sequence[Row],
    answers: Sequence[CandidateAnswer],
) -> TrackedRun:
    """Every average of one system: over all queries with its interval, then by segment, the largest first.

    A candidate has its differences from the baseline and the verdict on it, too.
    """
    rows = run.rows(
        "segment_metrics",
        most=METRICS,
        first=lambda row: (row["segment"] != EVERYTHING, -row["queries"], row["segment"], row["value"], row["metric"]),
        where=(pc.field("system") == system) & pc.field("macro").is_valid(),
    )
    metrics: dict[str, float] = {}
    for row in rows:
        if row["segment"] != EVERYTHING:
            metrics[metric_key("segment", row["segment"], row["value"], row["metric"])] = row["macro"]
            continue
        metrics[row["metric"]] = row["macro"]
        ends = {"low": row["macro_low"], "high": row["macro_high"], "queries": row["queries"]}
        ends |= {"weighted": row["weighted"]}
        metrics |= {f"{end}/{row['metric']}": value for end, value in ends.items() if value is not None}
    baseline = find_baseline(run.manifest, compared)
    own = [row for row in compared if (row["candidate"], row["baseline"]) == (system, baseline)]
    deltas = {f"{row['metric']} delta": row["delta"] for row in own if row["delta"] is not None}
    role = "baseline" if system == baseline else "candidate" if own else "evaluated"
    note = "\n\n".join(_describe_answer(answer) for answer in answers if answer.candidate == system)
    params = {"system": system, "role": role, "metrics": _format_value(run.manifest.config.get("metrics"))}
    params |= {f"conventions.{name}": _format_value(value) for name, value in run.manifest.conventions.items()}
    return TrackedRun(
        name=system[:200],
        tags=_clean_tags({**common, "system": system, "role": role, "mlflow.note.content": note}),
        metrics=metrics | deltas,
        params={key: value[:VALUE] for key, value in params.items() if value},
    )


def _collect_run_metrics(run: RunTables) -> dict[str, float]:
    """What belongs to no single system: differences, means side by side, verdict counts, rows and seconds."""
    manifest = run.manifest
    metrics: dict[str, float] = {}
    for row in run.rows("comparisons", most=METRICS, first=_pair_order, where=pc.field("segment") == EVERYTHING):
        for name in (name for name in OF_PAIRS if row[name] is not None):
            metrics[metric_key(name, row["metric"], f"{row['candidate']} - {row['baseline']}")] = row[name]
    everything = (pc.field("segment") == EVERYTHING) & pc.field("macro").is_valid()
    for row in run.rows("segment_metrics", most=METRICS, first=lambda r: (r["metric"], r["system"]), where=everything):
        metrics[metric_key(row["metric"], row["system"])] = row["macro"]
    for verdict in ("pass", "fail", "undecidable"):
        metrics[f"gate/{verdict}"] = sum(v["verdict"] == verdict for v in manifest.gate)
    metrics |= {f"rows/{name}": record.rows for name, record in manifest.tables.items()}
    metrics |= {f"seconds/{stage}": seconds for stage, seconds in manifest.seconds.items()}
    return metrics


def _pair_order(row: Row) -> tuple[Any, ...]:
    return row["baseline"], row["candidate"], row["metric"]


def _collect_params(manifest: Manifest) -> dict[str, str]:
    """What the numbers depend on; the manifest's configuration contains no secrets."""
    settings = {key: value for key, value in manifest.config.items() if key not in UNRELATED}
    params = {metric_key(key): _format_value(value) for key, value in flatten(settings)}
    params |= {f"conventions.{name}": _format_value(value) for name, value in manifest.conventions.items()}
    return {key: value[:VALUE] for key, value in list(params.items())[:PARAMS] if value}


def _format_value(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _describe_input(name: str, record: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": name,
        "digest": str(record.get("digest", ""))[:36] or "unknown",
        "source": json.dumps({"places": list(record.get("places", ()))[:20]})[:VALUE],
        "profile": json.dumps({"read": record.get("read"), "rejected": record.get("rejected", {})})[:VALUE],
    }


def _clean_tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value[:TAG] for key, value in tags.items() if value}


def _read_git_sha() -> str:
    """The commit of the project's folder; empty where it is not a repository."""
    command = ["git", "-C", str(Path(__file__).resolve().parents[3]), "rev-parse", "HEAD"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
