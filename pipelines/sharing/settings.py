"""The parts of the configuration that say where a finished run is told about. They change no number."""

from __future__ import annotations

from pydantic import Field, field_validator

from pipelines.config_statistics import MetricName
from pipelines.section import Section


class Tracking(Section):
    """MLflow."""

    enabled: bool = Field(True, description="Whether runs are logged to MLflow after they are published.")
    uri: str | None = Field(
        None,
        description="The tracking server or store, e.g. `https://mlflow.example.com` or `sqlite:///mlflow.db`; where "
        "not set, SQLite in the folder `mlflow` of a local warehouse. Keep credentials out of it: MLflow reads "
        "`MLFLOW_TRACKING_USERNAME`, `MLFLOW_TRACKING_PASSWORD` and `MLFLOW_TRACKING_TOKEN`.",
    )
    experiment: str = Field("assay", min_length=1, description="The experiment that the runs belong to.")
    required: bool = Field(
        False, description="Finish with exit code 7 where MLflow cannot be reached, instead of keeping it for later."
    )
    seconds: float = Field(10, gt=0, description="Seconds that one request to a server may take; it is tried thrice.")


class Prometheus(Section):
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
    def _read_by_the_collector(cls, name: str | None) -> str | None:
        if name is not None and not name.endswith(".prom"):
            raise ValueError("the textfile collector reads only files that end with .prom")
        return name
