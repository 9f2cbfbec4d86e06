"""The time of an exchange is bounded as a whole, also where the server sends one byte at a time."""

import time
from pathlib import Path

import pytest

from pipelines.sharing import prometheus
from pipelines.sharing.deadline import call_within
from pipelines.sharing.prometheus import export_figures
from pipelines.sharing.settings import PrometheusSettings, TrackingSettings
from pipelines.sharing.tracking.outbox import list_pending
from pipelines.sharing.tracking.track import check_connection, track_run
from schemas.errors import PublishError, TrackingError
from tests.helpers.dripping_server import serve_drops
from tests.helpers.published_runs import publish


def test_a_server_that_drips_is_given_up_and_the_run_stays_pending(tmp_path: Path) -> None:
    import mlflow  # noqa: F401  (seconds, which are not those of the exchange)

    storage, manifest = publish(tmp_path)
    with serve_drops() as uri:
        settings = TrackingSettings(uri=uri, seconds=2)
        start = time.monotonic()
        with pytest.raises(TrackingError, match="TimeoutError: no complete answer within 2 seconds"):
            track_run(storage, manifest, settings)
        with pytest.raises(TrackingError, match="no complete answer within 2 seconds"):
            check_connection(storage, settings)
        # The server would take 14 hours; the bound is loose, since the machine may be busy.
        assert time.monotonic() - start < 60
    assert [payload.run for payload in list_pending(storage)] == [manifest.run]


def test_a_pushgateway_that_drips_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "PUSH_SECONDS", 1.0)
    storage, manifest = publish(tmp_path)
    with serve_drops() as uri, pytest.raises(PublishError, match="no complete answer within 1 seconds"):
        export_figures(storage, manifest, PrometheusSettings(pushgateway=uri))


def test_an_answer_and_an_error_pass_through() -> None:
    assert call_within(60, lambda: 7) == 7
    assert call_within(60, lambda: None) is None
    with pytest.raises(ZeroDivisionError):
        call_within(60, lambda: 1 // 0)
