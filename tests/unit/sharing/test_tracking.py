"""The payload of a run, the outbox and the choice of a tracker, without MLflow."""

import posixpath
import re
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import ValidationError

from pipelines.config.model import Config
from pipelines.sharing.settings import TrackingSettings
from pipelines.sharing.share import SharedPlaces
from pipelines.sharing.tracking.backends.mlflow import MlflowTracker
from pipelines.sharing.tracking.outbox import drop_payload, find_sent, keep_payload, list_pending
from pipelines.sharing.tracking.payload import build_payload, metric_key, summarise_gate
from pipelines.sharing.tracking.protocol import Payload
from pipelines.sharing.tracking.registry import TRACKERS
from pipelines.sharing.tracking.track import check_connection, send_pending, track_run
from pipelines.warehouse.storage import Storage
from schemas.errors import ConfigurationError, TrackingError
from tests.helpers.published_runs import HOSTILE, publish


def test_a_run_becomes_a_parent_and_a_child_per_system(tmp_path: Path) -> None:
    payload = build_payload(*publish(tmp_path), "assay")
    assert payload.parent.tags["run"] == "aaaaaaaaaaaa-000001"
    assert payload.parent.tags["key"] == "aaaaaaaaaaaa"
    assert payload.parent.metrics["rows/query_metrics"] == 400
    assert payload.parent.metrics["recall_at_20/new"] == 1.0
    assert payload.parent.metrics["delta/ndcg_at_10/new - old"] == pytest.approx(0.1 * 149 / 199)
    old, new = payload.systems
    assert (old.tags["system"], new.tags["system"], new.tags["dt"]) == ("old", "new", "2026-11-01")
    assert new.metrics["ndcg_at_10"] - old.metrics["ndcg_at_10"] == pytest.approx(0.1 * 149 / 199)
    assert new.metrics["segment/device/ios/recall_at_20"] == 1.0
    assert new.metrics["low/recall_at_20"] == pytest.approx(0.98)
    assert new.metrics["weighted/recall_at_20"] == 1.0
    assert (payload.step, payload.timestamp) == (20758, 20758 * 86_400_000)  # 2026-11-01
    assert payload.ended - payload.started == 4750
    assert payload.parent.params["metrics"] == '["ndcg@10", "recall@10", "recall@20"]'
    assert payload.inputs[0]["digest"] == "d1"
    assert payload.parent.name == "2026-11-01 (aaaaaaaa)"
    answer = "answer/ndcg_at_10 new - old"
    assert min(payload.parent.metrics) == answer, "MLflow sorts charts by their section"
    assert new.metrics["ndcg_at_10 delta"] == payload.parent.metrics[answer] == pytest.approx(0.1 * 149 / 199)
    assert "ndcg_at_10 delta" not in old.metrics
    assert (old.params["role"], new.params["role"], new.params["system"]) == ("baseline", "candidate", "new")
    assert new.tags["mlflow.note.content"].startswith("**new beats old: ndcg@10 +0.0749")


def test_settings_that_do_not_affect_numbers_are_no_parameters(tmp_path: Path) -> None:
    payload = build_payload(
        *publish(tmp_path, config={"metrics": ["mrr"], "warehouse": "/w", "spark": {"master": "local"}}), "assay"
    )
    assert set(payload.parent.params) == {"metrics", "conventions.unjudged", "conventions.ties"}


@pytest.mark.parametrize("text", [*HOSTILE, "../../etc", "a/b", "", ".", "x" * 900, "ios"])
def test_any_text_becomes_a_key_that_mlflow_accepts(text: str) -> None:
    key = metric_key("segment", "device", text, "ndcg_at_10")
    assert re.fullmatch(r"[\w\-. :/]{1,250}", key, re.ASCII)  # as MLflow's own rule has it
    assert posixpath.normpath(key) == key and not key.startswith(("/", ".."))
    assert key.count("/") == 3
    assert ("ios" in key) == (text == "ios")


def test_texts_that_look_alike_once_cleaned_stay_apart() -> None:
    assert len({metric_key(text) for text in ("a/b", "a_b", "a?b", "a|b")}) == 4


def test_the_gate_is_as_good_as_its_worst_verdict(tmp_path: Path) -> None:
    _, manifest = publish(tmp_path)
    words = [{"verdict": word} for word in ("pass", "undecidable", "fail")]
    verdicts = [summarise_gate(manifest.model_copy(update={"gate": tuple(words[:n])})) for n in range(4)]
    assert verdicts == ["none", "pass", "undecidable", "fail"]


def test_secrets_are_hidden_wherever_they_stand() -> None:
    config = Config.model_validate(
        {
            "inputs": {
                "rankings": {"path": "https://me:hunter2@host/x?sig=abc123&v=1", "options": {"password": "hunter2"}},
                "judgments": {"path": "b"},
            },
            "tracking": {"uri": "https://user:hunter2@mlflow.example.com"},
            "spark": {"settings": {"fs.s3a.secret.key": "hunter2"}},
        }
    )
    shown = str(config.dump_redacted())
    assert "hunter2" not in shown and "abc123" not in shown
    assert config.dump_redacted()["tracking"]["uri"] == "https://(hidden)@mlflow.example.com"
    assert config.dump_redacted()["inputs"]["rankings"]["path"] == "https://(hidden)@host/x?sig=(hidden)&v=1"


def test_pending_payloads_come_back_oldest_first(tmp_path: Path) -> None:
    storage, late = publish(tmp_path, date="2026-11-02", run="b-1")
    _, early = publish(tmp_path)
    for manifest in (late, early):
        keep_payload(storage, build_payload(storage, manifest, "assay"))
    assert [payload.run for payload in list_pending(storage)] == [early.run, late.run]
    assert list_pending(storage)[0] == build_payload(storage, early, "assay")
    drop_payload(storage, list_pending(storage)[0])
    assert [payload.run for payload in list_pending(storage)] == [late.run]


def test_a_payload_that_cannot_be_read_does_not_keep_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage, manifest = publish(tmp_path)
    keep_payload(storage, build_payload(storage, manifest, "assay"))
    storage.put("tracking/pending/x.json", '{"run": "x"')
    assert [payload.run for payload in list_pending(storage)] == [manifest.run]
    assert f"skipped file://{tmp_path}/tracking/pending/x.json" in caplog.text


def test_the_store_is_sqlite_in_a_local_warehouse(tmp_path: Path) -> None:
    assert MlflowTracker(TrackingSettings(), Storage(str(tmp_path))).uri == f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert MlflowTracker(TrackingSettings(uri="http://somewhere"), Storage(str(tmp_path))).uri == "http://somewhere"
    with pytest.raises(ConfigurationError, match=r"tracking\.uri"):
        MlflowTracker(TrackingSettings(), Storage("mock:///warehouse"))


def test_a_required_step_that_failed_is_raised_at_the_end() -> None:
    SharedPlaces().raise_error()
    with pytest.raises(TrackingError) as raised:
        SharedPlaces(error=TrackingError("down")).raise_error()
    assert raised.value.exit_code == 7


def test_data_docs_are_artifacts(tmp_path: Path) -> None:
    docs = "data_docs/dt=2026-11-01/run=x"
    storage, manifest = publish(tmp_path, checks={"docs": docs})
    storage.put(f"{docs}/index.html", "<p>all is well</p>")
    storage.put(f"{docs}/rankings.html", "<p>all is well</p>")
    files = build_payload(storage, manifest, "search").files
    assert {name: place for name, place in files.items() if name.startswith("data_docs")} == {
        "data_docs/index.html": f"{docs}/index.html",
        "data_docs/rankings.html": f"{docs}/rankings.html",
    }


class FlakyTracker:
    """A tracker that is down until it is repaired."""

    down = True
    sent: ClassVar[list[str]] = []

    def __init__(self, settings: TrackingSettings, storage: Storage) -> None:
        self.settings = settings

    def send(self, payload: Payload) -> str:
        if FlakyTracker.down:
            raise OSError("no\nroute")
        FlakyTracker.sent.append(payload.run)
        return f"flaky/{payload.run}"

    def check(self) -> str:
        return f"{self.settings.uri} answers"

    def warm_up(self) -> None: ...


def test_a_backend_is_chosen_by_name_and_its_failures_go_to_the_outbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(TRACKERS) == ["mlflow"]
    monkeypatch.setitem(TRACKERS._entries, "flaky", FlakyTracker)
    settings = TrackingSettings(backend="flaky", uri="flaky://me:hunter2@host")
    storage, manifest = publish(tmp_path)
    assert check_connection(storage, settings) == "flaky://me:hunter2@host answers"
    with pytest.raises(
        TrackingError, match=r"flaky could not be reached: OSError: no route \(flaky://\(hidden\)@host\)"
    ):
        track_run(storage, manifest, settings)
    assert [payload.run for payload in list_pending(storage)] == [manifest.run]
    FlakyTracker.down = False
    assert send_pending(storage, settings) == {manifest.run: f"flaky/{manifest.run}"}
    assert (FlakyTracker.sent, list_pending(storage)) == ([manifest.run], [])


def test_an_unknown_backend_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ValidationError, match="unknown tracking backend 'mlfow': did you mean 'mlflow'"):
        TrackingSettings(backend="mlfow")


@pytest.mark.parametrize("content", ["", "[1]", "5", "{", "[" * 100_000, '{"place": 1}'])
def test_a_damaged_record_of_what_was_sent_counts_as_not_sent(tmp_path: Path, content: str) -> None:
    storage = Storage(str(tmp_path))
    storage.put("tracking/sent/r.json", content)
    assert find_sent(storage, "r", TrackingSettings()) is None
