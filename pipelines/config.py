"""The configuration: one frozen, typed model. Defaults live here and nowhere else."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from pipelines.config_sharing import Prometheus, Tracking
from pipelines.config_statistics import BANDS, Bands, Compare, Condition, MetricName, Statistics
from pipelines.formats import formats
from pipelines.label_config import LabelConfig
from pipelines.quality.settings import Mode, QualitySettings
from pipelines.section import Section
from schemas.errors import did_you_mean
from schemas.inputs import INPUTS
from schemas.outputs import QUERY_METRICS
from udfs.conventions import Conventions
from udfs.registry import Spec, parse, parse_all
from udfs.statistics.plan import BETWEEN, EVERYTHING


def _known_format(name: str) -> str:
    if name not in formats():
        raise ValueError(f"unknown format {name!r}: {did_you_mean(name, formats())}")
    return name


Format = Annotated[str, AfterValidator(_known_format)]


class Source(Section):
    """Where one input table comes from."""

    path: str | None = Field(
        None, description="Folder or file; `{date}` stands for the date of the run, or each date of the window."
    )
    table: str | None = Field(None, description="A catalog table instead of a path, as `catalog.schema.table`.")
    format: Format = Field("parquet", description=f"What the files at `path` are: {', '.join(formats())}.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Contract name → name in the data, where they differ."
    )
    options: dict[str, str] = Field(
        default_factory=dict, description="Options of Spark's reader for this format, e.g. `sep` for CSV."
    )
    days: int = Field(1, ge=1, description="Days in the window that ends with the date of the run.")
    where: str | None = Field(
        None, description="A SQL condition on the data as it is read; `{date}` stands for the date of the run."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Source:
        if (self.path is None) == (self.table is None):
            raise ValueError("give either path or table")
        if self.days > 1 and self.path is not None and "{date}" not in self.path:
            raise ValueError("a window of several days needs {date} in path")
        return self


class Inputs(Section):
    """The tables to read; each has its contract in the table reference."""

    rankings: Source | None = Field(
        None, description="The ranked lists to evaluate; without them, the systems of the log are."
    )
    judgments: Source | None = Field(
        None, description="Human labels; without a log, what lists are evaluated by, with one, what outweighs it."
    )
    impressions: Source | None = Field(None, description="The log: what was shown. Labels are made from it.")
    interactions: Source | None = Field(None, description="The log: what was done with it.")
    queries: Source | None = Field(None, description="The queries, with their weights and segment columns.")
    documents: Source | None = Field(None, description="The catalogue, for metrics of diversity and novelty.")
    decisions: Source | None = Field(None, description="Routing and gating decisions, for the metrics of them.")

    @model_validator(mode="after")
    def _whole_log(self) -> Inputs:
        if (self.impressions is None) != (self.interactions is None):
            raise ValueError("a log needs both impressions and interactions")
        return self


class Span(Section):
    """Days, the last one included."""

    first: dt.date = Field(description="The first day.")
    last: dt.date = Field(description="The last day.")

    @model_validator(mode="after")
    def _forward(self) -> Span:
        if self.last < self.first:
            raise ValueError(f"last, {self.last}, lies before first, {self.first}")
        return self


class Spark(Section):
    """The Spark session."""

    master: str | None = Field(
        None, description="Where to run; `local[*]` where neither this nor spark-submit says otherwise."
    )
    settings: dict[str, str] = Field(
        default_factory=dict, description="Spark settings, used where spark-submit does not say otherwise."
    )

    @field_validator("settings", mode="before")
    @classmethod
    def _as_text(cls, settings: Any) -> Any:
        """Spark takes text: YAML's `true` and `8` are written as Spark spells them."""
        if not isinstance(settings, dict):
            return settings
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in settings.items()}


SegmentColumns = Annotated[tuple[str, ...], Field(min_length=1)]


class Config(Section):
    """Everything that a run can be told."""

    inputs: Inputs = Field(description="What to read.")
    metrics: tuple[MetricName, ...] = Field(
        ("ndcg@10", "recall@10"), min_length=1, description="What to compute, as `name(parameters)@k`."
    )
    segments: tuple[SegmentColumns, ...] = Field(
        (),
        description="Columns of `queries` to report by, or `traffic_band` and `relevant_band`; a list inside the list "
        "is a combination.",
    )
    bands: Bands = Field(Bands(), description="Where bands end.")
    statistics: Statistics = Field(Statistics(), description="How certain a number is.")
    compare: Compare = Field(Compare(), description="Which systems are compared.")
    gate: tuple[Condition, ...] = Field((), description="The conditions of release, each a section of its own.")
    earlier: str | None = Field(
        None,
        description="The system whose lists retention, rbo and rank_tau compare the others with; the baseline where "
        "not set.",
    )
    conventions: Conventions = Field(
        Conventions(),
        description="What a number means at the edges.",
    )
    labels: LabelConfig = Field(LabelConfig(), description="How a log becomes labels.")
    trained: dict[str, Span] = Field(
        default_factory=dict,
        description="System → the days whose clicks it learned from. On labels of the same days it gains what it does "
        "not deserve; a comparison says so, also where this is not known.",
    )
    labels_of: str | None = Field(
        None,
        description="A date or a run whose published labels are used; no log and no judgments are read then.",
    )
    warehouse: str = Field("warehouse", description="Where results are published: a folder or a URI.")
    max_rejected: float = Field(
        0.05, ge=0, le=1, description="Largest share of an input's rows that may be unusable before the run stops."
    )
    checks: Mode = Field(
        "full",
        description="Which checks of the data are made: all; `fast`, those that need no shuffle and none of the "
        "results; or none.",
    )
    quality: QualitySettings = Field(QualitySettings(), description="How strict each check of the data is.")
    report: bool = Field(True, description="Whether an HTML report is written beside each run.")
    tracking: Tracking = Field(Tracking(), description="Logging runs to MLflow.")
    prometheus: Prometheus = Field(Prometheus(), description="Figures of the last run for Prometheus.")
    spark: Spark = Field(Spark(), description="The Spark session.")

    @field_validator("checks", mode="before")
    @classmethod
    def _off(cls, mode: Any) -> Any:
        """YAML takes a plain `off` for false."""
        return "off" if mode is False else mode

    @field_validator("metrics")
    @classmethod
    def _once(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for place, name in enumerate(metrics) if name in metrics[:place]]
        if twice:
            raise ValueError(f"{twice[0]} is listed twice")
        return metrics

    @field_validator("segments", mode="before")
    @classmethod
    def _as_columns(cls, segments: Any) -> Any:
        if isinstance(segments, str):
            return ((segments,),)
        return tuple((s,) if isinstance(s, str) else s for s in segments) if isinstance(segments, list) else segments

    @field_validator("segments")
    @classmethod
    def _names_of_columns(cls, segments: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        for column in (column for segment in segments for column in segment):
            _column(column, "segment")
        return segments

    @model_validator(mode="after")
    def _segments_have_a_table(self) -> Config:
        if self.segment_columns and self.inputs.queries is None:
            raise ValueError("segments need inputs.queries, whose columns they are")
        if self.statistics.cluster is not None:
            _column(self.statistics.cluster, "cluster")
            if self.inputs.queries is None:
                raise ValueError("statistics.cluster needs inputs.queries, whose column it is")
        return self

    @model_validator(mode="after")
    def _gate_can_be_judged(self) -> Config:
        segments = [EVERYTHING, *[BETWEEN.join(columns) for columns in self.segments]]
        for place, condition in enumerate(self.gate):
            at = f"gate[{place}]"
            if condition.metric not in self.metrics:
                raise ValueError(
                    f"{at} is about {condition.metric!r}, which is not computed: add it to metrics, or "
                    f"{did_you_mean(condition.metric, self.metrics)}"
                )
            if parse(condition.metric).metric.scope == "system":
                raise ValueError(f"{at} is about {condition.metric!r}, which has no value per query to be certain of")
            if condition.min_judged is not None and parse(condition.metric).k is None:
                raise ValueError(
                    f"{at} has min_judged, but {condition.metric!r} has no cut-off to count judged documents within: "
                    f"write {condition.metric}@10, or another k"
                )
            if condition.segment not in segments:
                raise ValueError(
                    f"{at} is about the segment {condition.segment!r}, which is not reported: add it to segments, or "
                    f"{did_you_mean(condition.segment, segments)}"
                )
            if not condition.absolute and self.compare.baseline is None:
                raise ValueError(f"{at} compares with a baseline: name it in compare.baseline")
            if not condition.absolute and condition.candidate == self.compare.baseline:
                raise ValueError(f"{at} compares {condition.candidate!r} with itself: name another candidate")
        return self

    @property
    def behaviour(self) -> bool:
        """Whether labels come from a log, which has holes where a document was never shown."""
        return self.labels_of is not None or self.inputs.impressions is not None

    @property
    def other(self) -> str | None:
        """The system whose lists those of the others are held against."""
        return self.earlier or self.compare.baseline

    @property
    def min_judged(self) -> float | None:
        """The share of a top k that must be judged for the query to count."""
        if self.compare.min_judged != "auto":
            return self.compare.min_judged
        return MIN_JUDGED if self.behaviour and self.conventions.unjudged in ("auto", "cut_then_condense") else None

    def judged_key(self, spec: Spec) -> str | None:
        """The column that says how much of the top k of this metric is judged; none for that column itself."""
        if spec.metric.name == JUDGED:
            return None
        found = [other.key for other in self.specs if other.metric.name == JUDGED and other.k == spec.k]
        return found[0] if found else None

    @model_validator(mode="after")
    def _metrics_have_what_they_need(self) -> Config:
        for spec in self.specs:
            for need in spec.metric.needs:
                where = "earlier" if need == "earlier" else f"inputs.{need}"
                if (self.other if need == "earlier" else getattr(self.inputs, need)) is None:
                    raise ValueError(f"the metric {spec.name} needs {where}, which is not set")
        return self

    @model_validator(mode="after")
    def _something_to_judge_by(self) -> Config:
        given = self.inputs
        if self.labels_of is not None and given.rankings is None:
            raise ValueError("labels_of needs inputs.rankings, the lists to evaluate")
        if self.labels_of is None and given.impressions is None and (given.rankings is None or given.judgments is None):
            raise ValueError("inputs needs rankings and judgments, or a log: impressions and interactions")
        if self.compare.goal is not None and not self.behaviour:
            raise ValueError("compare.goal needs labels made from behaviour: a log, or labels_of")
        how = self.labels.grade
        if self.statistics.label_draws and self.behaviour and (how.objective != "click" or how.scale == "quantiles"):
            raise ValueError(
                "statistics.label_draws draws grades by the lift of clicks: set labels.grade.objective to click, and "
                "labels.grade.scale to cuts or lift"
            )
        return self

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The metrics, and judged@k beside those that count only where enough is judged."""
        asked = parse_all(self.metrics)
        bounded = [spec for spec in asked if self.min_judged is not None and spec.metric.scope == "list"]
        bounded += [parse(condition.metric) for condition in self.gate if condition.min_judged is not None]
        judged = [f"{JUDGED}@{spec.k}" for spec in bounded if spec.k is not None]
        return parse_all(dict.fromkeys([*self.metrics, *judged]))

    @property
    def segment_columns(self) -> tuple[str, ...]:
        """Every column of `queries` that some segment uses, once."""
        named = [column for segment in self.segments for column in segment if column not in BANDS]
        return tuple(dict.fromkeys(named))

    @property
    def query_columns(self) -> tuple[str, ...]:
        """Every column of `queries` that travels with a query's results, once."""
        cluster = self.statistics.cluster
        return tuple(dict.fromkeys([*self.segment_columns, *([cluster] if cluster else [])]))

    def sources(self) -> dict[str, Source]:
        """The inputs that are configured, by the name of their contract."""
        given = {name: getattr(self.inputs, name, None) for name in INPUTS}
        unread = ("impressions", "interactions", "judgments") if self.labels_of is not None else ()
        return {name: source for name, source in given.items() if source is not None and name not in unread}

    def only_log(self) -> Config:
        """This configuration with nothing to read but the log and the judgments that correct it."""
        kept = {"impressions", "interactions", "judgments"}
        inputs = self.inputs.model_copy(update={name: None for name in Inputs.model_fields if name not in kept})
        nothing = {"segments": (), "earlier": None, "compare": Compare(), "gate": ()}
        return self.model_copy(update={"inputs": inputs} | nothing)

    def settings(self) -> dict[str, Any]:
        """What decides the numbers: everything but where the work is done and where results go."""
        return self.model_dump(mode="json", exclude={"spark", "warehouse", "report", "tracking", "prometheus"})

    def published(self) -> dict[str, Any]:
        """All of it, as it may be shown and stored: without secrets."""
        return {key: _redacted(value) for key, value in self.model_dump(mode="json").items()}


JUDGED = "judged"
MIN_JUDGED = 0.7  # of a top k: below it, what is missing can outweigh what is known


def _column(name: str, kind: str) -> None:
    """Refuse a name that cannot be a column of the results."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(
            f"the {kind} {name!r} cannot name a column of the results: use letters, digits and "
            "underscores, and give the name in the data with inputs.queries.columns"
        )
    if name.lower() in QUERY_METRICS.names:
        raise ValueError(f"the {kind} {name!r} has the name of a column that query_metrics has already")


_SECRET = re.compile(r"password|passwd|secret|token|credential|access.?key|account.?key|sas", re.IGNORECASE)

# What stands before the @ of an address, and the values of signatures and tokens in its query.
_IN_ADDRESS = re.compile(r"(?i)(://(?=[^/@\s]+@)|[?&](?:sig|signature|token|password|secret)=)[^@&\s]+")


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "(hidden)" if _SECRET.search(k) and v else _redacted(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return _IN_ADDRESS.sub(r"\1(hidden)", value) if isinstance(value, str) else value
