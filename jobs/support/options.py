"""Options that several commands share."""

from __future__ import annotations

import datetime as dt
import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from schemas.dates import parse_date

Decorated = Callable[..., Any]

VARIABLE, FOLDER = "ASSAY_WAREHOUSE", "warehouse"  # where a warehouse is looked for that no option names
WAREHOUSE_HELP = f"Where runs are published (default: that of --config, ${VARIABLE}, or the folder {FOLDER})."


def config_options(function: Decorated) -> Decorated:
    """Add `--config` and `--set`."""
    function = click.option(
        "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one value, e.g. spark.master=local[2]."
    )(function)
    return click.option(
        "--config", "config", required=True, type=click.Path(), metavar="FILE", help="The configuration, a YAML file."
    )(function)


def date_options(function: Decorated) -> Decorated:
    """Add `--date`, and `--from` and `--to` for a range; the command gets `dates`, oldest first."""

    @functools.wraps(function)
    def call(*args: Any, date: dt.date | None, first: dt.date | None, last: dt.date | None, **values: Any) -> Any:
        return function(*args, dates=expand_dates(date, first, last), **values)

    called = click.option("--to", "last", type=Date(), help="The last date of a range.")(call)
    called = click.option("--from", "first", type=Date(), help="The first date of a range, instead of --date.")(called)
    return click.option("--date", type=Date(), help="The date to run for, e.g. 2026-11-01.")(called)


def expand_dates(date: dt.date | None, first: dt.date | None, last: dt.date | None) -> list[dt.date]:
    """The date, or all dates of the range."""
    if date is not None and first is None and last is None:
        return [date]
    if date is not None or first is None or last is None:
        raise click.UsageError("give either --date, or --from and --to")
    if last < first:
        raise click.UsageError(f"--from {first} is after --to {last}")
    return [first + dt.timedelta(days=days) for days in range((last - first).days + 1)]


def debug_option(function: Decorated) -> Decorated:
    """Add `--debug`, which `jobs.cli.invoke` reads."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show details and stack traces.")(function)


def log_option(function: Decorated) -> Decorated:
    """Add `--log`, which `jobs.cli.invoke` reads too."""
    kinds = click.Choice(["text", "json"])
    return click.option(
        "--log", type=kinds, default="text", show_default=True, help="Format of log lines; JSON is one object per line."
    )(function)


def output_option(function: Decorated) -> Decorated:
    """Add `--output`: tables for people, JSON for scripts."""
    kinds = click.Choice(["table", "json"])
    return click.option("--output", type=kinds, default="table", show_default=True, help="Output format.")(function)


def verdict_output_option(function: Decorated) -> Decorated:
    """Add `--output` with the formats that verdicts have besides."""
    kinds = click.Choice(["table", "json", "markdown", "junit"])
    text = "Output format: markdown is a comment for a pull request, junit is XML for a CI server."
    return click.option("--output", type=kinds, default="table", show_default=True, help=text)(function)


def warehouse_option(function: Decorated) -> Decorated:
    """Add `--warehouse` and `--config`; the command gets the place of a warehouse that exists."""

    @functools.wraps(function)
    def call(*args: Any, warehouse: str | None, config_file: str | None, **values: Any) -> Any:
        return function(*args, warehouse=find_warehouse(warehouse, config_file), **values)

    origin = "The configuration that names the warehouse."
    called = click.option("--config", "config_file", type=click.Path(), metavar="FILE", help=origin)(call)
    folders = click.Path(file_okay=False)
    return click.option("--warehouse", type=folders, metavar="PLACE", help=WAREHOUSE_HELP)(called)


def find_warehouse(place: str | None, config: str | None = None) -> str:
    """The named warehouse, that of the configuration, of the environment, or the folder `warehouse` beside."""
    from schemas.errors import ConfigurationError, InputError

    if place is None and config is not None:
        from pipelines.config.load import load_config

        place = load_config(config).config.warehouse
    if place is None:
        place = os.environ.get(VARIABLE) or (FOLDER if Path(FOLDER).is_dir() else None)
    if place is None:
        hint = f"give --warehouse or --config, set {VARIABLE}, or change to a folder that contains one named {FOLDER}"
        raise ConfigurationError("no warehouse is named", hint=hint)
    local = place.removeprefix("file://")
    if "://" not in local and not Path(local).is_dir():
        hint = "check the path; `assay evaluate` creates it with the first run"
        raise InputError("there is no warehouse", where=place, hint=hint)
    return place


class FiniteNumber(click.FloatRange):
    """A number in a range, but neither infinite nor NaN, which every range contains."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Date(click.ParamType[dt.date]):
    """A date such as 2026-11-01."""

    name = "date"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from jobs.support.completion import DAY

        return DAY.shell_complete(ctx, param, incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dt.date:
        try:
            return parse_date(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
