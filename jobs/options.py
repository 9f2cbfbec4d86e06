"""Options that several commands share."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import click

Decorated = Callable[..., Any]


def configured(function: Decorated) -> Decorated:
    """`--config` and `--set`."""
    function = click.option(
        "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one value, e.g. spark.master=local[2]."
    )(function)
    return click.option("--config", "config", required=True, metavar="FILE", help="The configuration, a YAML file.")(
        function
    )


def debug(function: Decorated) -> Decorated:
    """`--debug`, which `jobs.cli.invoke` looks for."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show details and stack traces.")(function)


def log(function: Decorated) -> Decorated:
    """`--log`, which `jobs.cli.invoke` looks for too."""
    kinds = click.Choice(["text", "json"])
    return click.option(
        "--log", type=kinds, default="text", show_default=True, help="How progress is told: JSON is one object a line."
    )(function)


def output(function: Decorated) -> Decorated:
    """`--output`: tables for people, JSON for scripts."""
    kinds = click.Choice(["table", "json"])
    return click.option("--output", type=kinds, default="table", show_default=True, help="What to print.")(function)


def warehouse(function: Decorated) -> Decorated:
    """`--warehouse`, or the one that `--config` names."""
    return click.option("--warehouse", required=True, metavar="PLACE", help="Where runs are published.")(function)


class Date(click.ParamType[dt.date]):
    """A date as 2026-11-01."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dt.date:
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a date; write it as 2026-11-01", param, ctx)
