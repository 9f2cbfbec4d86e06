"""A real S3 server of this machine, and a proxy in front of it that loses the answers to conditional puts."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.end_to_end.cluster.conftest import find_port
from tests.end_to_end.conftest import ROOT

LAKEHOUSE = ROOT / ".venv-lakehouse"
KEYS = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
BOTO = ("boto3", "botocore", "s3transfer", "jmespath")
PATIENCE = 600.0  # seconds for the server to start


def borrow_boto(folder: Path) -> Path:
    """A folder for the module path with boto3, which the environment of Assay does not have."""
    (site,) = (LAKEHOUSE / "lib").glob("python*/site-packages")
    folder.mkdir()
    for name in BOTO:
        (folder / name).symlink_to(site / name)
    return folder


@contextmanager
def serve_s3(log: Path) -> Iterator[int]:
    """Start the server with an empty bucket `lake`, and yield its port."""
    port = find_port()
    with log.open("wb") as output:
        command = [str(LAKEHOUSE / "bin" / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            bucket = urllib.request.Request(f"http://127.0.0.1:{port}/lake", method="PUT")
            try:
                urllib.request.urlopen(bucket, timeout=30).close()
                break
            except (OSError, urllib.error.URLError):
                assert server.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
        yield port
    finally:
        server.terminate()
        server.wait(30)


class LosingProxy:
    """Forwards bytes; the answers of the next `lost` conditional puts are dropped after they were carried out."""

    def __init__(self, port: int) -> None:
        self.lost = 0
        self.ends_at_put = False  # stop answering when the next one arrives
        self.created: list[str] = []  # the paths of the conditional puts so far
        self._upstream = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop answering at all."""
        for end in (self._server, *self._sockets):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                self._sockets += [client, server]
                losing = threading.Event()
                for pump in (self._send, self._answer):
                    threading.Thread(target=pump, args=(client, server, losing), daemon=True).start()

    def _send(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if data.startswith(b"PUT ") and b"if-none-match: *" in data.lower():
                    if self.ends_at_put:
                        self.close()
                        return
                    self.created.append(data.split(b" ")[1].decode())
                    if self.lost > 0:
                        self.lost -= 1
                        losing.set()
                server.sendall(data)

    def _answer(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if losing.is_set() and not data.startswith(b"HTTP/1.1 100"):
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
