# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway on a real socket, in a thread of its own: for tests where connections matter."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tritone.gateway.app import create_app
from tritone.gateway.server import server
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.transport import Transport


class LiveGateway(NamedTuple):
    """Where a running gateway listens."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, *, receive_buffer_bytes: int | None = None) -> socket.socket:
        """A plain TCP connection to it."""
        connection = socket.socket()
        if receive_buffer_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        connection.settimeout(5)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def post(self, path: str, body: dict[str, Any], **options: Any) -> socket.socket:
        """A connection on which a JSON request was sent and nothing read yet."""
        connection = self.connect(**options)
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        connection.sendall(head.encode() + data)
        return connection


@contextmanager
def live_gateway(transport: Transport, settings: GatewaySettings | None = None) -> Iterator[LiveGateway]:
    """Serve until the block ends; the stop drains."""
    settings = settings or GatewaySettings(drain_timeout_s=1)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    running = server(settings, create_app(settings, transport))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until(lambda: running.started)
        yield LiveGateway(listener.getsockname()[1])
    finally:
        running.should_exit = True
        thread.join(10)
        listener.close()
    assert not thread.is_alive()


def until(condition: Callable[[], bool], *, within_s: float = 5.0) -> float:
    """Wait for a condition; gives the seconds it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, "the condition did not come true in time"
        time.sleep(0.005)
    return time.monotonic() - began
