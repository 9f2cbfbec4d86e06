"""Readings of what the metrics mean together."""

from __future__ import annotations

from pipelines.comparison.readings.registry import ComparedPair, format_change, reading


@reading
def recall_up_ndcg_flat(pair: ComparedPair) -> str | None:
    """Recall rises and NDCG does not: more is found, and ranked too low to matter."""
    for recall_spec, recall in pair.by_name("recall"):
        for ndcg_spec, ndcg in pair.by_name("ndcg"):
            if pair.direction(recall) == 1 and pair.direction(ndcg) == 0:
                return (
                    f"{recall_spec.name} is up ({format_change(recall)}) while {ndcg_spec.name} is flat "
                    f"({format_change(ndcg)}): new documents come in but are ranked low; or they carry low grades; or "
                    "they push down better ones. Look at the ranks in query_changes."
                )
    return None


@reading
def ndcg_up_recall_down(pair: ComparedPair) -> str | None:
    """NDCG rises while recall falls: the top is better, and fewer relevant documents are found."""
    for ndcg_spec, ndcg in pair.by_name("ndcg"):
        for recall_spec, recall in pair.by_name("recall"):
            if pair.direction(ndcg) == 1 and pair.direction(recall) == -1:
                return (
                    f"{ndcg_spec.name} is up ({format_change(ndcg)}) while {recall_spec.name} is down "
                    f"({format_change(recall)}): the order at the top is better, but fewer relevant documents are "
                    "found."
                )
    return None


@reading
def dcg_and_ndcg_disagree(pair: ComparedPair) -> str | None:
    """DCG and NDCG point different ways: normalising by the ideal list turns the order."""
    for dcg_spec, dcg in pair.by_name("dcg"):
        for ndcg_spec, ndcg in pair.by_name("ndcg"):
            certain = pair.direction(dcg) or pair.direction(ndcg)
            if dcg_spec.k == ndcg_spec.k and certain and dcg["delta"] * ndcg["delta"] < 0:
                return (
                    f"{dcg_spec.name} moves by {format_change(dcg)} while {ndcg_spec.name} moves by "
                    f"{format_change(ndcg)}: queries with much to find and queries with little disagree, and NDCG "
                    "weighs them alike. The sum of gains (dcg) follows online results more closely."
                )
    return None


@reading
def labels_and_goal_differ(pair: ComparedPair) -> str | None:
    """NDCG rises on labels made from clicks while it does not on labels of the goal, such as purchases."""
    for spec, by_clicks in pair.by_name("ndcg"):
        by_goal, goal = pair.by_goal(spec), pair.config.compare.goal
        if by_goal is not None and pair.direction(by_clicks) == 1 and pair.direction(by_goal) < 1:
            return (
                f"{spec.name} is up on labels from clicks ({format_change(by_clicks)}) but not on labels from {goal}s "
                f"({format_change(by_goal)}): what people click and what they want differ, and the gain is not in the "
                "goal."
            )
    return None


@reading
def recall_is_a_hit_rate(pair: ComparedPair) -> str | None:
    """With hardly more than one relevant document per query, recall only measures hit or miss."""
    relevant = pair.context.relevant
    if relevant < 2 and pair.by_name("recall"):
        return f"queries have {relevant:.2f} relevant documents on average: recall behaves like a hit rate."
    return None


@reading
def mean_and_majority_disagree(pair: ComparedPair) -> str | None:
    """More queries win than lose while the mean goes the other way, or the reverse: a few large changes decide."""
    if pair.headline is None:
        return None
    spec, row = pair.headline
    majority = row["wins"] - row["losses"]
    if pair.direction(row) * majority < 0:
        return (
            f"{spec.name} moves by {format_change(row)} although {row['wins']:,} queries are better and "
            f"{row['losses']:,} worse: a few large changes outweigh many small ones."
        )
    return None
