"""Readings of what the metrics say together."""

from __future__ import annotations

from pipelines.readings.rules import Pair, change, reading


@reading
def recall_up_ndcg_flat(pair: Pair) -> str | None:
    """Recall rises and NDCG does not: more is found, and not put to use."""
    for recall_spec, recall in pair.named("recall"):
        for ndcg_spec, ndcg in pair.named("ndcg"):
            if pair.moved(recall) == 1 and pair.moved(ndcg) == 0:
                return (
                    f"{recall_spec.name} is up ({change(recall)}) while {ndcg_spec.name} is flat ({change(ndcg)}): new "
                    "documents come in but are ranked low; or they carry low grades; or they push down better ones. "
                    "Look at the ranks in query_changes."
                )
    return None


@reading
def ndcg_up_recall_down(pair: Pair) -> str | None:
    """NDCG rises while recall falls: the top is better, and fewer relevant documents are found."""
    for ndcg_spec, ndcg in pair.named("ndcg"):
        for recall_spec, recall in pair.named("recall"):
            if pair.moved(ndcg) == 1 and pair.moved(recall) == -1:
                return (
                    f"{ndcg_spec.name} is up ({change(ndcg)}) while {recall_spec.name} is down ({change(recall)}): the "
                    "order at the top is better, but fewer relevant documents are found."
                )
    return None


@reading
def labels_and_goal_differ(pair: Pair) -> str | None:
    """NDCG rises on labels made from clicks while it does not on labels of the goal, such as purchases."""
    for spec, clicked in pair.named("ndcg"):
        bought, goal = pair.goal(spec), pair.config.compare.goal
        if bought is not None and pair.moved(clicked) == 1 and pair.moved(bought) < 1:
            return (
                f"{spec.name} is up on labels from clicks ({change(clicked)}) but not on labels from {goal}s "
                f"({change(bought)}): what people click and what they want differ, and the gain is not in the goal."
            )
    return None


@reading
def recall_is_a_hit_rate(pair: Pair) -> str | None:
    """With hardly more than one relevant document per query, recall only says hit or miss."""
    relevant = pair.evidence.relevant
    if relevant < 2 and pair.named("recall"):
        return f"queries have {relevant:.2f} relevant documents on average: recall behaves like a hit rate."
    return None


@reading
def mean_and_majority_disagree(pair: Pair) -> str | None:
    """More queries win than lose while the mean goes the other way, or the reverse: a few large changes decide."""
    found = pair.headline
    if found is None:
        return None
    spec, row = found
    majority = row["wins"] - row["losses"]
    if pair.moved(row) * majority < 0:
        return (
            f"{spec.name} moves by {change(row)} although {row['wins']:,} queries are better and {row['losses']:,} "
            "worse: a few large changes outweigh many small ones."
        )
    return None
