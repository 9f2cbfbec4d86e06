"""Tracking servers that do not answer as they should."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.helpers.dripping_server import serve_drops


@contextmanager
def serve_nothing() -> Iterator[str]:
    """A server that accepts connections and never answers; yields its address."""
    closed = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def accept() -> None:
            while not closed.is_set():
                try:
                    connections.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            closed.set()
            server.shutdown(socket.SHUT_RDWR)
            for connection in connections:
                connection.close()


@contextmanager
def serve_from_nowhere() -> Iterator[str]:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


SERVERS = {"dead": serve_from_nowhere, "silent": serve_nothing, "dripping": serve_drops}
