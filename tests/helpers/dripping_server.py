"""A server that answers every request one byte at a time, so that no read times out and no answer ends."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def serve_drops(pause: float = 0.05) -> Iterator[str]:
    """Serve on a free port and yield the address."""
    stopped = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    threads = []

    def drip(connection: socket.socket) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            for byte in answer + b" " * 1_000_000:
                if stopped.wait(pause):
                    return
                connection.sendall(bytes([byte]))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                thread = threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True)
                thread.start()
                threads.append(thread)

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopped.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (acceptor, *threads):
            thread.join(timeout=10)
