"""Figures for Prometheus, read back by Prometheus's own parser."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import ValidationError

from pipelines.sharing.prometheus import export_figures, render_figures
from pipelines.sharing.settings import PrometheusSettings
from schemas.errors import PublishError
from tests.helpers.published_runs import HOSTILE, publish, write

CHECKS = {"mode": "full", "tables": {"rankings": {"passed": 3, "warned": 1, "failed": 2}}, "failing": []}


def read(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample by its name and the values of its labels, in the order of their names."""
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_run_is_exported_as_figures(tmp_path: Path) -> None:
    verdict = {"verdict": "fail"}
    samples = read(render_figures(*publish(tmp_path, gate=[verdict], checks=CHECKS), PrometheusSettings()))
    assert samples["assay_last_success_timestamp_seconds", ()] == 1793592000.0  # 2026-11-02 04:00 UTC
    assert samples["assay_stage_seconds", ("score",)] == 3.25
    assert samples["assay_rows", ("query_metrics",)] == 400
    assert samples["assay_input_rows", ("unusable", "judgments")] == 3
    assert samples["assay_quality_failures", ("error", "rankings")] == 2
    assert samples["assay_gate_conditions", ("fail",)] == 1
    assert samples["assay_metric", ("recall_at_20", "old")] == 1.0
    assert samples["assay_metric_low", ("recall_at_20", "old")] == pytest.approx(0.98)


def test_the_histogram_counts_queries_up_to_each_tenth(tmp_path: Path) -> None:
    """recall@10 of query n is (n mod 11) / 10, so each edge takes in one value more."""
    settings = PrometheusSettings(histogram="vector_ndcg_avg", metric="recall@10")
    samples = read(render_figures(*publish(tmp_path, queries=[f"q{n}" for n in range(110)]), settings))
    buckets = {
        labels[0]: value
        for (name, labels), value in samples.items()
        if name == "vector_ndcg_avg_bucket" and labels[1] == "new"
    }
    assert buckets == {f"{edge / 10:.1f}": 10.0 * (edge + 1) for edge in range(11)} | {"+Inf": 110.0}
    assert samples["vector_ndcg_avg_count", ("new",)] == 110
    assert samples["vector_ndcg_avg_sum", ("new",)] == pytest.approx(55.0)


def test_labels_are_bounded_and_hostile_ones_harmless(tmp_path: Path) -> None:
    storage, manifest = publish(tmp_path)
    names = [*HOSTILE, 'quote " backslash \\ line\nbreak', *[f"{n}" + "x" * 500 for n in range(300)]]
    rows = [
        {"system": name, "segment": "all", "value": "all", "metric": f"m{m}", "macro": 0.5, "queries": 1, "skipped": 0}
        for name in names
        for m in range(5)
    ]
    many = manifest.model_copy(
        update={
            "systems": tuple(names),
            "tables": {"segment_metrics": write(storage, manifest.dt, "many-1", "segment_metrics", rows)},
        }
    )
    samples = read(render_figures(storage, many, PrometheusSettings(max_series=100)))
    named = [labels for name, labels in samples if name == "assay_metric"]
    assert len(named) == 100
    assert max(len(label) for labels in named for label in labels) == 100
    assert len([labels for name, labels in samples if name.endswith("_bucket")]) == 7 * 12


def test_long_systems_that_begin_alike_are_two_series(tmp_path: Path) -> None:
    systems = ["x" * 500 + end for end in ("1", "2")]
    storage, manifest = publish(tmp_path, systems=systems)
    text = render_figures(storage, manifest, PrometheusSettings())
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert len([labels for name, labels in read(text) if name == "assay_metric"]) == 6, "two systems, three metrics"


def test_figures_are_written_and_pushed(tmp_path: Path) -> None:
    pushed: list[tuple[str, str, str]] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            pushed.append((self.path, self.headers["Content-Type"], body))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        target = tmp_path / "figures" / "assay.prom"
        address = f"http://127.0.0.1:{server.server_port}"
        settings = PrometheusSettings(textfile=str(target), pushgateway=address, job="search")
        storage, manifest = publish(tmp_path / "warehouse")
        assert export_figures(storage, manifest, settings) == [str(target), address]
    assert pushed[0][0] == "/metrics/job/search"
    assert read(pushed[0][2]) == read(target.read_text(encoding="utf-8"))
    assert read(pushed[0][2])["assay_rows", ("query_metrics",)] == 400
    with pytest.raises(PublishError, match="cannot export the figures"):
        export_figures(storage, manifest, settings)  # the gateway has gone
    with pytest.raises(ValidationError, match=r"end with \.prom"):
        PrometheusSettings(textfile="assay.txt")


def test_the_dashboard_asks_only_for_figures_that_exist(tmp_path: Path) -> None:
    board = json.loads(Path("conf/grafana.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    names = {name for expression in expressions for name in re.findall(r"\bassay_\w+", expression)}
    exported = {name for name, _ in read(render_figures(*publish(tmp_path, checks=CHECKS), PrometheusSettings()))}
    assert len(expressions) >= 9
    assert names <= exported
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
