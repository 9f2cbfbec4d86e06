"""The metric registry and its grammar: `name(parameters)@k`.

A metric is one small file beside this one that registers itself:

    @metric(reference="…", parameters={"gain": Parameter("exp2", "…", choices=("exp2", "linear"))})
    def ndcg(block: Block, k: int | None, *, gain: str) -> Floats:
        \"\"\"One line that says what it measures.

        The formula, its edges, when to use it and when not.
        \"\"\"

The kernel answers one number per list. Where the number is undefined is stated once, by `defined`,
and applied by `udfs.score`. Two scopes differ from that. A metric of scope `pair` compares two lists of
one query: its kernel takes two blocks, aligned list by list, as in `rbo(block, other, k, *, p)`. One of
scope `system` looks at everything that a system showed: `catalog_coverage(shown, catalogue)`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from schemas.errors import ConfigurationError, did_you_mean
from udfs.block import Block
from udfs.ragged import Floats

Argument = str | float | bool | None
Kernel = Callable[..., Floats]
Defined = Literal["always", "relevant", "gain", "kernel"]
Scope = Literal["list", "pair", "system"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a metric: its default, its meaning, and what it may be."""

    default: Argument
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def read(self, text: str, where: str) -> Argument:
        """The argument written as `text`."""
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
REL = Parameter(None, "smallest grade that counts as relevant; the run's setting, or above 0")
GMAX = Parameter(None, "top of the label scale, never of one query; grades above it count as it; the run's max_grade")


def top_of_scale(gmax: float | None) -> float:
    """`gmax`, or an error for people where neither the metric nor the run says what it is."""
    if gmax is None or not gmax > 0:
        problem = "the top of the label scale is not known" if gmax is None else f"gmax={gmax:g} is not above 0"
        raise ConfigurationError(problem, hint="write gmax=3 in the metric, for instance, or set max_grade for the run")
    return gmax


@dataclass(frozen=True)
class Metric:
    """A registered metric: how it is written, what it needs, and the kernel that computes it."""

    name: str
    kernel: Kernel = field(repr=False)
    summary: str
    explanation: str = field(repr=False)
    reference: str
    parameters: Mapping[str, Parameter]
    cutoff: Literal["optional", "required", "none"]
    defined: Defined
    condensable: bool
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    scope: Scope


@dataclass(frozen=True)
class Spec:
    """A metric as somebody asked for it: with its arguments and its cut-off."""

    metric: Metric
    given: tuple[tuple[str, Argument], ...]  # arguments that differ from their defaults, by name
    k: int | None

    @property
    def name(self) -> str:
        """The canonical name: what was meant, defaults left out."""
        inside = ",".join(f"{name}={_print(value)}" for name, value in self.given)
        return self.metric.name + (f"({inside})" if inside else "") + ("" if self.k is None else f"@{self.k}")

    @property
    def key(self) -> str:
        """The name as a column: letters, digits and underscores only."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.replace("@", "_at_").replace("-", "minus")).strip("_")

    @property
    def arguments(self) -> dict[str, Argument]:
        defaults = {name: parameter.default for name, parameter in self.metric.parameters.items()}
        return defaults | dict(self.given)


_METRICS: dict[str, Metric] = {}


def metric(
    *,
    reference: str,
    parameters: Mapping[str, Parameter] | None = None,
    cutoff: Literal["optional", "required", "none"] = "optional",
    defined: Defined = "relevant",
    condensable: bool = True,
    needs: tuple[str, ...] = (),
    reads: tuple[str, ...] = (),
    scope: Scope = "list",
) -> Callable[[Kernel], Kernel]:
    """Register the decorated kernel under its own name.

    `defined` says which queries have an answer: those with a relevant document (`relevant`), those whose
    ideal gain is above 0 (`gain`), those where the kernel does not answer NaN (`kernel`), or all of them,
    labelled or not (`always`). Where a kernel of the first two answers NaN, that is one more query without
    relevant documents. `condensable` is false for what must see the unjudged documents. `needs` names the
    tables beyond labels (`documents`, `decisions`, `earlier` for another list of the query), and `reads`
    the named arrays of the block that come from them.
    """

    def register(kernel: Kernel) -> Kernel:
        name = kernel.__name__
        if name in _METRICS:
            raise ValueError(f"two metrics are named {name!r}")
        summary, _, explanation = (inspect.getdoc(kernel) or "").partition("\n\n")
        own = dict(parameters or {}) | ({"judged_only": JUDGED_ONLY} if condensable else {})
        _METRICS[name] = Metric(
            name, kernel, summary, explanation, reference, own, cutoff, defined, condensable, needs, reads, scope
        )
        return kernel

    return register


@cache
def metrics() -> Mapping[str, Metric]:
    """All metrics by name; every file in `udfs/metrics/` registers its own when it is imported."""
    import udfs.metrics

    for module in pkgutil.iter_modules(udfs.metrics.__path__):
        importlib.import_module(f"udfs.metrics.{module.name}")
    return dict(sorted(_METRICS.items()))


_WRITTEN = re.compile(r"\s*(?P<name>[A-Za-z_][\w]*)\s*(?:\((?P<inside>[^()]*)\))?\s*(?:@\s*(?P<k>\d+))?\s*")


def parse(text: str) -> Spec:
    """The metric written as `text`, or an error that names the nearest one that exists."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"cannot read the metric {text!r}", hint="write name(parameter=value)@k, e.g. ndcg@10")
    known = metrics()
    name = match["name"].lower()
    if name not in known:
        near = did_you_mean(name, known)
        written = near.replace("'? ", f"@{match['k']}'? ", 1) if match["k"] else near
        raise ConfigurationError(f"unknown metric {text!r}", hint=written)
    found = known[name]
    k = int(match["k"]) if match["k"] else None
    if k is None and found.cutoff == "required":
        raise ConfigurationError(f"{text!r} needs a cut-off", hint=f"write {name}@10, for instance")
    if k is not None and (found.cutoff == "none" or k < 1):
        allowed = "it takes no cut-off" if found.cutoff == "none" else "cut-offs start at 1"
        raise ConfigurationError(f"{text!r} has a cut-off it cannot have", hint=allowed)
    arguments = dict(_arguments(found, match["inside"] or "", text))
    given = tuple(
        (n, arguments[n]) for n, p in found.parameters.items() if n in arguments and arguments[n] != p.default
    )
    return Spec(found, given, k)


def parse_all(texts: Iterable[str]) -> tuple[Spec, ...]:
    """Several metrics, in order; one that is asked for twice is computed once."""
    return tuple({spec.key: spec for spec in map(parse, texts)}.values())


def _arguments(found: Metric, inside: str, text: str) -> Iterable[tuple[str, Argument]]:
    for part in filter(None, (piece.strip() for piece in inside.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ConfigurationError(f"cannot read {part!r} in {text!r}", hint="write parameter=value")
        if name not in found.parameters:
            hint = did_you_mean(name, found.parameters) if found.parameters else f"{found.name} has no parameters"
            raise ConfigurationError(f"unknown parameter {name!r} in {text!r}", hint=hint)
        yield name, found.parameters[name].read(value, f"{name} in {text!r}")


def _print(value: Argument) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


__all__ = [
    "GMAX",
    "REL",
    "Block",
    "Metric",
    "Parameter",
    "Spec",
    "metric",
    "metrics",
    "parse",
    "parse_all",
    "top_of_scale",
]
