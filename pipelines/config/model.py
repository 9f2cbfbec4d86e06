"""`Config`: the settings of every room in one frozen model. Defaults are set here and nowhere else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from pipelines.comparison.settings import (
    BANDS,
    LABEL_DRAWS,
    MIN_QUERIES,
    PAGE,
    BandSettings,
    CompareSettings,
    GateCondition,
    MetricName,
    StatisticsSettings,
    strip_page,
)
from pipelines.config.requirements import check_column_name, check_requirements, find_missing_posterior
from pipelines.config.spark import SparkSettings
from pipelines.inputs.settings import Inputs, InputSource
from pipelines.labels.settings import LabelSettings
from pipelines.quality.settings import Mode, QualitySettings
from pipelines.report.settings import ReportSettings
from pipelines.sharing.settings import PrometheusSettings, TrackingSettings
from pipelines.warehouse.catalog.settings import OutputSettings
from schemas.inputs import INPUTS
from schemas.redact import redact
from schemas.section import Place, Section
from udfs.conventions import POINT_RULE, Conventions
from udfs.registry import MetricSpec, parse_metric, parse_metrics
from udfs.shown_metrics import list_shown_metrics
from udfs.statistics.counting import JUDGED, UNSEEN, CountingRule, judged_column, resolve_min_judged


class DateRange(Section):
    """A range of days, both ends included."""

    first: dt.date = Field(description="The first day.")
    last: dt.date = Field(description="The last day.")

    @model_validator(mode="after")
    def _check_order(self) -> DateRange:
        if self.last < self.first:
            raise ValueError(f"last, {self.last}, is before first, {self.first}")
        return self


# Sections about where the work runs and where results go.
ELSEWHERE = {"spark", "warehouse", "output", "report", "tracking", "prometheus"}
SegmentColumns = Annotated[tuple[str, ...], Field(min_length=1)]


class Config(Section):
    """All settings of a run."""

    inputs: Inputs = Field(description="The tables to read.")
    metrics: tuple[MetricName, ...] = Field(
        ("ndcg@10", "recall@10"), min_length=1, description="The metrics to compute, as `name(parameters)@k`."
    )
    segments: tuple[SegmentColumns, ...] = Field(
        (),
        description="Columns of `queries` to report by, `traffic_band` or `relevant_band`, or columns of the log as "
        "`impressions.device`, by which queries count by their pages; a nested list is a combination of columns.",
    )
    bands: BandSettings = Field(BandSettings(), description="Edges of the bands.")
    statistics: StatisticsSettings = Field(StatisticsSettings(), description="Confidence intervals and tests.")
    compare: CompareSettings = Field(CompareSettings(), description="Comparisons between systems.")
    gate: tuple[GateCondition, ...] = Field((), description="The release conditions; each is a section.")
    earlier: str | None = Field(
        None,
        description="The system whose lists retention, rbo and rank_tau compare others with; default: the baseline.",
    )
    conventions: Conventions = Field(Conventions(), description="How edge cases are scored.")
    labels: LabelSettings = Field(LabelSettings(), description="How labels are built from a log.")
    trained: dict[str, DateRange | Literal["none"]] = Field(
        default_factory=dict,
        description="System → the days whose clicks it was trained on, or `none` for one that did not learn from "
        "clicks. Labels from the same days favour it, and comparisons warn about an overlap and about systems that are "
        "not listed. Posteriors leave the clicks of these days out where the log has others, and the intervals of "
        "systems that never served are wider unless this is `none`.",
    )
    labels_of: str | None = Field(
        None,
        description="A date or a run whose published labels are used instead of a log and judgments.",
    )
    warehouse: Place = Field("warehouse", description="Where results are published: a folder or a URI.")
    output: OutputSettings = Field(OutputSettings(), description="Tables of a catalog that runs are published to.")
    max_rejected: float = Field(
        0.05, ge=0, le=1, description="Largest share of an input's rows that may be unusable before the run stops."
    )
    checks: Mode = Field(
        "full",
        description="Which quality checks run: all; `fast`, those that need no shuffle and no results; or none.",
    )
    quality: QualitySettings = Field(QualitySettings(), description="Severity and threshold of each quality check.")
    report: ReportSettings = Field(ReportSettings(), description="The HTML report of each run.")
    tracking: TrackingSettings = Field(TrackingSettings(), description="Logging runs to MLflow.")
    prometheus: PrometheusSettings = Field(PrometheusSettings(), description="Metrics of the last run for Prometheus.")
    spark: SparkSettings = Field(SparkSettings(), description="The Spark session.")

    @field_validator("checks", mode="before")
    @classmethod
    def _read_off(cls, mode: Any) -> Any:
        """YAML parses a plain `off` as false."""
        return "off" if mode is False else mode

    @field_validator("report", mode="before")
    @classmethod
    def _read_switch(cls, report: Any) -> Any:
        """`report: false` turns it off."""
        return {"enabled": report} if isinstance(report, bool) else report

    @field_validator("metrics", mode="before")
    @classmethod
    def _read_one_metric(cls, metrics: Any) -> Any:
        """One metric may be written without a list, as in `--set metrics=ndcg@10`."""
        return [metrics] if isinstance(metrics, str) else metrics

    @field_validator("metrics")
    @classmethod
    def _check_unique(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        duplicates = [name for index, name in enumerate(metrics) if name in metrics[:index]]
        if duplicates:
            raise ValueError(f"{duplicates[0]} is listed twice")
        return metrics

    @field_validator("segments", mode="before")
    @classmethod
    def _split_columns(cls, segments: Any) -> Any:
        if isinstance(segments, str):
            return ((segments,),)
        return tuple((s,) if isinstance(s, str) else s for s in segments) if isinstance(segments, list) else segments

    @field_validator("segments")
    @classmethod
    def _check_columns(cls, segments: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        for column in (column for segment in segments for column in segment):
            check_column_name(column.removeprefix(PAGE), "segment")
        return segments

    @model_validator(mode="after")
    def _check_requirements(self) -> Config:
        check_requirements(self)
        return self

    @property
    def behaviour(self) -> bool:
        """Whether labels come from a log, in which documents that were never shown have no label."""
        return self.labels_of is not None or self.inputs.impressions is not None

    @property
    def earlier_system(self) -> str | None:
        """The system whose lists the others are compared with by retention, rbo and rank_tau."""
        return self.earlier or self.compare.baseline

    @property
    def unjudged(self) -> str:
        """The rule for unjudged documents; `auto` depends on where labels come from."""
        if self.conventions.unjudged != "auto":
            return self.conventions.unjudged
        # Labels from behaviour are missing where the serving ranker buried documents: they must not count as 0.
        by_grades = POINT_RULE if self.behaviour else "zero"
        return "posterior" if find_missing_posterior(self) is None else by_grades

    @property
    def posterior(self) -> bool:
        """Whether every document of the pool has a posterior of its grade, shown or not."""
        return self.unjudged == "posterior"

    @property
    def label_draws(self) -> int:
        """The number of draws of the labels; 0 takes them as true."""
        draws = self.statistics.label_draws
        return (LABEL_DRAWS if self.posterior else 0) if draws is None else draws

    @property
    def min_judged(self) -> float | None:
        """The minimum judged share of a top k for the query to count."""
        return resolve_min_judged(self.compare.min_judged, unjudged=self.unjudged, from_behaviour=self.behaviour)

    def min_queries(self, condition: GateCondition | None = None) -> int:
        """Return the number of queries below which a condition is undecidable, or any comparison where it is None."""
        if condition is not None and condition.min_queries is not None:
            return condition.min_queries
        return 2 if self.posterior else MIN_QUERIES

    def vouches_for(self, system: str) -> bool:
        """Whether a system is declared not to have learned from clicks."""
        return self.trained.get(system) == "none"

    def list_learned_days(self, systems: Iterable[str]) -> tuple[tuple[dt.date, dt.date], ...]:
        """Return the first and the last day of every range that one of these systems learned from."""
        spans = [self.trained.get(system, "none") for system in systems]
        return tuple((span.first, span.last) for span in spans if span != "none")

    def judged_key(self, spec: MetricSpec) -> str | None:
        """Return the column with the judged share of this metric's top k; None for that column itself."""
        return judged_column(spec, [computed.key for computed in self.specs])

    @property
    def counting(self) -> CountingRule | None:
        """By what a query counts in `query_metrics`: the first metric with a value per query; None without one."""
        first = next((spec for spec in self.specs if spec.metric.scope != "system"), None)
        if first is None:
            return None
        judged = self.judged_key(first) if self.min_judged is not None else None
        return CountingRule(first.key, judged, self.min_judged or 0.0, self.compare.baseline)

    @property
    def specs(self) -> tuple[MetricSpec, ...]:
        """The metrics, judged@k for those with a minimum judged share; with a posterior both shares, and dcg@k."""
        bounded, every = [], [spec for spec in parse_metrics(self.metrics) if spec.metric.scope == "list"]
        if self.min_judged is not None or self.posterior:
            bounded += every
        bounded += [parse_metric(condition.metric) for condition in self.gate if condition.min_judged is not None]
        judged = [f"{JUDGED}@{spec.k}" for spec in bounded if spec.k is not None]
        unseen = [UNSEEN if spec.k is None else f"{UNSEEN}@{spec.k}" for spec in every] if self.posterior else []
        return parse_metrics(dict.fromkeys([*list_shown_metrics(self.metrics, self.unjudged), *judged, *unseen]))

    @property
    def query_segments(self) -> tuple[tuple[str, ...], ...]:
        """The segments that divide queries: those without a column of the log."""
        return tuple(segment for segment in self.segments if not any(name.startswith(PAGE) for name in segment))

    @property
    def page_segments(self) -> tuple[tuple[str, ...], ...]:
        """The segments that divide pages, and so the traffic of a query."""
        return tuple(segment for segment in self.segments if segment not in self.query_segments)

    @property
    def page_columns(self) -> tuple[str, ...]:
        """The columns of the log that segments use, without their prefix."""
        columns = [column for segment in self.segments for column in segment if column.startswith(PAGE)]
        return strip_page(dict.fromkeys(columns))

    @property
    def segment_columns(self) -> tuple[str, ...]:
        """The columns of `queries` that segments use."""
        columns = [column for segment in self.segments for column in segment]
        return tuple(dict.fromkeys(name for name in columns if name not in BANDS and not name.startswith(PAGE)))

    @property
    def query_columns(self) -> tuple[str, ...]:
        """The columns of `queries` that are carried along with the results of a query."""
        cluster = self.statistics.cluster
        return tuple(dict.fromkeys([*self.segment_columns, *([cluster] if cluster else [])]))

    def sources(self) -> dict[str, InputSource]:
        """Return the configured inputs by the name of their contract."""
        sources = {name: getattr(self.inputs, name, None) for name in INPUTS}
        unread = ("impressions", "interactions", "judgments") if self.labels_of is not None else ()
        return {name: source for name, source in sources.items() if source is not None and name not in unread}

    def select_log(self) -> Config:
        """Return this configuration with only the log and the judgments as inputs."""
        kept = {"impressions", "interactions", "judgments"}
        inputs = self.inputs.model_copy(update={name: None for name in Inputs.model_fields if name not in kept})
        unused = {"segments": (), "earlier": None, "compare": CompareSettings(), "gate": ()}
        labels = self.labels.model_copy(update={"opinions": None})
        return self.model_copy(update={"inputs": inputs, "labels": labels} | unused)

    def dump_settings(self) -> dict[str, Any]:
        """Return the settings that determine the numbers: all but where the work runs and where results go.

        Where the inputs are is not one of them: the digest of their files says that, from wherever the run is started.
        """
        places: dict[str, Any] = {"path": True, "sources": {"__all__": {"path": True}}}
        excluded = dict.fromkeys(ELSEWHERE, True) | {"inputs": dict.fromkeys(Inputs.model_fields, places)}
        return self.model_dump(mode="json", exclude=excluded)

    def dump_redacted(self) -> dict[str, Any]:
        """Return all settings without secrets, to print and to store."""
        return dict(redact(self.model_dump(mode="json"), names=("trained", "columns")))
