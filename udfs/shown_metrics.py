"""The metrics that are shown: those that are configured, and with a posterior DCG beside NDCG."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from udfs.registry import METRICS, parse_metric


def list_shown_metrics(names: Iterable[str], unjudged: str | None) -> tuple[str, ...]:
    """The metrics by name, each once; with `unjudged: posterior`, dcg@k after each ndcg@k, with the same arguments.

    The sum of gains follows online results more closely than its ratio to the ideal, and normalising can turn the
    order of two systems. Without a posterior, documents that nobody was shown have no gain, and the sum misleads.

    >>> list_shown_metrics(["ndcg@10", "mrr"], "posterior")
    ('ndcg@10', 'dcg@10', 'mrr')
    """
    configured = list(names)
    if unjudged != "posterior":
        return tuple(dict.fromkeys(configured))
    keys = {parse_metric(name).key for name in configured}
    shown = []
    for name in configured:
        spec = parse_metric(name)
        gain = replace(spec, metric=METRICS["dcg"])
        beside = spec.metric.name == "ndcg" and gain.key not in keys
        shown += [name, gain.name] if beside else [name]
    return tuple(dict.fromkeys(shown))
