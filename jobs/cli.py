"""The command line: `assay COMMAND`. Each command is a module, imported when it is called."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from typing import Any, NoReturn

import click

COMMANDS = {
    "evaluate": ("jobs.evaluate", "Score systems against labels and publish the result."),
    "inspect": ("jobs.inspect", "Show what is in files, and draft the configuration that reads them."),
    "check": ("jobs.check", "Check the data of a date without evaluating it."),
    "label": ("jobs.label", "Build labels from a log and publish them without evaluating anything."),
    "explain": ("jobs.explain", "Explain how a list got its metrics, or why a document has its grade."),
    "propensity": ("jobs.propensity", "Plot the probability that a position is examined, relative to position 1."),
    "simulate": ("jobs.simulate", "Simulate a search log, and write the truth beside it."),
    "judge": ("jobs.judge", "Draw queries whose results people should judge, or compare two judges."),
    "compare": ("jobs.compare", "Compare two published runs by query."),
    "export": ("jobs.export", "Write the lists and labels of a run as TREC files, for trec_eval."),
    "power": ("jobs.power", "Compute how many queries are needed to detect a difference."),
    "report": ("jobs.report", "Write the HTML report of a run, or of a comparison of two."),
    "trend": ("jobs.trend", "Plot a metric over the committed runs."),
    "track": ("jobs.track", "Log published runs to MLflow, or send the pending ones."),
    "runs": ("jobs.runs", "List the committed runs, newest first."),
    "tables": ("jobs.tables", "Print views of the published tables for Spark SQL, DuckDB, pandas or Polars."),
    "contract": ("jobs.contract", "Write the contracts of all tables in the Open Data Contract Standard."),
    "vacuum": ("jobs.vacuum", "Remove runs that newer ones replace."),
    "fsck": ("jobs.fsck", "Check manifests against the files, sizes and schemas of their tables."),
    "config": ("jobs.config", "Print the resolved configuration and the origin of each value."),
    "metrics": ("jobs.metrics", "List the metrics, or explain one."),
    "doctor": ("jobs.doctor", "Check that this machine has what Assay needs."),
}
COLLECT_AFTER = (50_000, 20, 100)  # objects, and collections of the younger generation
MAX_MESSAGE = 2_000  # characters of an error that is not ours


class LazyGroup(click.Group):
    """A click group that imports only the command that is called."""

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
    """Evaluate search rankings, from judgments or from behaviour logs.

    \b
    assay evaluate --config conf/demo.yaml --date 2026-11-01
    assay runs --warehouse build/demo/warehouse
    """


def main() -> NoReturn:
    """Run the console command."""
    run_process(assay)


def run_process(command: click.Command) -> NoReturn:
    """Run a command as this process, which ends with its exit code.

    Python looks through all objects for garbage each time that there are a few hundred more, and again when it ends.
    With the libraries of a run, whose objects all stay, this took more than two seconds.
    """
    gc.set_threshold(*COLLECT_AFTER)
    code = invoke(command)
    gc.freeze()
    sys.exit(code)


def invoke(command: click.Command, arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; errors that users can fix are printed in one framed message."""
    from jobs.support.logs import configure_logging
    from jobs.support.signals import catch_signals, received_signal
    from jobs.support.terminal import guard_streams

    arguments = sys.argv[1:] if arguments is None else arguments
    with guard_streams(), catch_signals():
        configure_logging(arguments, debug="--debug" in arguments)
        try:
            outcome: Any = command.main(args=arguments, prog_name=command.name, standalone_mode=False)
            return int(outcome or 0)
        except BaseException as error:
            number = received_signal()
            if number is None:
                return _report(error, debug="--debug" in arguments)
            click.echo("interrupted; a run that was not committed yet is removed", err=True)
            return 128 + number


def _report(error: BaseException, *, debug: bool) -> int:
    """Print an error and return its exit code."""
    from schemas.errors import AssayError

    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        click.echo("aborted", err=True)
        return 130
    if isinstance(error, click.ClickException):
        error.show()
        return 2
    if debug:
        logging.getLogger(__name__).error("the cause", exc_info=error)
    if isinstance(error, Exception) and not isinstance(error, AssayError):
        from schemas.spark_errors import find_cause

        error = find_cause(error) or error
    if isinstance(error, AssayError):
        for line in error.details:
            click.echo(line, err=True)
        _print_framed(error)
        return error.exit_code
    text = f"unexpected: {type(error).__name__}: {_describe_unexpected(error)}"
    _print_framed(AssayError(text, hint="" if debug else "--debug shows the stack trace"))
    return 1


def _describe_unexpected(error: BaseException) -> str:
    """The text of an error; one of Java has its stack trace in it, which is left out."""
    from schemas.redact import cut_text

    if not isinstance(error, Exception) or "\n\tat " not in str(error):
        return cut_text(str(error), MAX_MESSAGE)
    from schemas.spark_errors import describe_spark_error

    return describe_spark_error(error)[1]


def _print_framed(error: Exception) -> None:
    from rich.panel import Panel
    from rich.text import Text

    from jobs.support.terminal import open_console

    console = open_console(stderr=True)
    name = type(error).__name__.removesuffix("Error") or "Error"
    if console.is_terminal:
        console.print(Panel(Text(str(error).strip()), title=name, border_style="red"))
    else:
        click.echo(f"assay: {name}: {str(error).strip()}", err=True)
