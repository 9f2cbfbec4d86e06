"""The tables that Assay publishes. Each also has the partition columns `dt` and `run`."""

from schemas.inputs import DOC_ID, QUERY_ID, SYSTEM
from schemas.table import Column, Table


def _bounds(name: str) -> tuple[Column, Column]:
    """The bounds of a confidence interval."""
    low = Column(f"{name}_low", "double", f"lower bound of the confidence interval of {name}", nullable=True)
    return low, Column(f"{name}_high", "double", f"upper bound of the confidence interval of {name}", nullable=True)


METRIC = Column(
    "metric", "string", "the metric's key, the name of its column in `query_metrics`", pattern=r"[A-Za-z]\w*"
)
METRIC_NAME = Column("metric_name", "string", "the metric as it is written, such as `ndcg@10`")

QUERY_METRICS = Table(
    "query_metrics",
    "one system and query; one more column per metric and segment",
    (
        SYSTEM,
        QUERY_ID,
        Column("weight", "double", "traffic of the query"),
        Column("retrieved", "int", "documents in the list after deduplication"),
        Column("duplicates", "int", "duplicate documents that were removed from the list"),
        Column("tied", "int", "documents with the same rank as the one before"),
        Column("labelled", "int", "labels of the query"),
        Column("relevant", "int", "relevant documents of the query"),
        Column("judged", "int", "documents of the list with a label"),
        Column(
            "counted",
            "boolean",
            "whether the query counts for the first metric: it is defined, and enough of the list is judged; in a "
            "comparison, also for the baseline",
            nullable=True,
        ),
    ),
    key=("system", "query_id"),
)

SEGMENT_METRICS = Table(
    "segment_metrics",
    "one system, segment and metric",
    (
        SYSTEM,
        Column("segment", "string", "the columns that define the segment; `all` for all queries"),
        Column("value", "string", "the values of those columns"),
        METRIC,
        METRIC_NAME,
        Column("macro", "double", "mean over the queries where the metric is defined", nullable=True),
        *_bounds("macro"),
        Column("weighted", "double", "mean weighted by traffic", nullable=True),
        *_bounds("weighted"),
        Column("micro", "double", "pooled ratio over all queries, for ratio metrics", nullable=True),
        *_bounds("micro"),
        Column("stddev", "double", "standard deviation over queries", nullable=True),
        Column("queries", "bigint", "queries in the mean"),
        Column(
            "skipped",
            "bigint",
            "queries left out: metric undefined, or too few documents judged",
        ),
    ),
    key=("system", "segment", "value", "metric"),
)

BASELINE = Column("baseline", "string", "the baseline system")
CANDIDATE = Column("candidate", "string", "the candidate system")

COMPARISONS = Table(
    "comparisons",
    "one pair of systems, segment and metric, paired by query",
    (
        BASELINE,
        CANDIDATE,
        Column("segment", "string", "the columns that define the segment; `all` for all queries"),
        Column("value", "string", "the values of those columns"),
        METRIC,
        METRIC_NAME,
        Column("baseline_mean", "double", "mean of the baseline over the queries compared", nullable=True),
        Column("candidate_mean", "double", "mean of the candidate over the same queries", nullable=True),
        Column("delta", "double", "candidate_mean − baseline_mean", nullable=True),
        *_bounds("delta"),
        Column("stderr", "double", "standard error of delta", nullable=True),
        Column("degrees", "double", "degrees of freedom of the t interval of delta", nullable=True),
        Column("weighted_delta", "double", "mean difference weighted by traffic", nullable=True),
        Column("relative", "double", "delta / baseline_mean", nullable=True),
        Column("relative_stderr", "double", "standard error of relative, by the delta method", nullable=True),
        Column("p_value", "double", "p-value of the paired t test, of delta_corrected where present", nullable=True),
        Column("p_randomisation", "double", "p-value of the sign-flip test, if configured", nullable=True),
        Column("p_bootstrap", "double", "p-value of the bootstrap test, if configured", nullable=True),
        Column(
            "p_adjusted",
            "double",
            "p_value adjusted within its test family; null outside",
            nullable=True,
        ),
        Column("significant", "boolean", "p_adjusted < 1 − confidence; null outside the test family", nullable=True),
        Column("effect_size", "double", "delta / standard deviation of the differences", nullable=True),
        Column("wins", "bigint", "queries where the candidate is better"),
        Column("ties", "bigint", "queries where both are equal, to 1e-9"),
        Column("losses", "bigint", "queries where the candidate is worse"),
        Column("queries", "bigint", "queries compared"),
        Column("unjudged", "bigint", "queries left out because too few documents are judged"),
        Column("kept_traffic", "double", "share of the traffic of both systems that was compared", nullable=True),
        Column("detectable_delta", "double", "minimum detectable difference with 80 % power", nullable=True),
        Column("label_share", "double", "share of stderr² from uncertain labels; null without draws", nullable=True),
        Column(
            "unseen_weight",
            "double",
            "share of the weight of the candidate's top k on documents that nobody was shown, with a posterior",
            nullable=True,
        ),
        Column(
            "untrafficked",
            "double",
            "share of the compared queries where nobody was shown any document of either list, with a posterior",
            nullable=True,
        ),
        Column(
            "hull",
            "boolean",
            "whether the interval is the hull of two answers: the candidate may have learned from clicks",
            nullable=True,
        ),
        Column("other", "double", "the second answer for delta, where the interval is a hull", nullable=True),
        Column(
            "query_variance",
            "double",
            "mean over queries of the variance over draws of their difference, with a posterior",
            nullable=True,
        ),
        Column(
            "curve_shift",
            "double",
            "change of delta if the exponent of the examination curve is one standard deviation larger",
            nullable=True,
        ),
        Column("delta_corrected", "double", "delta corrected by judged queries; null without", nullable=True),
        Column("corrected_low", "double", "lower bound of the confidence interval of delta_corrected", nullable=True),
        Column("corrected_high", "double", "upper bound of the confidence interval of delta_corrected", nullable=True),
        Column("judged_queries", "bigint", "judged queries behind the correction; null without", nullable=True),
        Column("gate", "string", "verdict of the gate: pass, fail or undecidable", nullable=True),
        Column("condition", "string", "the conditions of the gate on this row", nullable=True),
    ),
    key=("baseline", "candidate", "segment", "value", "metric"),
)

SENSITIVITY = Table(
    "sensitivity",
    "one pair of systems and metric over all queries, under one rule for unjudged documents",
    (
        BASELINE,
        CANDIDATE,
        METRIC,
        METRIC_NAME,
        Column(
            "unjudged",
            "string",
            "the rule: that of the run is `posterior` where present, else `cut_then_condense`",
            choices=("posterior", "cut_then_condense", "zero", "condense"),
        ),
        Column("baseline_mean", "double", "mean of the baseline over the queries compared", nullable=True),
        Column("candidate_mean", "double", "mean of the candidate over the same queries", nullable=True),
        Column("delta", "double", "candidate_mean − baseline_mean", nullable=True),
        *_bounds("delta"),
        Column("p_value", "double", "p-value of the paired t test", nullable=True),
        Column("queries", "bigint", "queries compared"),
        Column("kept_traffic", "double", "share of the traffic of both systems that was compared", nullable=True),
        Column("gate", "string", "verdict of the gate over all queries", nullable=True),
    ),
    key=("baseline", "candidate", "metric", "unjudged"),
)

QUERY_CHANGES = Table(
    "query_changes",
    "one of the queries with the largest gain or loss between two systems",
    (
        BASELINE,
        CANDIDATE,
        METRIC,
        METRIC_NAME,
        Column("direction", "string", "whether the metric rose or fell", choices=("gain", "loss")),
        Column("place", "int", "rank of the change, 1 for the largest"),
        QUERY_ID,
        Column("query", "string", "the query text, where `queries` has it", nullable=True),
        Column("weight", "double", "traffic of the query"),
        Column("baseline_value", "double", "the metric for the baseline"),
        Column("candidate_value", "double", "the metric for the candidate"),
        Column("delta", "double", "candidate_value − baseline_value"),
        Column(
            "moved",
            "string",
            "documents whose rank changed, best grade first: doc_id (grade) from → to",
            nullable=True,
        ),
        Column(
            "baseline_top", "string", "the top of the baseline's list, as JSON: doc_id, title, grade", nullable=True
        ),
        Column("candidate_top", "string", "the top of the candidate's list, as JSON", nullable=True),
    ),
    key=("baseline", "candidate", "metric", "direction", "place"),
)

QUARANTINE = Table(
    "quarantine",
    "one input row that could not be used",
    (
        Column("table", "string", "the input"),
        Column("reason", "string", "the column and what is wrong with it"),
        Column("row", "string", "the row as it was read, as JSON"),
    ),
)

GRADE_PROBABILITIES = tuple(f"p_grade_{grade}" for grade in range(4))

LABELS = Table(
    "labels",
    "one query–document label",
    (
        QUERY_ID,
        DOC_ID,
        Column("grade", "int", "0–3; null with too little evidence", nullable=True, minimum=0, maximum=3),
        Column("relevance", "double", "clicks per examination, shrunk to the query's rate", nullable=True, minimum=0),
        Column("relevance_low", "double", "5 % quantile of relevance", nullable=True, minimum=0),
        Column("relevance_high", "double", "95 % quantile of relevance", nullable=True, minimum=0),
        Column("impressions", "bigint", "times the pair was shown", minimum=0),
        Column("examinations", "double", "impressions, weighted by propensity", minimum=0),
        Column("clicks", "bigint", "clicks after denoising", minimum=0),
        Column("carts", "bigint", "carts after denoising", minimum=0),
        Column("purchases", "bigint", "purchases after denoising", minimum=0),
        Column("users", "bigint", "users who were shown the pair", minimum=0),
        Column("positions", "int", "distinct positions at which the pair was shown", minimum=0),
        Column("lift_click", "double", "relevance over the mean of the query's documents", nullable=True, minimum=0),
        Column("lift_cart", "double", "lift of carts", nullable=True, minimum=0),
        Column("lift_purchase", "double", "lift of purchases", nullable=True, minimum=0),
        Column("ctr", "double", "clicks per impression, without position correction", nullable=True, minimum=0),
        *(
            Column(name, "double", f"probability of grade {grade}", nullable=True, minimum=0, maximum=1)
            for grade, name in enumerate(GRADE_PROBABILITIES)
        ),
        Column("source", "string", "where the grade comes from", choices=("behaviour", "human")),
        Column("reason", "string", "what decided the grade"),
    ),
    key=("query_id", "doc_id"),
)

PROPENSITIES = Table(
    "propensities",
    "one context and position",
    (
        Column("context", "string", "the context columns and their values; `all` for the pooled curve"),
        Column("position", "int", "the position on the page, counted from 1", minimum=1),
        Column("propensity", "double", "probability of examination, relative to position 1", minimum=0),
        Column("low", "double", "2.5 % bound of the confidence interval", nullable=True),
        Column("high", "double", "97.5 % bound of the confidence interval", nullable=True),
        Column("impressions", "bigint", "impressions at the position", minimum=0),
        Column("clicks", "bigint", "clicks at the position", minimum=0),
        Column("estimator", "string", "the estimator; `assumed` where the log has too little evidence"),
        Column(
            "basis",
            "string",
            "what decided the value: the position's own evidence, other positions and the prior, or the prior alone",
            choices=("measured", "pulled", "assumed"),
        ),
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
        Column("table", "string", "the checked table"),
        Column("check", "string", "the name of the check"),
        Column("column", "string", "the column; null for checks of the whole table", nullable=True),
        Column("severity", "string", "what a failure does: stop the run, or warn", choices=("error", "warn")),
        Column("passed", "boolean", "whether the check passed"),
        Column("rows", "bigint", "rows checked", nullable=True, minimum=0),
        Column("failed_rows", "bigint", "rows that failed", nullable=True, minimum=0),
        Column("observed", "string", "the observed value", nullable=True),
        Column("allowed", "string", "the allowed value", nullable=True),
        Column("sample", "array<string>", "up to three failing values or rows"),
        Column("reason", "string", "why the check exists"),
        Column("advice", "string", "what to do when it fails"),
    ),
)

LABEL_PRIOR = Table(
    "label_prior",
    "one level of one factor of the prior that posteriors start from",
    (
        Column(
            "factor",
            "string",
            "a system, an opinion, a pair of systems, or one of the former by whether others showed the document",
        ),
        Column("kind", "string", "the kind of factor", choices=("main", "opinion", "known", "pair")),
        Column("level", "string", "the bin of the rank, the value or bin of an opinion, or two of them"),
        Column("effect", "double", "log of the factor by which relevance changes"),
        Column("low", "double", "lower end of the 95 % interval of effect"),
        Column("high", "double", "upper end"),
        Column("clicks", "double", "clicks behind it", minimum=0),
        Column("expected", "double", "clicks that the queries' rates lead to expect", minimum=0),
    ),
    key=("factor", "level"),
)

LABEL_POSTERIORS = Table(
    "label_posteriors",
    "one document of a query's pool: shown in the log, judged, or in the top of a compared list",
    (
        QUERY_ID,
        DOC_ID,
        Column("relevance", "double", "posterior mean of clicks per examination", minimum=0),
        Column("relevance_sd", "double", "its standard deviation, that of the prior included", minimum=0),
        Column("relevance_low", "double", "5 % bound of the relevance", minimum=0),
        Column("relevance_high", "double", "95 % bound of the relevance", minimum=0),
        Column("lift", "double", "relevance over its mean in the query's pool", minimum=0),
        Column("grade", "double", "grade of the lift, at least the promotion by purchases and carts; that of people"),
        Column("grade_mean", "double", "mean of the grade over draws", minimum=0, maximum=3),
        Column("grade_sd", "double", "standard deviation of the grade over draws", minimum=0),
        Column(
            "grade_draws",
            "string",
            "the grade in each draw, a digit each; metrics are means over them",
            pattern="[0-3]+",
        ),
        Column(
            "source",
            "string",
            "what it rests on beside its ranks: clicks, a person's judgment, or nothing",
            choices=("behaviour", "human", "prior"),
        ),
    ),
    key=("query_id", "doc_id"),
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
        LABEL_PRIOR,
        LABEL_POSTERIORS,
        PROPENSITIES,
        DENOISE_FUNNEL,
        QUARANTINE,
        VALIDATION_RESULTS,
    )
}
