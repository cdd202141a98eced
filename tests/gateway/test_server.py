# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The process: bad HTTP on the wire, stopping with requests running, start-up faults."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from doubles.fake_transport import FakeTransport, Hang, text_script
from doubles.live_gateway import LiveGateway, live_gateway, until

from tritone.gateway.settings import GatewaySettings

CHAT = "/v1/chat/completions"
STREAM: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with live_gateway(FakeTransport(), GatewaySettings(max_header_bytes=16384)) as running:
        yield running


def exchange(gateway: LiveGateway, data: bytes) -> tuple[int, dict[str, Any]]:
    """Status and JSON body of the answer to raw bytes."""
    with gateway.connect() as connection:
        connection.sendall(data)
        received = b""
        while part := connection.recv(65536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/x\r\n\r\n", 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: x\r\nx-a: " + b"a" * 20_000, 431),
        (b"GET /" + b"a" * 20_000, 431),
    ],
)
def test_bad_http_gets_the_envelope(gateway: LiveGateway, data: bytes, status: int) -> None:
    got, body = exchange(gateway, data)
    assert got == status
    assert set(body["error"]) == {"message", "type", "param", "code"}


def test_two_requests_on_one_connection(gateway: LiveGateway) -> None:
    request = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    with gateway.connect() as connection:
        for _ in range(2):
            connection.sendall(request)
            received = b""
            while not received.endswith(b'{"status":"ok"}'):
                received += connection.recv(65536)


def test_the_server_does_not_name_itself(gateway: LiveGateway) -> None:
    with gateway.connect() as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"server:" not in connection.recv(65536).lower()


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(65536):
        received += part
    return received


def test_a_stop_lets_a_stream_finish() -> None:
    transport = FakeTransport(lambda call: text_script(["a", "b", "c"], accept=True, pause_s=0.1))
    with live_gateway(transport, GatewaySettings(drain_timeout_s=5)) as gateway:
        connection = gateway.post(CHAT, STREAM)
        until(lambda: bool(transport.streams))
    assert b"[DONE]" in read_all(connection)
    connection.close()
    assert transport.is_closed


def test_a_stop_tells_a_stream_that_cannot_finish() -> None:
    transport = FakeTransport(lambda call: [*text_script(["a"], accept=True)[:1], Hang()])
    received: list[bytes] = []
    with live_gateway(transport, GatewaySettings(drain_timeout_s=0.2)) as gateway:
        connection = gateway.post(CHAT, STREAM)
        reader = threading.Thread(target=lambda: received.append(read_all(connection)))
        reader.start()
        until(lambda: bool(transport.streams))
        time.sleep(0.05)
    reader.join()
    connection.close()
    assert b'"error"' in received[0]
    assert transport.streams[0].is_cancelled_early


def run_gateway(**environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tritone.gateway.server"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_bad_variable_stops_the_start() -> None:
    process = run_gateway(TRITONE_PORT="many")
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"TRITONE_PORT='many': allowed is 0..65535" in errors


def test_sigterm_ends_the_process() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = run_gateway(TRITONE_PORT=str(port), TRITONE_TRITON_GRPC="127.0.0.1:1")

    def is_listening() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    until(is_listening, within_s=20)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert all(json.loads(line) for line in errors.splitlines())
