"""What MLflow is told, without MLflow."""

import posixpath
import re
from pathlib import Path

import pytest

from jobs.share import Shared
from pipelines.config import Config
from pipelines.config_sharing import Tracking
from pipelines.storage import Storage
from pipelines.track import keep, pending, store_of
from pipelines.track.payload import gate_of, metric_key, payload_of
from schemas.errors import ConfigurationError, TrackingError
from tests.made import HOSTILE, publish


def test_a_run_becomes_a_parent_and_a_child_per_system(tmp_path: Path) -> None:
    payload = payload_of(*publish(tmp_path), "assay")
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
    assert (payload.step, payload.at) == (20758, 20758 * 86_400_000)  # 2026-11-01
    assert payload.ended - payload.started == 4750
    assert payload.parent.params["metrics"] == '["ndcg@10", "recall@10", "recall@20"]'
    assert payload.inputs[0]["digest"] == "d1"


def test_settings_that_decide_no_number_are_no_parameters(tmp_path: Path) -> None:
    told = payload_of(
        *publish(tmp_path, config={"metrics": ["mrr"], "warehouse": "/w", "spark": {"master": "local"}}), "assay"
    )
    assert set(told.parent.params) == {"metrics", "conventions.unjudged", "conventions.ties"}


@pytest.mark.parametrize("text", [*HOSTILE, "../../etc", "a/b", "", ".", "x" * 900, "ios"])
def test_any_text_becomes_a_key_that_mlflow_takes(text: str) -> None:
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
    said = [gate_of(manifest.model_copy(update={"gate": tuple(words[:n])})) for n in range(4)]
    assert said == ["none", "pass", "undecidable", "fail"]


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
    shown = str(config.published())
    assert "hunter2" not in shown and "abc123" not in shown
    assert config.published()["tracking"]["uri"] == "https://(hidden)@mlflow.example.com"
    assert config.published()["inputs"]["rankings"]["path"] == "https://(hidden)@host/x?sig=(hidden)&v=1"


def test_what_waits_comes_back_oldest_first(tmp_path: Path) -> None:
    storage, late = publish(tmp_path, date="2026-11-02", run="b-1")
    _, early = publish(tmp_path)
    for manifest in (late, early):
        keep(storage, payload_of(storage, manifest, "assay"))
    assert [payload.run for payload in pending(storage)] == [early.run, late.run]
    assert next(pending(storage)) == payload_of(storage, early, "assay")


def test_the_store_is_sqlite_in_a_local_warehouse(tmp_path: Path) -> None:
    assert store_of(Tracking(), Storage(str(tmp_path))) == f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert store_of(Tracking(uri="http://somewhere"), Storage(str(tmp_path))) == "http://somewhere"
    with pytest.raises(ConfigurationError, match=r"tracking\.uri"):
        store_of(Tracking(), Storage("mock:///warehouse"))


def test_what_was_required_is_raised_in_the_end() -> None:
    Shared().settle()
    with pytest.raises(TrackingError) as raised:
        Shared(failed=TrackingError("down")).settle()
    assert raised.value.exit_code == 7


def test_the_pages_on_data_quality_are_artifacts(tmp_path: Path) -> None:
    docs = "data_docs/dt=2026-11-01/run=x"
    storage, manifest = publish(tmp_path, checks={"docs": docs})
    storage.put(f"{docs}/index.html", "<p>all is well</p>")
    storage.put(f"{docs}/rankings.html", "<p>all is well</p>")
    files = payload_of(storage, manifest, "search").files
    assert {name: place for name, place in files.items() if name.startswith("data_docs")} == {
        "data_docs/index.html": f"{docs}/index.html",
        "data_docs/rankings.html": f"{docs}/rankings.html",
    }
