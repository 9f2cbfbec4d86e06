"""The verdict on each candidate in one sentence, and what to do. Every output prints these sentences.

Nothing heavy is imported here: commands print them without Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.comparison.headline import read_shown_metrics, select_headline_metrics
from pipelines.comparison.judging.correction import use_correction
from pipelines.comparison.settings import StatisticsSettings
from pipelines.comparison.verdicts import find_worst_outcome
from pipelines.warehouse.runs import Manifest
from schemas.printable import format_count
from udfs.registry import MetricSpec, parse_metrics
from udfs.statistics.plan import EVERYTHING, Row

# Readings that say how an answer could be wrong, the largest risk first, and the risk in a few words.
RISKS = {
    "undecidable_from_this_log": "too few queries have enough judged",
    "two_answers": "the log allows two answers",
    "rests_on_the_unjudged": "counting unjudged documents another way changes the answer",
    "much_is_unseen": "{unseen} of the weight of its top results is on documents that nobody was shown",
    "rests_on_the_curve": "another examination curve could change the answer",
    "candidate_less_judged": "fewer of its results have a label",
    "trained_on_the_labels": "it may have learned from the clicks that it is judged by",
    "labels_and_goal_differ": "the gain is in clicks, not in the goal",
    "mean_and_majority_disagree": "more queries move the other way",
    "weighting_changes_the_answer": "weighted by traffic it is the other way round",
    "carried_by_few_queries": "a few queries make up most of it",
    "carried_by_one_segment": "one segment makes up most of it",
    "ndcg_up_recall_down": "recall is down",
    "little_is_judged": "little of the lists has a label",
    "low_power": "a smaller difference could not have been detected",
    "labels_taken_as_true": "the interval leaves out the error of the labels",
}


@dataclass(frozen=True)
class CandidateAnswer:
    """The verdict on one candidate: `outcome` is better, worse, unclear, undecidable or empty."""

    candidate: str
    baseline: str
    metric: str
    outcome: str
    gate: str | None  # the worst verdict of the gate on the candidate
    delta: float | None
    low: float | None
    high: float | None
    queries: int
    every: int  # queries of both systems, also those with too little judged
    traffic: float | None
    risk: str
    sentence: str
    advice: str


def answer_comparisons(manifest: Manifest, comparisons: Sequence[Row]) -> tuple[CandidateAnswer, ...]:
    """The verdict on every compared pair by the headline metric; the largest effect first."""
    spec = find_headline(manifest)
    if spec is None:
        return ()
    confidence = read_confidence(manifest)
    rows = [r for r in comparisons if r["metric"] == spec.key and r.get("segment", EVERYTHING) == EVERYTHING]
    return tuple(_answer(manifest, spec, row, confidence) for row in sort_by_effect(rows))


def find_headline(manifest: Manifest) -> MetricSpec | None:
    """The metric that a published run is judged by; None where no metric has a value per query."""
    gated = {condition["metric"] for condition in manifest.config.get("gate", ())}
    return next(iter(select_headline_metrics(parse_metrics(read_shown_metrics(manifest)), gated)), None)


def read_confidence(manifest: Manifest) -> float:
    """The confidence of a run's intervals."""
    return StatisticsSettings.model_validate(manifest.config.get("statistics", {})).confidence


def sort_by_effect(rows: Sequence[Row]) -> list[Row]:
    """Comparisons by baseline, then by their difference, the largest first."""
    answers = [(row, use_correction(row)["delta"]) for row in rows]
    answers.sort(key=lambda a: (a[0]["baseline"], a[1] is None, -(a[1] or 0.0), a[0]["candidate"]))
    return [row for row, _ in answers]


def find_baseline(manifest: Manifest, comparisons: Sequence[Row]) -> str | None:
    """The system that a run compares the others with; the configured one, else that of its comparisons."""
    configured = manifest.config.get("compare", {}).get("baseline")
    return configured or next((str(row["baseline"]) for row in comparisons), None)


def order_systems(manifest: Manifest, comparisons: Sequence[Row]) -> list[str]:
    """The baseline, candidates by their effect, then the other systems."""
    baseline = find_baseline(manifest, comparisons)
    answers = answer_comparisons(manifest, [row for row in comparisons if row["baseline"] == baseline])
    first = [baseline, *(answer.candidate for answer in answers)]
    return [*(s for s in first if s in manifest.systems), *(s for s in manifest.systems if s not in first)]


def sort_readings(readings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What judges found, then the largest risk; readings that are none keep their order behind them."""
    places = {rule: place for place, rule in enumerate(("judged_queries", *RISKS))}
    return sorted(readings, key=lambda entry: places.get(entry["rule"], len(places)))


def _answer(manifest: Manifest, spec: MetricSpec, row: Row, confidence: float) -> CandidateAnswer:
    baseline, candidate = row["baseline"], row["candidate"]
    gate = [verdict for verdict in manifest.gate if verdict["candidate"] == candidate]
    worst = find_worst_outcome((verdict["verdict"] for verdict in gate), default="") or None
    readings = [r for r in manifest.readings if (r["baseline"], r["candidate"]) == (baseline, candidate)]
    result = use_correction(row)
    outcome = _find_outcome(result, worst, {reading["rule"] for reading in readings})
    risk = "" if outcome == "empty" else _find_risk(row, readings)
    queries, every = row["queries"], row["queries"] + (row.get("unjudged") or 0)
    sentence = _write_sentence(spec, result, outcome, confidence) + (f"; {risk}." if risk else ".")
    return CandidateAnswer(
        candidate=candidate,
        baseline=baseline,
        metric=spec.name,
        outcome=outcome,
        gate=worst,
        delta=result["delta"],
        low=result["delta_low"],
        high=result["delta_high"],
        queries=queries,
        every=every,
        traffic=row.get("kept_traffic"),
        risk=risk,
        sentence=sentence,
        advice=_advise(result, outcome, worst, gate, readings),
    )


def _find_outcome(row: Row, worst: str | None, rules: set[str]) -> str:
    low, high = row["delta_low"], row["delta_high"]
    if not row["queries"] or row["delta"] is None:
        return "empty"
    open_hull = bool(row.get("hull")) and low is not None and low <= 0 <= high
    if worst == "undecidable" or "undecidable_from_this_log" in rules or open_hull:
        return "undecidable"
    if low is None or low <= 0 <= high or row.get("significant") is False:
        return "unclear"
    return "better" if low > 0 else "worse"


def _write_sentence(spec: MetricSpec, row: Row, outcome: str, confidence: float) -> str:
    """Effect, interval and coverage, without a full stop."""
    candidate, baseline = row["candidate"], row["baseline"]
    unjudged = row.get("unjudged") or 0
    every = row["queries"] + unjudged
    if outcome == "empty":
        have = "has" if unjudged == 1 else "have"
        reason = f"; {format_count(unjudged, 'query')} {have} too little judged" if unjudged else ""
        why = "no query counts for both" if not row["queries"] else "the difference is undefined"
        return f"{candidate} cannot be compared with {baseline} by {spec.name}: {why}{reason}"
    heads = {
        "better": f"{candidate} beats {baseline}",
        "worse": f"{candidate} is worse than {baseline}",
        "unclear": f"{candidate} is not clearly different from {baseline}",
        "undecidable": f"Undecidable whether {candidate} beats {baseline}",
    }
    interval = ""
    if row["delta_low"] is not None:
        interval = f" ({100 * confidence:g} % CI {row['delta_low']:+.4f} to {row['delta_high']:+.4f})"
    if outcome == "unclear" and interval and not row["delta_low"] <= 0 <= row["delta_high"]:
        interval += ", not significant after adjusting for several tests,"
    whole = format_count(every, "query")
    coverage = whole if not unjudged else f"{row['queries']:,} of {whole}"
    traffic = row.get("kept_traffic")
    share = f", {_format_share(traffic)} of traffic" if unjudged and traffic is not None else ""
    return f"{heads[outcome]}: {spec.name} {row['delta']:+.4f}{interval} on {coverage}{share}"


def _find_risk(row: Row, readings: Sequence[Mapping[str, Any]]) -> str:
    """The largest risk that a reading of the pair names; empty where none does."""
    rules = [reading["rule"] for reading in sort_readings(readings) if reading["rule"] in RISKS]
    return RISKS[rules[0]].format(unseen=_format_share(row.get("unseen_weight") or 0.0)) if rules else ""


def _advise(
    row: Row,
    outcome: str,
    worst: str | None,
    gate: Sequence[Mapping[str, Any]],
    readings: Sequence[Mapping[str, Any]],
) -> str:
    """What to do next, in one sentence."""
    if outcome == "empty":
        return (
            "Give both systems lists for the same queries, and labels for what they return: a query without a relevant "
            "document counts for few metrics."
        )
    if worst == "pass":
        return "Release it: every condition of the gate is met."
    if worst is not None:
        first = next(verdict for verdict in gate if verdict["verdict"] == worst)
        what = "Do not release it" if worst == "fail" else "Collect more evidence before a release"
        where = "" if first["segment"] == EVERYTHING else f" [{first['segment']} = {first['value']}]"
        return f"{what}: {first['condition']}{where}: {first['reason']}."
    if outcome == "undecidable":
        return "Collect more evidence: more days of log, judged queries, or a share of the traffic for the candidate."
    if outcome == "unclear":
        power = next((reading["text"] for reading in readings if reading["rule"] == "low_power"), "")
        least = row.get("detectable_delta")
        small = "" if least is None else f": these queries would hardly show a difference below {least:.4f}"
        return f"Decide by cost{small}." if not power else f"Collect more evidence before deciding. {power}"
    if outcome == "better" and not row["losses"]:
        return "No query got worse: try it online."
    loss = f"{format_count(row['losses'], 'query')} got worse: look at the largest losses in query_changes"
    return f"{loss}, then try it online." if outcome == "better" else f"Keep {row['baseline']}. {loss}."


def _format_share(share: float) -> str:
    return f"{100 * share:.0f} %"
