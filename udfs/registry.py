"""The metric registry and its grammar: `name(parameters)@k`.

A metric is one small file in `udfs/metrics/` that registers itself:

    @metric(reference="…", parameters={"gain": Parameter("exp2", "…", choices=("exp2", "linear"))})
    def ndcg(block: Block, k: int | None, *, gain: str) -> Floats:
        \"\"\"One line that says what it measures.

        The formula, its edges, when to use it and when not.
        \"\"\"

The kernel returns one number per list. Which queries it is undefined for is declared by `defined` and applied by
`udfs.compute`. Two scopes differ: a metric of scope `pair` compares two lists of one query, so its kernel takes two
blocks, aligned list by list, as in `rbo(block, other, k, *, p)`; one of scope `system` describes all that a system
shows, so its kernel takes an `Exposure` and returns one number per system, as in `catalog_coverage(exposure, k)`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from schemas.errors import ConfigurationError, did_you_mean
from schemas.redact import cut_text
from schemas.registry import Registry
from udfs.ragged import Floats, Ints

Argument = str | float | bool | None
Kernel = Callable[..., Floats]
Pool = Callable[..., Floats | Ints]
Steps = Callable[..., str]
Terms = Callable[..., tuple[Floats, Floats]]
POOL = "__pool"  # suffix of the column that holds a metric's divisors
Defined = Literal["always", "labelled", "relevant", "gain", "kernel"]
Scope = Literal["list", "pair", "system"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a metric: its default, meaning and allowed values."""

    default: Argument
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def read(self, text: str, where: str) -> Argument:
        """Parse the argument written as `text`."""
        if self.choices:
            if text not in self.choices:
                raise ConfigurationError(f"{text!r} is not a value of {where}", hint=did_you_mean(text, self.choices))
            return text
        if isinstance(self.default, bool):
            if text.lower() not in ("true", "false"):
                raise ConfigurationError(f"{text!r} is not a value of {where}", hint="use true or false")
            return text.lower() == "true"
        try:
            value = float(text)
        except ValueError:
            raise ConfigurationError(f"{text!r} is not a value of {where}", hint="use a number") from None
        low = float("-inf") if self.minimum is None else self.minimum
        high = float("inf") if self.maximum is None else self.maximum
        if not low <= value <= high:
            raise ConfigurationError(f"{text} is out of range for {where}", hint=f"use {low:g} to {high:g}")
        return value


JUDGED_ONLY = Parameter(False, "take the unjudged documents out before the cut at k, whatever the run's setting")
REL = Parameter(None, "smallest grade that counts as relevant; default: the run's setting, or above 0")
NORM = Parameter(
    "relevant", "relevant = divide by all relevant documents; cut = by min(k, relevant)", ("relevant", "cut")
)
GMAX = Parameter(
    None, "top of the label scale, not of one query; higher grades count as this; default: the run's max_grade"
)


def require_top_grade(gmax: float | None) -> float:
    """Return `gmax`, or raise where neither the metric nor the run sets it."""
    if gmax is None or not gmax > 0:
        problem = "the top of the label scale is not known" if gmax is None else f"gmax={gmax:g} is not above 0"
        raise ConfigurationError(problem, hint="write gmax=3 in the metric, for instance, or set conventions.max_grade")
    return gmax


@dataclass(frozen=True)
class Metric:
    """A registered metric: its grammar, its inputs, and the kernel that computes it."""

    name: str
    kernel: Kernel = field(repr=False)
    summary: str
    explanation: str = field(repr=False)
    reference: str
    latex: str = field(repr=False)
    parameters: Mapping[str, Parameter]
    cutoff: Literal["optional", "required", "none"]
    defined: Defined
    condensable: bool
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    scope: Scope
    pool: Pool | None = field(default=None, repr=False)
    ratio: tuple[str, str] | None = None
    steps: Steps | None = field(default=None, repr=False)
    terms: Terms | None = field(default=None, repr=False)


@dataclass(frozen=True)
class MetricSpec:
    """A metric as requested: with its arguments and its cut-off."""

    metric: Metric
    overrides: tuple[tuple[str, Argument], ...]  # arguments that differ from their defaults
    k: int | None

    @property
    def name(self) -> str:
        """The canonical name, without arguments that equal their defaults."""
        inside = ",".join(f"{name}={_format_argument(value)}" for name, value in self.overrides)
        return self.metric.name + (f"({inside})" if inside else "") + ("" if self.k is None else f"@{self.k}")

    @property
    def key(self) -> str:
        """The name as a column: letters, digits and underscores only."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.replace("@", "_at_").replace("-", "minus")).strip("_")

    @property
    def arguments(self) -> dict[str, Argument]:
        defaults = {name: parameter.default for name, parameter in self.metric.parameters.items()}
        return defaults | dict(self.overrides)


METRICS: Registry[Metric] = Registry("metric", "udfs.metrics")


def metric(
    *,
    reference: str,
    latex: str = "",
    parameters: Mapping[str, Parameter] | None = None,
    cutoff: Literal["optional", "required", "none"] = "optional",
    defined: Defined = "relevant",
    condensable: bool = True,
    needs: tuple[str, ...] = (),
    reads: tuple[str, ...] = (),
    scope: Scope = "list",
    pool: Pool | None = None,
    ratio: tuple[str, str] | None = None,
    steps: Steps | None = None,
    terms: Terms | None = None,
) -> Callable[[Kernel], Kernel]:
    """Register the decorated kernel under its own name.

    `latex` is the formula of the docstring as the documentation shows it; the terminal prints the docstring.
    `defined` says which queries have a value: those with a relevant document (`relevant`), those whose ideal gain is
    above 0 (`gain`), those where the kernel does not return NaN (`kernel`), those with a label (`labelled`), or all of
    them (`always`). Where a kernel of the first two returns NaN, the query counts as one without relevant documents.
    The last two are for kernels that do not read grades. `condensable` is false for metrics that must see the unjudged
    documents. `needs` names the tables beyond labels (`documents`, `decisions`, `subtopics` for documents or judgments
    with them, `earlier` for another list of the query), and `reads` the arrays of the block that come from them.

    `pool` is for a metric that is a ratio: called like the kernel, it returns the divisor of each list, so that
    Σ value · pool / Σ pool is the ratio over all queries. `ratio` names its numerator and divisor, and `steps` writes
    the arithmetic of a block's only list. `terms` is for a metric that is a sum over ranks: called like the kernel, it
    returns the gain of each ranked document and the discount it is multiplied by. `assay explain` prints them all.
    """

    def register(kernel: Kernel) -> Kernel:
        summary, _, explanation = (inspect.getdoc(kernel) or "").partition("\n\n")
        METRICS.register(
            kernel.__name__,
            Metric(
                name=kernel.__name__,
                kernel=kernel,
                summary=summary,
                explanation=explanation,
                reference=reference,
                latex=latex,
                parameters=dict(parameters or {}) | ({"judged_only": JUDGED_ONLY} if condensable else {}),
                cutoff=cutoff,
                defined=defined,
                condensable=condensable,
                needs=needs,
                reads=reads,
                scope=scope,
                pool=pool,
                ratio=ratio,
                steps=steps,
                terms=terms,
            ),
        )
        return kernel

    return register


_LONGEST = 200  # characters of a metric
# A cut-off has as many digits as arrays of ranks can hold, and those of ASCII: it is part of the name of a column.
_WRITTEN = re.compile(r"\s*(?P<name>[A-Za-z_][\w]*)\s*(?:\((?P<inside>[^()]*)\))?\s*(?:@\s*(?P<k>[0-9]{1,9}))?\s*")


def parse_metric(text: str) -> MetricSpec:
    """Parse a metric; an unknown name raises an error that suggests the nearest one."""
    match = _WRITTEN.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None:
        shown = cut_text(repr(text), _LONGEST)
        raise ConfigurationError(f"cannot read the metric {shown}", hint="write name(parameter=value)@k, e.g. ndcg@10")
    name = match["name"].lower()
    if name not in METRICS:
        near = did_you_mean(name, METRICS)
        written = near.replace("'? ", f"@{match['k']}'? ", 1) if match["k"] else near
        raise ConfigurationError(f"unknown metric {text!r}", hint=written)
    metric = METRICS[name]
    k = int(match["k"]) if match["k"] else None
    if k is None and metric.cutoff == "required":
        raise ConfigurationError(f"{text!r} needs a cut-off", hint=f"write {name}@10, for instance")
    if k is not None and (metric.cutoff == "none" or k < 1):
        allowed = "it takes no cut-off" if metric.cutoff == "none" else "cut-offs start at 1"
        raise ConfigurationError(f"{text!r} has a cut-off it cannot have", hint=allowed)
    arguments = dict(_parse_arguments(metric, match["inside"] or "", text))
    overrides = tuple(
        (n, arguments[n]) for n, p in metric.parameters.items() if n in arguments and arguments[n] != p.default
    )
    return MetricSpec(metric, overrides, k)


def parse_metrics(texts: Iterable[str]) -> tuple[MetricSpec, ...]:
    """Parse several metrics, in order; a metric that is listed twice is computed once."""
    return tuple({spec.key: spec for spec in map(parse_metric, texts)}.values())


def _parse_arguments(metric: Metric, inside: str, text: str) -> Iterable[tuple[str, Argument]]:
    for part in filter(None, (piece.strip() for piece in inside.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ConfigurationError(f"cannot read {part!r} in {text!r}", hint="write parameter=value")
        if name not in metric.parameters:
            hint = did_you_mean(name, metric.parameters) if metric.parameters else f"{metric.name} has no parameters"
            raise ConfigurationError(f"unknown parameter {name!r} in {text!r}", hint=hint)
        yield name, metric.parameters[name].read(value, f"{name} in {text!r}")


def _format_argument(value: Argument) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)
