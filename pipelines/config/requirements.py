"""What the sections of a configuration require of each other; each function raises `ValueError` with the fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelines.comparison.settings import PAGE, GateCondition, strip_page
from pipelines.inputs.format_registry import FORMATS
from schemas.errors import did_you_mean
from schemas.outputs import QUERY_METRICS
from udfs.registry import POOL, parse_metric
from udfs.statistics.plan import BETWEEN, EVERYTHING
from udfs.tabulate import DRAWS

if TYPE_CHECKING:
    from pipelines.config.model import Config

# Names with a meaning of their own in the published tables: the segment of all queries, the partition columns, draws.
RESERVED = (EVERYTHING, "dt", "run", DRAWS)


def check_requirements(config: Config) -> None:
    """Check that the sections fit together."""
    _check_query_columns(config)
    _check_gate(config)
    _check_metric_inputs(config)
    _check_label_source(config)
    _check_label_draws(config)
    _check_opinions(config)
    _check_incremental(config)


def find_missing_posterior(config: Config) -> str | None:
    """What labels need for a posterior and do not have; None where they have one."""
    grade = config.labels.grade
    if config.labels_of is not None or config.inputs.impressions is None:
        return "labels that the run makes from a log: inputs.impressions and inputs.interactions, without labels_of"
    if grade.objective != "click" or grade.scale != "cuts":
        return "grades by the lift of clicks: labels.grade.objective click and labels.grade.scale cuts"
    return None


def check_column_name(name: str, kind: str) -> None:
    """Refuse a name that cannot be a column of the results."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(
            f"the {kind} {name!r} cannot name a column of the results: use letters, digits and "
            "underscores, and map it to the name in the data with inputs.queries.columns"
        )
    if name.lower() in QUERY_METRICS.names:
        raise ValueError(f"the {kind} {name!r} has the name of a column that query_metrics has already")
    if name.lower() in RESERVED:
        raise ValueError(
            f"the {kind} {name!r} is a reserved name ({', '.join(RESERVED)}): map another name to the column in the "
            "data with inputs.queries.columns"
        )


def _check_query_columns(config: Config) -> None:
    _check_segment_names(config)
    segments = (*config.segment_columns, *config.page_columns)
    for kind, names in (("segment", segments), ("cluster", (config.statistics.cluster,))):
        for spec in config.specs:
            taken = {spec.key.lower(), f"{spec.key}{POOL}".lower()}
            clash = next((name for name in names if name is not None and name.lower() in taken), None)
            if clash is not None:
                raise ValueError(
                    f"the {kind} {clash!r} has the name of the column of the metric {spec.name}: map another name to "
                    "the column in the data with inputs.queries.columns"
                )
    if config.segment_columns and config.inputs.queries is None:
        log = config.inputs.impressions is not None
        hint = f", or write {PAGE}{config.segment_columns[0]} for a column of the log" if log else ""
        raise ValueError(f"segments need inputs.queries, which has their columns{hint}")
    if config.page_segments and (config.inputs.impressions is None or config.labels_of is not None):
        raise ValueError(f"the segment {BETWEEN.join(config.page_segments[0])} needs inputs.impressions, a log")
    if config.statistics.cluster is not None:
        check_column_name(config.statistics.cluster, "cluster")
        if config.inputs.queries is None:
            raise ValueError("statistics.cluster needs inputs.queries, which has its column")


def _check_segment_names(config: Config) -> None:
    """Refuse what would give two columns or two segments one name; Spark ignores the case of names."""
    names: dict[str, str] = {}
    for column in (*config.query_columns, *config.page_columns):
        if column in config.page_columns and column in config.query_columns:
            raise ValueError(f"{column!r} is a segment of the log and of queries: map another name to one of them")
        if names.setdefault(column.lower(), column) != column:
            raise ValueError(f"{names[column.lower()]!r} and {column!r} differ in case only: use one of them")
    for index, segment in enumerate(config.segments):
        if len(set(segment)) < len(segment):
            raise ValueError(f"segments[{index}] combines a column with itself: {BETWEEN.join(segment)}")
        if segment in config.segments[:index]:
            raise ValueError(f"segments[{index}] is listed twice: {BETWEEN.join(segment)}")


def _check_gate(config: Config) -> None:
    segments = [EVERYTHING, *[BETWEEN.join(strip_page(columns)) for columns in config.segments]]
    for index, condition in enumerate(config.gate):
        key = f"gate[{index}]"
        _check_gate_metric(config, condition, key)
        if condition.segment not in segments:
            raise ValueError(
                f"{key} is about the segment {condition.segment!r}, which is not reported: add it to segments, or "
                f"{did_you_mean(condition.segment, segments)}"
            )
        if not condition.absolute and config.compare.baseline is None:
            raise ValueError(f"{key} compares with a baseline: set compare.baseline")
        if not condition.absolute and condition.candidate == config.compare.baseline:
            raise ValueError(f"{key} compares {condition.candidate!r} with itself: set another candidate")


def _check_gate_metric(config: Config, condition: GateCondition, key: str) -> None:
    if condition.metric not in config.metrics:
        raise ValueError(
            f"{key} is about {condition.metric!r}, which is not computed: add it to metrics, or "
            f"{did_you_mean(condition.metric, config.metrics)}"
        )
    spec = parse_metric(condition.metric)
    if spec.metric.scope == "system":
        raise ValueError(f"{key} is about {condition.metric!r}, which has no value per query and so no interval")
    if condition.min_judged is not None and spec.k is None:
        raise ValueError(
            f"{key} has min_judged, but {condition.metric!r} has no cutoff to count judged documents within: "
            f"write {condition.metric}@10, or another k"
        )


def _check_metric_inputs(config: Config) -> None:
    for spec in config.specs:
        for need in spec.metric.needs:
            if need == "subtopics":
                if config.inputs.documents is None and (config.inputs.judgments is None or config.behaviour):
                    other = "" if config.behaviour else ", or inputs.judgments with subtopics"
                    raise ValueError(f"the metric {spec.name} needs inputs.documents with category{other}")
                continue
            key = "earlier" if need == "earlier" else f"inputs.{need}"
            if (config.earlier_system if need == "earlier" else getattr(config.inputs, need)) is None:
                raise ValueError(f"the metric {spec.name} needs {key}, which is not set")


def _check_label_source(config: Config) -> None:
    inputs = config.inputs
    if config.labels_of is not None and inputs.rankings is None:
        raise ValueError("labels_of needs inputs.rankings, the lists to evaluate")
    judged = inputs.rankings is not None and inputs.judgments is not None
    if config.labels_of is None and inputs.impressions is None and not judged:
        raise ValueError("inputs needs rankings and judgments, or a log: impressions and interactions")
    if config.compare.goal is not None and not config.behaviour:
        raise ValueError("compare.goal needs labels made from behaviour: a log, or labels_of")


def _check_label_draws(config: Config) -> None:
    missing, draws = find_missing_posterior(config), config.statistics.label_draws
    if config.posterior and missing is not None:
        raise ValueError(f"conventions.unjudged is posterior, which needs {missing}; or use another rule")
    if config.posterior and draws == 0:
        raise ValueError(
            "statistics.label_draws is 0, but a posterior is scored by its draws: set 2 or more, or "
            "conventions.unjudged to cut_then_condense, zero or condense, which take labels as true"
        )
    if draws and config.behaviour and not config.posterior:
        raise ValueError(
            f"statistics.label_draws is {draws}, but labels from behaviour are drawn with conventions.unjudged: "
            f"posterior only{'' if missing is None else f', which needs {missing}'}"
        )


def _check_opinions(config: Config) -> None:
    if config.labels.opinions is not None and config.inputs.opinions is None:
        raise ValueError("labels.opinions names columns of inputs.opinions, which is not set")
    missing = find_missing_posterior(config)
    if config.inputs.opinions is not None and not config.posterior:
        need = "conventions.unjudged posterior" if missing is None else missing
        raise ValueError(f"inputs.opinions are weighed by the clicks of a log in a posterior, which needs {need}")


def _check_incremental(config: Config) -> None:
    """Refuse incremental labels of a log whose days cannot be read one by one."""
    if not config.labels.incremental:
        return
    impressions, interactions = config.inputs.impressions, config.inputs.interactions
    if impressions is None or interactions is None or config.labels_of is not None:
        raise ValueError(
            "labels.incremental needs a log, inputs.impressions and inputs.interactions, without labels_of"
        )
    for name, source in {"impressions": impressions, "interactions": interactions}.items():
        where = f"labels.incremental reads inputs.{name} day by day"
        if not source.paths or not all("{date}" in path for path in source.paths):
            raise ValueError(f"{where}, which needs a path with {{date}}, not a table or view")
        if FORMATS[source.format].readers is not None:
            raise ValueError(f"{where}, but the format {source.format} reads whole logs: use parquet, csv or json")
        if "{date}" in (source.where or ""):
            raise ValueError(f"{where}, so its where cannot have {{date}}, the date of the run")
    if impressions.days != interactions.days or impressions.days == 1:
        raise ValueError(
            "labels.incremental needs a window of several days, the same for impressions and interactions: set "
            f"inputs.impressions.days ({impressions.days}) and inputs.interactions.days ({interactions.days})"
        )
