"""A command `assay` for shells: each call of it is a command of a process that stays warm."""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

# What completes words in a shell is told by a variable, which the warm process does not have.
SCRIPT = """#!{python} -IS
import json, os, socket, sys
if "_ASSAY_COMPLETE" in os.environ:
    os.execv({installed!r}, ["assay", *sys.argv[1:]])
with socket.create_connection(("127.0.0.1", {port})) as connection, connection.makefile("rw") as lines:
    lines.write(json.dumps(sys.argv[1:]) + "\\n")
    lines.flush()
    code, out, err = json.loads(lines.readline())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
Answer = tuple[int, str, str]  # the exit code, and what was printed to the two streams


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        answer = cast(_Server, self.server).run(json.loads(self.rfile.readline()))
        self.wfile.write(json.dumps(answer).encode() + b"\n")


class _Server(socketserver.TCPServer):
    def __init__(self, run: Callable[[list[str]], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.run = run


@contextmanager
def forward_command(folder: Path, run: Callable[[list[str]], Answer]) -> Iterator[Path]:
    """Write the command to a folder for the `PATH`; `run` gets the words of each call, one call after the other."""
    with _Server(run) as server:
        command, installed = folder / "assay", Path(sys.executable).with_name("assay")
        port = server.server_address[1]
        command.write_text(SCRIPT.format(python=sys.executable, installed=str(installed), port=port), encoding="utf-8")
        command.chmod(0o755)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            server.shutdown()
            thread.join()
