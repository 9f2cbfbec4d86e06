"""What leaves a command by the terminal or a log has no secret, no control character, and no forged line."""

import io
import json
import logging
import sys
from pathlib import Path

import click
import pytest

from jobs.cli import assay, invoke
from jobs.support.logs import JsonLines, SafeLines
from jobs.support.terminal import SafeStream, echo_line, guard_streams, open_console, print_line
from schemas.errors import AssayError, InputError
from tests.helpers.published_runs import publish

SECRET = "hunter2-Xyz"
URI = f"http://me:{SECRET}@host:5000/x"
HOSTILE = "evil\x1b]0;own\x07\x9b\u202e\rnew"
SHOWN = "evil\\u001b]0;own\\u0007\\u009b\\u202e\\u000dnew"


def is_clean(text: str) -> bool:
    return SECRET not in text and not set("\x1b\x9b\u202e\r") & set(text)


@pytest.mark.parametrize("formatter", [SafeLines("%(levelname)s %(message)s"), JsonLines()])
def test_a_log_line_of_any_library_is_safe_and_one_line(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"cannot reach {URI} {HOSTILE}")
    except ValueError:
        trace = sys.exc_info()
    record = logging.LogRecord("urllib3", logging.WARNING, "x", 1, "%s\nERROR %s", (URI, HOSTILE), trace)
    text = formatter.format(record)
    assert is_clean(text)
    if isinstance(formatter, JsonLines):
        entry = json.loads(text)
        assert entry["message"] == f"http://(hidden)@host:5000/x\nERROR {HOSTILE}"
        assert "\n" not in text and SECRET not in entry["trace"]
    else:
        assert text.startswith(f"WARNING http://(hidden)@host:5000/x\\u000aERROR {SHOWN}\nTraceback")


def test_whatever_is_written_to_the_streams_is_safe(capfd: pytest.CaptureFixture[str]) -> None:
    with guard_streams():
        print(URI, HOSTILE)
        print(URI, HOSTILE, file=sys.stderr)
        click.echo(f"{URI} {HOSTILE}")
        echo_line(f"new\n✓ gate pass {HOSTILE}")
    out, err = capfd.readouterr()
    assert is_clean(out) and is_clean(err)
    assert out.splitlines() == [*[f"http://(hidden)@host:5000/x {SHOWN}"] * 2, f"new\\u000a✓ gate pass {SHOWN}"]
    assert f"http://(hidden)@host:5000/x {SHOWN}" in err


def test_a_secret_is_hidden_although_its_name_was_written_before(capfd: pytest.CaptureFixture[str]) -> None:
    with guard_streams():
        print("password:", SECRET, file=sys.stderr)
        print("user me, token =", end=" ")
        print(SECRET, end="")
        sys.stdout.flush()
        sys.stdout.write("\r\n")
        sys.stdout.buffer.write(f"-----BEGIN PRIVATE KEY-----\na\n{SECRET}".encode())
    assert capfd.readouterr() == ("user me, token = (hidden)\n(hidden)", "password: (hidden)\n")


def test_names_are_printed_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    console = open_console()
    print_line(console, "doc:apple:1 [red] 12:30")
    console.print(Table("doc:apple:2"))
    out = capfd.readouterr().out
    assert "doc:apple:1 [red] 12:30\n" in out and "doc:apple:2" in out


@pytest.mark.parametrize("terminal", [False, True])
def test_a_console_is_safe_and_keeps_its_own_colours(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdout", SafeStream(written))
    monkeypatch.setenv("TERM", "xterm")
    console = open_console()
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE, style="red")
    table.add_row(URI)
    table.add_row(Text(HOSTILE))
    console.print(table, width=200)
    console.print(Panel(Text(f"{URI} {HOSTILE}"), title=HOSTILE), width=200)
    print_line(console, f"{URI}\n[red]{HOSTILE}")
    text = written.getvalue()
    assert SECRET not in text and SHOWN in text
    assert not {"\x9b", "\u202e", "\r"} & set(text) and "\x1b]" not in text
    assert ("\x1b[31m" in text) is terminal
    assert f"http://(hidden)@host:5000/x\\u000a[red]{SHOWN}\n" in text


def test_an_error_has_no_secret_wherever_it_is_shown() -> None:
    error = InputError(f"cannot read {URI}", where=f"a?token={SECRET}", hint=f"password={SECRET}")
    assert str(error) == "cannot read http://(hidden)@host:5000/x (a?token=(hidden)): password=(hidden)"
    assert SECRET not in repr(error) + error.what + error.where + error.hint


@pytest.mark.parametrize("error", [RuntimeError(f"{URI} {HOSTILE}"), AssayError(f"{URI} {HOSTILE}", details=[URI])])
@pytest.mark.parametrize("options", [[], ["--debug"], ["--debug", "--log=json"]])
def test_a_failing_command_prints_no_secret(
    error: Exception, options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    @click.command("fail", context_settings={"ignore_unknown_options": True})
    @click.argument("rest", nargs=-1)
    def command(rest: tuple[str, ...]) -> None:
        raise error

    assert invoke(command, options) == 1
    out, err = capfd.readouterr()
    assert out == "" and is_clean(err)
    assert f"http://(hidden)@host:5000/x {SHOWN}" in err
    assert ("Traceback" in err) is bool(options)


@pytest.mark.parametrize("log", [[], ["--log=json"]])
@pytest.mark.parametrize("debug", [False, True])
def test_a_stack_trace_is_printed_with_debug_only(
    debug: bool, log: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    @click.command("fail", context_settings={"ignore_unknown_options": True})
    @click.argument("rest", nargs=-1)
    def command(rest: tuple[str, ...]) -> None:
        try:
            raise ValueError("no header")
        except ValueError:
            logging.getLogger("urllib3.connection").warning("cannot parse", exc_info=True, stack_info=True)
        raise RuntimeError(
            "An error occurred while calling o1.x.\n: a.B: c\n\tat a.B.c(D.java:1)\nCaused by: a.BError: why"
        )

    assert invoke(command, [*log, *(["--debug"] if debug else [])]) == 1
    err = capfd.readouterr().err
    assert "cannot parse" in err and "unexpected: RuntimeError: why" in err
    assert ("Traceback" in err) is debug
    assert ("a.B.c(D.java:1)" in err) is debug


def test_hostile_systems_and_damaged_manifests_are_listed_safely(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, systems=[HOSTILE, "new"])
    (tmp_path / "runs" / "2026-11-01" / f"{HOSTILE}.json").write_text("{")
    for words in (["runs"], ["runs", "--output", "json"], ["fsck"], ["fsck", "--output", "json"]):
        invoke(assay, [*words, "--warehouse", str(tmp_path)])
        out, err = capfd.readouterr()
        assert is_clean(out) and is_clean(err), words
        assert "\\u001b" in out + err
        if "json" in words:
            json.loads(out)


def test_a_secret_that_is_cut_is_hidden_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    long = f"{SECRET}-" * 60
    config = tmp_path / "c.yaml"
    config.write_text(f"inputs: [{{path: 'https://me:{long}@host.example/'}}]")

    @click.command("fail")
    def command() -> None:
        raise RuntimeError(f"{'x' * 1_900} https://me:{long}@host.example/")

    assert invoke(command, []) == 1
    assert invoke(assay, ["config", "--config", str(config)]) == 2
    assert invoke(assay, ["config", "--config", str(config), "--set", f"https://me:{long}@host.example/"]) == 2
    out, err = capfd.readouterr()
    assert SECRET not in out + err
