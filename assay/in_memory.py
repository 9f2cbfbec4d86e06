"""An evaluation of judged tables in memory, without a JVM.

The steps of `pipelines.evaluate` on Arrow tables: the same contracts, kernels, partial sums, p-values, gate and
readings, called directly instead of in Spark workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.comparison.compare import PValueRules, adjust_p_values, build_p_value_rules
from pipelines.comparison.estimate import build_plan
from pipelines.comparison.gate import judge_conditions
from pipelines.comparison.readings.registry import Reading, ReadingContext, collect_readings
from pipelines.comparison.segments import build_excess_error
from pipelines.comparison.settings import BANDS
from pipelines.comparison.verdicts import Verdict, find_worst_verdicts, join_conditions
from pipelines.config.model import Config
from pipelines.inputs.contracts import resolve_contract
from pipelines.inputs.count import RowCount
from pipelines.inputs.in_memory import ConformedArrow, conform_arrow
from pipelines.inputs.validate import ValidatedInputs, require_ranked, require_usable
from pipelines.scoring.require import (
    build_unclean_error,
    build_unjudged_error,
    build_unmatched_error,
    depends_on_grades,
    require_metric_columns,
    require_systems,
    resolve_conventions,
)
from pipelines.scoring.score import build_query_metrics_contract
from schemas.errors import ConfigurationError, InputError
from schemas.outputs import COMPARISONS, SEGMENT_METRICS
from udfs.collect import ListCollection, collect_lists
from udfs.conventions import Conventions
from udfs.multi_list import evaluate_systems
from udfs.ragged import Ragged
from udfs.registry import MetricSpec
from udfs.spark.score import put_smallest_last
from udfs.statistics.counting import CountingRule
from udfs.statistics.finish import finish_estimates
from udfs.statistics.frame import NUMBERS, QUERY, UNIT
from udfs.statistics.partial import partial_sums
from udfs.statistics.plan import BETWEEN, EVERYTHING, Plan
from udfs.tables import TableReader
from udfs.tabulate import tabulate_metrics
from udfs.xxhash import hash_like_spark

_OWN_ROWS = ("queries", "documents", "decisions")
_ABOVE_LIMIT = 1.1  # where Spark, which counts the values of a segment to 5 %, reports too many


@dataclass(frozen=True)
class MemoryRun:
    """The tables of an evaluation in memory, and what its manifest would record."""

    tables: Mapping[str, pa.Table]
    inputs: Mapping[str, pa.Table]  # the rows that fit their contracts
    counts: Mapping[str, RowCount]
    systems: tuple[str, ...]
    conventions: Conventions
    verdicts: tuple[Verdict, ...]
    readings: tuple[Reading, ...]


def evaluate_in_memory(tables: Mapping[str, TableReader], config: Config) -> MemoryRun:
    """Evaluate judged tables; what needs Spark is refused."""
    _refuse_what_needs_spark(config)
    conformed = {
        name: conform_arrow(tables[name], resolve_contract(name, config), source.columns)
        for name, source in config.sources().items()
    }
    for name, table in conformed.items():
        require_usable(name, table.count, config.max_rejected, where=f"inputs.{name}")
    columns = {name: table.rows.column_names for name, table in conformed.items()}
    require_metric_columns(config, columns, from_behaviour=False)
    inputs = _validate(conformed, config)
    conventions = resolve_conventions(config, inputs)
    rows = {name: table.rows for name, table in conformed.items()}
    per_query = [spec for spec in config.specs if spec.metric.scope != "system"]
    collected, queries = _collect(rows, config, per_query, conventions)
    query_metrics = _score(collected, queries, config, per_query, conventions)
    _require_clean_lists(query_metrics, conventions)
    _require_common_queries(query_metrics, rows, inputs.systems, per_query)
    plan = build_plan(config, inputs.systems, per_query)
    limit_values(query_metrics, plan, config.statistics.max_values)
    estimates = estimate_arrow(query_metrics, plan, config.statistics.cluster)
    verdicts = tuple(judge_conditions(estimates.to_pylist(), config, inputs.systems, behaviour=False))
    averages = _select_averages(estimates)
    whole = [spec for spec in config.specs if spec.metric.scope == "system"]
    if whole:
        averages = pa.concat_tables([averages, _score_systems(rows, inputs.systems, whole, conventions)])
    results = {"query_metrics": query_metrics, "segment_metrics": averages}
    readings: tuple[Reading, ...] = ()
    if plan.pairs:
        results["comparisons"] = _compare(estimates, verdicts, config)
        readings = tuple(_read(results, plan, config))
    counts = {name: table.count for name, table in conformed.items()}
    return MemoryRun(results, rows, counts, inputs.systems, conventions, verdicts, readings)


def _refuse_what_needs_spark(config: Config) -> None:
    bands = [column for segment in config.segments for column in segment if column in BANDS]
    needs = {
        "labels from a log": config.behaviour,
        f"the segment {bands[0] if bands else ''}": bool(bands),
        "statistics.label_draws": bool(config.statistics.label_draws),
        "statistics.many_values: other": config.statistics.many_values == "other",
    }
    for what, needed in needs.items():
        if needed:
            raise ConfigurationError(f"{what} cannot be computed in memory", hint="use `assay evaluate`")


def _validate(conformed: Mapping[str, ConformedArrow], config: Config) -> ValidatedInputs:
    """What the stages of a run read of its inputs: systems and the highest grade."""
    judgments = conformed["judgments"].rows
    if "chance" in judgments.column_names and judgments["chance"].null_count < len(judgments):
        problem = "judgments of queries that were drawn with a chance correct a log, and cannot be used in memory"
        raise InputError(problem, hint="use `assay evaluate` with the log, or leave the rows with a chance out")
    systems = tuple(sorted(pc.unique(conformed["rankings"].rows["system"]).to_pylist()))
    require_ranked(config, systems)
    top = pc.max(judgments["grade"]).as_py()
    inputs = ValidatedInputs({}, {}, systems, max_grade=float(top or 0.0), from_behaviour=False)
    require_systems(inputs)
    return inputs


def _collect(
    rows: Mapping[str, pa.Table], config: Config, specs: Sequence[MetricSpec], conventions: Conventions
) -> tuple[ListCollection, pa.Table | None]:
    """The lists and labels of every query, and the rows of `queries` in the order that the lists refer to."""
    needs = {need for spec in specs for need in spec.metric.needs}
    needs |= {"queries", *(["documents"] if "subtopics" in needs else [])}
    own = {name: rows[name] for name in _OWN_ROWS if name in rows and name in needs}
    if "queries" in own:
        columns = [
            name for name in ("query_id", "weight", *config.query_columns) if name in own["queries"].column_names
        ]
        own["queries"] = put_smallest_last(own["queries"].select(columns), ["query_id"])
    if "decisions" in own:
        own["decisions"] = put_smallest_last(own["decisions"], ["system", "query_id"])
    if "documents" in own:
        own["documents"] = _merge_rows(own["documents"], ["doc_id"], "category", "popularity")
    readers = {name: TableReader(table, name) for name, table in own.items()}
    labels = _select_labels(rows["judgments"], with_subtopics="subtopics" in needs)
    collected = collect_lists(
        TableReader(rows["rankings"], "rankings"),
        TableReader(labels, "judgments"),
        queries=readers.get("queries"),
        documents=readers.get("documents"),
        decisions=readers.get("decisions"),
        conventions=conventions,
    )
    return collected, own.get("queries")


def _merge_rows(table: pa.Table, keys: Sequence[str], texts: str, number: str) -> pa.Table:
    """One row for rows with equal keys: all their texts, and the largest number."""
    rows = table.sort_by([(name, "ascending") for name in keys])
    columns = [rows[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in keys]
    copies = Ragged.of_sorted(*columns)
    if copies.size == len(table):
        return table
    merged: dict[str, Any] = {name: rows[name].take(pa.array(copies.offsets[:-1])) for name in keys}
    if texts in rows.column_names:
        lengths = pc.fill_null(pc.list_value_length(rows[texts]), 0).to_numpy()
        borders = Ragged.of_lengths(copies.sums(lengths)).offsets
        merged[texts] = pa.LargeListArray.from_arrays(borders, pc.list_flatten(rows[texts]).combine_chunks())
    if number in rows.column_names:
        merged[number] = pa.array(copies.reduce(np.fmax, rows[number].to_numpy()), from_pandas=True)
    return pa.table(merged)


def _select_labels(judgments: pa.Table, *, with_subtopics: bool) -> pa.Table:
    """The grades of judged documents, and the subtopics that they are relevant to."""
    labels = judgments.select(["query_id", "doc_id", "grade"])
    if not with_subtopics or "subtopics" not in judgments.column_names:
        return labels
    relevant = pc.greater(judgments["grade"], 0.0)
    subtopics = pc.if_else(relevant, judgments["subtopics"], pa.scalar(None, judgments["subtopics"].type))
    return _merge_rows(labels.append_column("subtopics", subtopics), ["query_id", "doc_id"], "subtopics", "grade")


def _score(
    collected: ListCollection,
    queries: pa.Table | None,
    config: Config,
    specs: Sequence[MetricSpec],
    conventions: Conventions,
) -> pa.Table:
    """One row per system and query, in the columns of the contract."""
    needs = {need for spec in specs for need in spec.metric.needs}
    earlier = collected.systems.to_pylist().index(config.earlier_system) if "earlier" in needs else None
    columns = tabulate_metrics(collected, specs, conventions, earlier=earlier, pooled=True)
    if queries is not None:
        row = collected.query_row[collected.query]
        columns |= dict(_take_columns(queries, config.query_columns, row))
    columns["counted"] = (config.counting or CountingRule("")).mark(columns)
    contract = build_query_metrics_contract(config.query_columns, specs)
    table = pa.table({name: columns[name] for name in contract.names})
    texts = [field.name for field in table.schema if field.type == pa.large_string()]
    return table.cast(pa.schema([(f.name, pa.string() if f.name in texts else f.type) for f in table.schema]))


def _take_columns(table: pa.Table, names: Sequence[str], row: Any) -> Iterator[tuple[str, pa.ChunkedArray]]:
    at = pa.array(row, mask=row < 0)
    yield from ((name, table[name].take(at)) for name in names)


def _require_clean_lists(query_metrics: pa.Table, conventions: Conventions) -> None:
    for column, convention in {"tied": "ties", "duplicates": "duplicates"}.items():
        if getattr(conventions, convention) == "error":
            lists = query_metrics.filter(pc.field(column) > 0).select(["system", "query_id"])
            if len(lists):
                first = lists.sort_by([("system", "ascending"), ("query_id", "ascending")]).slice(0, 1).to_pylist()[0]
                raise build_unclean_error(column, convention, len(lists), first["system"], first["query_id"])


def _require_common_queries(
    query_metrics: pa.Table, rows: Mapping[str, pa.Table], systems: Sequence[str], specs: Sequence[MetricSpec]
) -> None:
    if all(spec.metric.defined == "always" for spec in specs):
        return
    ranked, labelled = (pc.greater(query_metrics[name], 0) for name in ("retrieved", "labelled"))
    matched = pc.unique(query_metrics["system"].filter(pc.and_(ranked, labelled))).to_pylist()
    unmatched = [system for system in systems if system not in matched]
    if unmatched:
        of_first = pc.equal(query_metrics["system"], unmatched[0])
        smallest = [
            pc.min(query_metrics["query_id"].filter(pc.and_(of_first, mask))).as_py() for mask in (ranked, labelled)
        ]
        raise build_unmatched_error(unmatched, *smallest)
    if depends_on_grades(specs) and not pc.any(pc.greater(query_metrics["judged"], 0)).as_py():
        raise build_unjudged_error(*[pc.min(rows[name]["doc_id"]).as_py() for name in ("rankings", "judgments")])


def limit_values(query_metrics: pa.Table, plan: Plan, limit: int) -> None:
    """Refuse a segment with more than `limit` values."""
    for names in plan.segments:
        values = query_metrics.group_by(list(names)).aggregate([]).num_rows
        if values > _ABOVE_LIMIT * limit:
            raise build_excess_error(BETWEEN.join(names), values, limit, "", combined=len(names) > 1)


def estimate_arrow(query_metrics: pa.Table, plan: Plan, cluster: str | None = None) -> pa.Table:
    """The estimates of every system and pair in every segment: `estimate_metrics` in this process."""
    query = _hash_column(query_metrics["query_id"])
    columns: dict[str, Any] = {QUERY: query}
    if cluster:  # a query without a cluster is one of its own
        values = query_metrics[cluster]
        alone = values.is_null().to_numpy()
        columns[UNIT] = np.where(alone, query, _hash_column(values.fill_null("")))
    columns |= {name: query_metrics[name] for name in ("system", "weight", *plan.columns)}
    numbers = [query_metrics[name].cast(pa.float64()).to_numpy() for name in plan.numbers]
    ends = np.arange(len(query) + 1, dtype=np.int64) * len(numbers)
    columns[NUMBERS] = pa.LargeListArray.from_arrays(ends, pa.array(np.stack(numbers, axis=1).ravel()))
    rows = pa.table(columns).to_batches()
    return pa.Table.from_batches(list(finish_estimates(plan)(partial_sums(plan, whole=True)(rows))))


def _hash_column(texts: pa.ChunkedArray) -> Any:
    return hash_like_spark(texts.cast(pa.large_string()).combine_chunks())


def _select_averages(estimates: pa.Table) -> pa.Table:
    averages = estimates.filter(pc.field("baseline").is_null()).drop_columns(["baseline"])
    return averages.rename_columns({"candidate": "system"}).select(SEGMENT_METRICS.names)


def _score_systems(
    rows: Mapping[str, pa.Table], systems: Sequence[str], specs: Sequence[MetricSpec], conventions: Conventions
) -> pa.Table:
    """The rows of `segment_metrics` of metrics with one value per system."""
    rankings = rows["rankings"]
    scored = evaluate_systems(rankings, rows["documents"], [spec.name for spec in specs], conventions=conventions)
    lists = rankings.group_by("system").aggregate([("query_id", "count_distinct")]).to_pydict()
    counts = dict(zip(lists["system"], lists["query_id_count_distinct"], strict=True))
    values = {row["system"]: row for row in scored.to_pylist()}
    everything = {"segment": EVERYTHING, "value": EVERYTHING, "skipped": 0}
    averages = [
        everything
        | {
            "system": system,
            "metric": spec.key,
            "metric_name": spec.name,
            "macro": values[system][spec.key],
            "queries": counts[system],
        }
        for system in systems
        for spec in specs
    ]
    kinds = {"string": pa.string(), "double": pa.float64(), "bigint": pa.int64()}
    return pa.Table.from_pylist(averages, pa.schema([(c.name, kinds[c.type]) for c in SEGMENT_METRICS.columns]))


def compare_arrow(estimates: pa.Table, rules: PValueRules) -> pa.Table:
    """The estimates of pairs with adjusted p-values: `compare_systems` in this process."""
    pairs = estimates.filter(pc.field("baseline").is_valid())
    return pa.Table.from_batches(list(adjust_p_values(rules)(pairs.to_batches())))


def _compare(estimates: pa.Table, verdicts: Sequence[Verdict], config: Config) -> pa.Table:
    """The estimates of pairs as `comparisons`, with the gate's verdicts and conditions."""
    adjusted = compare_arrow(estimates, build_p_value_rules(config))
    keys = zip(*[adjusted[name].to_pylist() for name in ("candidate", "segment", "value", "metric")], strict=True)
    pairs_and_keys = zip(adjusted["baseline"].to_pylist(), keys, strict=True)
    judged = [key if baseline == config.compare.baseline else None for baseline, key in pairs_and_keys]
    for name, texts in {"gate": find_worst_verdicts(verdicts), "condition": join_conditions(verdicts)}.items():
        column = [None if key is None else texts.get(key) for key in judged]
        adjusted = adjusted.append_column(name, pa.array(column, pa.string()))
    return adjusted.select(COMPARISONS.names)


def _read(results: Mapping[str, pa.Table], plan: Plan, config: Config) -> Iterator[Reading]:
    """The readings of the comparisons; those about single queries need the movers of a run on Spark."""
    shown = [EVERYTHING, *[columns[0] for columns in plan.segments if len(columns) == 1]]
    comparisons = results["comparisons"].filter(pc.field("segment").isin(shown)).to_pylist()
    relevant = pc.mean(results["query_metrics"]["relevant"].filter(pc.greater(results["query_metrics"]["relevant"], 0)))
    context = ReadingContext(
        comparisons=comparisons, changes=(), relevant=relevant.as_py() or 0.0, behaviour=False, config=config
    )
    return collect_readings(context)
