"""Names that the shell completes: runs, systems and metrics of the warehouse that the command line names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from schemas.errors import AssayError

if TYPE_CHECKING:
    from pipelines.warehouse.runs import Manifest


class PublishedName(click.ParamType[str]):
    """A text that names something of a published run; the shell offers those that there are."""

    def __init__(self, name: str, list_names: Callable[[Sequence[Manifest]], Iterable[str]]) -> None:
        self.name = name
        self.list_names = list_names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = dict.fromkeys(self.list_names(_list_runs(ctx)))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def list_dates(runs: Sequence[Manifest]) -> list[str]:
    """Dates of the runs, the newest run first."""
    return [run.dt for run in runs]


def _list_metrics(runs: Sequence[Manifest]) -> Iterable[str]:
    """Metrics of the runs; every metric where there are no runs."""
    from pipelines.comparison.headline import read_shown_metrics
    from udfs.registry import METRICS

    return [name for run in runs for name in read_shown_metrics(run)] or METRICS


RUN = PublishedName("run", lambda runs: [*list_dates(runs), *(run.run for run in runs)])
DAY = PublishedName("date", list_dates)
SYSTEM = PublishedName("system", lambda runs: [system for run in runs for system in run.systems])
METRIC = PublishedName("metric", _list_metrics)


def _list_runs(ctx: click.Context) -> Sequence[Manifest]:
    """The runs of the warehouse that the command line names so far; none where it names none that can be read."""
    from jobs.support.options import find_warehouse
    from pipelines.warehouse.runs import list_committed
    from pipelines.warehouse.storage import Storage

    try:
        place = find_warehouse(ctx.params.get("warehouse"), ctx.params.get("config_file") or ctx.params.get("config"))
        return list_committed(Storage(place))
    except (AssayError, OSError):
        return ()
