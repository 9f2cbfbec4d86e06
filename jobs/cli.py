"""The command line. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
import logging
import sys
from typing import Any

import click

COMMANDS = {
    "evaluate": ("jobs.evaluate", "Score systems against labels and publish the result."),
    "check": ("jobs.check", "Check the data of a date without evaluating it."),
    "label": ("jobs.label", "Make labels from a log and publish them alone."),
    "explain": ("jobs.explain", "Tell how a list earned its metrics, or why a document has its grade."),
    "propensity": ("jobs.propensity", "Draw how the chance of being looked at falls with the position."),
    "simulate": ("jobs.simulate", "Draw a search log whose truth is known."),
    "compare": ("jobs.compare", "Compare two published runs by query."),
    "power": ("jobs.power", "Say how many queries a difference needs to be seen."),
    "report": ("jobs.report", "Write the HTML report of a run, or of two against each other."),
    "trend": ("jobs.trend", "Draw a metric over the committed runs."),
    "track": ("jobs.track", "Tell MLflow of published runs, or of those that wait."),
    "runs": ("jobs.runs", "List the committed runs, newest first."),
    "tables": ("jobs.tables", "Print views of the published tables for Spark SQL or DuckDB."),
    "vacuum": ("jobs.vacuum", "Remove runs that have been replaced."),
    "config": ("jobs.config", "Print the resolved configuration and where each value came from."),
    "metrics": ("jobs.metrics", "List the metrics, or explain one."),
    "doctor": ("jobs.doctor", "Check what Assay needs on this machine, and say how to mend it."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            from schemas.errors import did_you_mean

            ctx.fail(f"no command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="assay")
def assay() -> None:
    """Measure how good a search ranking is, from judgments or from behaviour.

    \b
    assay evaluate --config conf/demo.yaml --date 2026-11-01
    assay runs --warehouse build/demo/warehouse
    """


def main() -> None:
    """The console command."""
    sys.exit(invoke(assay))


def invoke(command: click.Command, arguments: list[str] | None = None) -> int:
    """Run a command and answer its exit code; what a person can mend is said in one framed message."""
    from jobs.logs import configure
    from schemas.errors import AssayError

    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    configure(arguments, debug=debug)
    try:
        outcome: Any = command.main(args=arguments, prog_name=command.name, standalone_mode=False)
        return int(outcome or 0)
    except click.exceptions.Abort:
        click.echo("stopped; nothing was published", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except AssayError as error:
        if debug:
            logging.getLogger(__name__).exception("what led to it")
        for line in error.details:
            click.echo(line, err=True)
        _frame(error)
        return error.exit_code
    except KeyboardInterrupt:
        click.echo("stopped; nothing was published", err=True)
        return 130
    except Exception as error:
        if debug:
            raise
        _frame(AssayError(f"unexpected: {type(error).__name__}: {str(error)[:2000]}", hint="--debug shows the trace"))
        return 1


def _frame(error: Exception) -> None:
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console(stderr=True)
    name = type(error).__name__.removesuffix("Error") or "Error"
    if console.is_terminal:
        console.print(Panel(Text(str(error).strip()), title=name, border_style="red"))
    else:
        click.echo(f"assay: {name}: {str(error).strip()}", err=True)
