# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Raw bytes to an HTTP server and its answers back, parsed by a parser that is not ours."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any, NamedTuple

import h11


class Answer(NamedTuple):
    """One response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The `code` of an error envelope."""
        error: dict[str, Any] = json.loads(self.body)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return str(error["code"])


def read_until_close(connection: socket.socket) -> bytes:
    """All that comes; a reset ends it as a close does."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    return received


def parse_answers(received: bytes, methods: list[str]) -> list[Answer]:
    """The final responses in `received`, which answer requests of these methods."""
    answers = []
    for method in methods:
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(received)
        client.receive_data(b"")
        status, headers, body = 0, {}, b""
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            assert isinstance(event, h11.InformationalResponse | h11.Response | h11.Data), event
            if isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
        answers.append(Answer(status, headers, body))
        received = client.trailing_data[0]
    assert not received, received[:200]
    return answers
