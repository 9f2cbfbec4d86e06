"""Settings of the report's companions: experiment tracking and Prometheus. They do not affect any number."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from pipelines.comparison.settings import MetricName
from pipelines.sharing.tracking.registry import TRACKERS
from schemas.errors import did_you_mean
from schemas.section import Section


def _check_backend(name: str) -> str:
    if name not in TRACKERS:
        raise ValueError(f"unknown tracking backend {name!r}: {did_you_mean(name, TRACKERS)}")
    return name


class TrackingSettings(Section):
    """Experiment tracking."""

    enabled: bool = Field(True, description="Whether runs are logged to the tracker after they are published.")
    backend: Annotated[str, AfterValidator(_check_backend)] = Field(
        "mlflow", description="The tracker: the name of a file in `pipelines/sharing/tracking/backends`."
    )
    uri: str | None = Field(
        None,
        description="The tracking server or store, e.g. `https://mlflow.example.com` or `sqlite:///mlflow.db`; where "
        "not set, SQLite in the folder `mlflow` of a local warehouse. Keep credentials out of it: MLflow reads "
        "`MLFLOW_TRACKING_USERNAME`, `MLFLOW_TRACKING_PASSWORD` and `MLFLOW_TRACKING_TOKEN`.",
    )
    experiment: str = Field("assay", min_length=1, description="The experiment that runs are logged to.")
    required: bool = Field(
        False, description="Exit with code 7 where the tracker cannot be reached, instead of only warning."
    )
    seconds: float = Field(
        60, gt=0, description="Longest time to log one run, in seconds; a run that is not logged by then stays pending."
    )


class PrometheusSettings(Section):
    """Figures of the last run for Prometheus."""

    textfile: str | None = Field(
        None, description="A `.prom` file in the folder that the node exporter's textfile collector reads."
    )
    pushgateway: str | None = Field(None, description="Address of a Pushgateway, e.g. `http://localhost:9091`.")
    job: str = Field("assay", min_length=1, description="The job that pushed figures are grouped by.")
    histogram: str = Field(
        "assay_query_metric",
        pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$",
        description="Name of the histogram of per-query values, e.g. `vector_ndcg_avg`.",
    )
    metric: MetricName | None = Field(
        None, description="The metric of that histogram; the first of `metrics` where not set."
    )
    max_series: int = Field(500, ge=10, description="Most label combinations to export; the rest is left out.")

    @field_validator("textfile")
    @classmethod
    def _check_suffix(cls, name: str | None) -> str | None:
        if name is not None and not name.endswith(".prom"):
            raise ValueError("the textfile collector reads only files that end with .prom")
        return name
