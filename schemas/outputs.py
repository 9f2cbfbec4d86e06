"""The tables that Assay publishes. Each also carries `dt` and `run`, its partition columns."""

from schemas.inputs import DOC_ID, QUERY_ID, SYSTEM
from schemas.table import Column, Table


def _bounds(name: str) -> tuple[Column, Column]:
    """The two ends of an interval."""
    low = Column(f"{name}_low", "double", f"lower end of the interval of {name}", nullable=True)
    return low, Column(f"{name}_high", "double", "upper end", nullable=True)


METRIC = Column("metric", "string", "the metric's key", pattern=r"[A-Za-z]\w*")

QUERY_METRICS = Table(
    "query_metrics",
    "one system and query; one more column per metric and segment",
    (
        SYSTEM,
        QUERY_ID,
        Column("weight", "double", "traffic of the query"),
        Column("retrieved", "int", "documents in the list, duplicates removed"),
        Column("duplicates", "int", "documents that stood in the list before"),
        Column("tied", "int", "documents at the same place as the one before"),
        Column("labelled", "int", "labels that the query has"),
        Column("relevant", "int", "relevant documents that the query has"),
        Column("judged", "int", "documents of the list that have a label"),
    ),
    key=("system", "query_id"),
)

SEGMENT_METRICS = Table(
    "segment_metrics",
    "one system, segment and metric",
    (
        SYSTEM,
        Column("segment", "string", "the columns that cut the segment; `all` for everything"),
        Column("value", "string", "the segment's value in those columns"),
        METRIC,
        Column("macro", "double", "mean over the queries where it is defined", nullable=True),
        *_bounds("macro"),
        Column("weighted", "double", "the same, weighted by traffic", nullable=True),
        *_bounds("weighted"),
        Column("micro", "double", "the ratio over all queries together, for metrics that are ratios", nullable=True),
        *_bounds("micro"),
        Column("stddev", "double", "standard deviation over queries", nullable=True),
        Column("queries", "bigint", "queries in the mean"),
        Column(
            "skipped",
            "bigint",
            "queries left out: the metric is undefined, or too little of the list is judged",
        ),
    ),
    key=("system", "segment", "value", "metric"),
)

BASELINE = Column("baseline", "string", "the system that is compared with")
CANDIDATE = Column("candidate", "string", "the system that is compared")

COMPARISONS = Table(
    "comparisons",
    "one pair of systems, segment and metric, paired by query",
    (
        BASELINE,
        CANDIDATE,
        Column("segment", "string", "the columns that cut the segment; `all` for everything"),
        Column("value", "string", "the segment's value in those columns"),
        METRIC,
        Column("baseline_mean", "double", "mean of the baseline over the queries compared", nullable=True),
        Column("candidate_mean", "double", "mean of the candidate over the same queries", nullable=True),
        Column("delta", "double", "candidate_mean − baseline_mean", nullable=True),
        *_bounds("delta"),
        Column("stderr", "double", "standard error of delta", nullable=True),
        Column("degrees", "double", "degrees of freedom of its t interval", nullable=True),
        Column("weighted_delta", "double", "mean difference weighted by traffic", nullable=True),
        Column("relative", "double", "delta / baseline_mean", nullable=True),
        Column("relative_stderr", "double", "standard error of relative, linearised", nullable=True),
        Column("p_value", "double", "paired t test", nullable=True),
        Column("p_randomisation", "double", "sign-flip test, where asked for", nullable=True),
        Column("p_bootstrap", "double", "bootstrap test, where asked for", nullable=True),
        Column("p_adjusted", "double", "p_value adjusted for its family; null outside of it", nullable=True),
        Column("significant", "boolean", "p_adjusted is below 1 − confidence; null outside the family", nullable=True),
        Column("effect_size", "double", "delta / standard deviation of the differences", nullable=True),
        Column("wins", "bigint", "queries where the candidate is better"),
        Column("ties", "bigint", "queries where both are equal, to 1e-9"),
        Column("losses", "bigint", "queries where the candidate is worse"),
        Column("queries", "bigint", "queries compared"),
        Column("unjudged", "bigint", "queries left out because too little of a list is judged"),
        Column("kept_traffic", "double", "share of the traffic of both systems that was compared", nullable=True),
        Column("detectable_delta", "double", "smallest true difference found with 80 % power", nullable=True),
        Column("gate", "string", "verdict of the gate on this row: pass, fail or undecidable", nullable=True),
    ),
    key=("baseline", "candidate", "segment", "value", "metric"),
)

SENSITIVITY = Table(
    "sensitivity",
    "one pair of systems and metric over all queries, by one way to count unjudged documents",
    (
        BASELINE,
        CANDIDATE,
        METRIC,
        Column(
            "unjudged",
            "string",
            "how they are counted: `cut_then_condense` is the run's own rule; the others stand beside it",
            choices=("cut_then_condense", "zero", "condense"),
        ),
        Column("baseline_mean", "double", "mean of the baseline over the queries compared", nullable=True),
        Column("candidate_mean", "double", "mean of the candidate over the same queries", nullable=True),
        Column("delta", "double", "candidate_mean − baseline_mean", nullable=True),
        *_bounds("delta"),
        Column("p_value", "double", "paired t test", nullable=True),
        Column("queries", "bigint", "queries compared"),
        Column("kept_traffic", "double", "share of the traffic of both systems that was compared", nullable=True),
        Column("gate", "string", "what the gate says of it over all queries", nullable=True),
    ),
    key=("baseline", "candidate", "metric", "unjudged"),
)

QUERY_CHANGES = Table(
    "query_changes",
    "one of the queries that gained or lost most between two systems",
    (
        BASELINE,
        CANDIDATE,
        METRIC,
        Column("direction", "string", "which way it went", choices=("gain", "loss")),
        Column("place", "int", "1 for the largest"),
        QUERY_ID,
        Column("weight", "double", "traffic of the query"),
        Column("baseline_value", "double", "the metric for the baseline"),
        Column("candidate_value", "double", "the metric for the candidate"),
        Column("delta", "double", "candidate_value − baseline_value"),
        Column(
            "moved", "string", "the documents that moved, best grade first: doc_id (grade) from → to", nullable=True
        ),
        Column("baseline_top", "string", "the top of the baseline's list, as JSON: doc_id and grade", nullable=True),
        Column("candidate_top", "string", "the same of the candidate's list", nullable=True),
    ),
    key=("baseline", "candidate", "metric", "direction", "place"),
)

QUARANTINE = Table(
    "quarantine",
    "one input row that could not be used",
    (
        Column("table", "string", "the input"),
        Column("reason", "string", "the column and what was wrong with it"),
        Column("row", "string", "the row as it was read, as JSON"),
    ),
)

LABELS = Table(
    "labels",
    "one query–document label",
    (
        QUERY_ID,
        DOC_ID,
        Column("grade", "int", "0–3; null where there is too little evidence", nullable=True, minimum=0, maximum=3),
        Column("relevance", "double", "clicks per examination, shrunk to the query's rate", nullable=True, minimum=0),
        Column("relevance_low", "double", "5 % bound of the relevance", nullable=True, minimum=0),
        Column("relevance_high", "double", "95 % bound of the relevance", nullable=True, minimum=0),
        Column("impressions", "bigint", "times that the pair was shown", minimum=0),
        Column("examinations", "double", "impressions, each counted by the chance that it was looked at", minimum=0),
        Column("clicks", "bigint", "clicks that count", minimum=0),
        Column("carts", "bigint", "carts that count", minimum=0),
        Column("purchases", "bigint", "purchases that count", minimum=0),
        Column("users", "bigint", "people who were shown the pair", minimum=0),
        Column("positions", "int", "different positions at which it was shown", minimum=0),
        Column("lift_click", "double", "relevance over the query's rate", nullable=True, minimum=0),
        Column("lift_cart", "double", "the same for carts", nullable=True, minimum=0),
        Column("lift_purchase", "double", "the same for purchases", nullable=True, minimum=0),
        Column("ctr", "double", "clicks per impression, uncorrected, for contrast", nullable=True, minimum=0),
        Column("source", "string", "who says so", choices=("behaviour", "human")),
        Column("reason", "string", "what decided the grade"),
    ),
    key=("query_id", "doc_id"),
)

PROPENSITIES = Table(
    "propensities",
    "one context and position",
    (
        Column("context", "string", "the context columns and their values; `all` for the pooled curve"),
        Column("position", "int", "the slot on the page, counted from 1", minimum=1),
        Column("propensity", "double", "the chance of being looked at, relative to position 1", minimum=0),
        Column("low", "double", "2.5 % bound", nullable=True),
        Column("high", "double", "97.5 % bound", nullable=True),
        Column("impressions", "bigint", "impressions at the position", minimum=0),
        Column("clicks", "bigint", "clicks at the position", minimum=0),
        Column("estimator", "string", "how it was found; `assumed` where the log could not say"),
    ),
    key=("context", "position"),
)

DENOISE_FUNNEL = Table(
    "denoise_funnel",
    "one denoise rule",
    (
        Column("rule", "string", "the rule"),
        Column("impressions_dropped", "bigint", "impressions that failed it", minimum=0),
        Column("clicks_dropped", "bigint", "clicks that failed it", minimum=0),
        Column("carts_dropped", "bigint", "carts that failed it", minimum=0),
        Column("purchases_dropped", "bigint", "purchases that failed it", minimum=0),
        Column("users_touched", "bigint", "users with a row that failed it", minimum=0),
        Column("only_this_rule", "bigint", "rows that failed no other rule", minimum=0),
    ),
    key=("rule",),
)

VALIDATION_RESULTS = Table(
    "validation_results",
    "one check of one table, or of one of its columns",
    (
        Column("table", "string", "the table that was looked at"),
        Column("check", "string", "the check, as the page on data quality names it"),
        Column("column", "string", "the column; null where the check is about the whole table", nullable=True),
        Column("severity", "string", "what a failure does: stop the run, or warn", choices=("error", "warn")),
        Column("passed", "boolean", "whether the data is as it should be"),
        Column("rows", "bigint", "rows that were looked at", nullable=True, minimum=0),
        Column("failed_rows", "bigint", "rows that failed", nullable=True, minimum=0),
        Column("observed", "string", "what was found", nullable=True),
        Column("allowed", "string", "what is allowed", nullable=True),
        Column("sample", "array<string>", "up to three of the values or rows that failed"),
        Column("reason", "string", "why the check exists"),
        Column("advice", "string", "what to do when it fails"),
    ),
)

OUTPUTS = {
    table.name: table
    for table in (
        QUERY_METRICS,
        SEGMENT_METRICS,
        COMPARISONS,
        SENSITIVITY,
        QUERY_CHANGES,
        LABELS,
        PROPENSITIES,
        DENOISE_FUNNEL,
        QUARANTINE,
        VALIDATION_RESULTS,
    )
}
