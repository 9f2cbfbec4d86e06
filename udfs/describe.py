"""The metrics in words: the list, the explanation of one, and the page in `docs/`. All from the registry."""

from __future__ import annotations

from collections.abc import Callable

from schemas.errors import ConfigurationError, did_you_mean
from udfs.registry import Argument, Metric, Parameter, metrics

SCOPES = {
    "list": "one number per query",
    "pair": "one number per query, between two lists of it",
    "system": "one number per system",
}
GROUPS: dict[str, Callable[[Metric], bool]] = {
    "Of a ranked list and its labels": lambda m: m.scope == "list" and not m.needs,
    "Of a ranked list and the catalogue": lambda m: "documents" in m.needs,
    "Between two lists of a query": lambda m: m.scope == "pair",
    "Of decisions": lambda m: "decisions" in m.needs,
}
NEEDS = {
    "documents": "the table `documents`",
    "decisions": "the table `decisions`",
    "earlier": "a second list of each query: another system's, or an earlier stage's",
}


def metric_list() -> str:
    """Every metric with one line, grouped by what it looks at."""
    width = max(map(len, metrics()))
    parts = []
    for title, belongs in GROUPS.items():
        lines = [f"  {m.name:<{width}}  {m.summary}" for m in metrics().values() if belongs(m)]
        parts.append("\n".join([title, *lines]))
    parts.append(
        "Written as name(parameter=value)@k, e.g. ndcg@10, ndcg(gain=linear)@10, recall(rel=2)@100, rbp(p=0.8)."
    )
    return "\n\n".join(parts) + "\n"


def metric_explained(name: str) -> str:
    """All about one metric: formula, edges, when to use it and when not, parameters, source."""
    found = _find(name)
    facts = [f"{'Written':<10} {_written(found)}", f"{'Gives':<10} {SCOPES[found.scope]}"]
    if found.needs:
        facts.append(f"{'Needs':<10} {_needs(found).replace('`', '')}")
    facts.append(f"{'Source':<10} {found.reference}")
    width = max(map(len, found.parameters), default=0)
    parameters = [f"  {key:<{width}}  {_meaning(parameter)}" for key, parameter in found.parameters.items()]
    parts = [f"{found.name}: {found.summary}", found.explanation, "\n".join(facts)]
    if parameters:
        parts.append("\n".join(["Parameters", *parameters]))
    return "\n\n".join(parts) + "\n"


def metrics_page() -> str:
    """The reference of all metrics as Markdown; `docs/metrics.md` is this text."""
    parts = [
        "# Metrics",
        "<!-- Written by udfs/describe.py from the metrics themselves; edit those. -->",
        "A metric is written `name(parameter=value)@k`: `ndcg@10`, `ndcg(gain=linear)@10`, `recall(rel=2)@100`, "
        "`rbp(p=0.8)`, `mrr`. As a column its name is spelt with letters, digits and underscores: `ndcg_at_10`, "
        "`ndcg_gain_linear_at_10`. Which one to choose is the subject of [Which metric when](which-metric.md).",
        "A grade is a real number; relevant means a grade of at least `rel`, or above 0 where `rel` is not set. "
        "A document without a label is unjudged: it gains nothing and is not relevant. Unless a metric says otherwise: "
        "a query without relevant documents is undefined, shown as null and left out of means (`no_relevant: zero` "
        "makes it 0); a query for which a system returned nothing scores 0 (`nothing_returned: skip` leaves it out); a "
        "query that nobody labelled is undefined; k beyond the end of a list changes nothing.",
    ]
    for title, belongs in GROUPS.items():
        parts.append(f"## {title}")
        parts += [_section(m) for m in metrics().values() if belongs(m)]
    return "\n\n".join(parts) + "\n"


def _section(found: Metric) -> str:
    text = found.explanation.replace("_", r"\_").replace("*", r"\*")
    for label in ("Formula:", "Edges:", "Use it:", "Not:"):
        text = text.replace(f"\n{label}", f"\n\n{label}").replace(label, f"**{label}**", 1)
    text = text.replace("\n\n\n", "\n\n")
    facts = f"Written `{_written(found)}`; {SCOPES[found.scope]}."
    if found.needs:
        facts += f" Needs {_needs(found)}."
    parts = [f"### `{found.name}`", found.summary, text, facts]
    if found.parameters:
        rows = [f"| `{key}` | `{_show(p.default)}` | {_escaped(p.meaning)} |" for key, p in found.parameters.items()]
        parts.append("\n".join(["| parameter | default | meaning |", "|---|---|---|", *rows]))
    parts.append(f"Source: {found.reference}.")
    return "\n\n".join(parts)


def _find(name: str) -> Metric:
    bare = name.strip().lower().partition("@")[0].partition("(")[0].strip()
    known = metrics()
    if bare not in known:
        raise ConfigurationError(f"unknown metric {name!r}", hint=did_you_mean(bare, known))
    return known[bare]


def _written(found: Metric) -> str:
    inside = f"({', '.join(found.parameters)})" if found.parameters else ""
    return found.name + inside + {"required": "@k", "optional": "[@k]", "none": ""}[found.cutoff]


def _needs(found: Metric) -> str:
    tables = " and ".join(NEEDS[table] for table in found.needs)
    columns = [column for column in found.reads if column != "doc"]
    return tables + (f" with {' and '.join(f'`{column}`' for column in columns)}" if columns else "")


def _meaning(parameter: Parameter) -> str:
    return f"{parameter.meaning} (default: {_show(parameter.default)})"


def _show(value: Argument) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    return text.replace("|", r"\|")
