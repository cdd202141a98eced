# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A client that goes away, on a real socket: at every point of a request its streams are cancelled at once."""

from __future__ import annotations

import json
import logging
import re
import socket
import struct
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from doubles.fake_transport import FakeTransport, Hang, Pause, Step, text_script
from doubles.live_gateway import LiveGateway, live_gateway, until

from tritone.ensembles.protocol import ChunkKind
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.transport import Chunk

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
STREAM = {**BODY, "stream": True}
ACCEPTED, FIRST = text_script(["a", "b"], accept=True)[:2]
WITHIN_S = 1.0  # from socket close to cancelled stream


@pytest.fixture(scope="module")
def transport() -> FakeTransport:
    return FakeTransport()


@pytest.fixture(scope="module")
def gateway(transport: FakeTransport) -> Iterator[LiveGateway]:
    with live_gateway(transport, GatewaySettings(drain_timeout_s=1, max_unread_bytes=1 << 20)) as running:
        yield running


def play(transport: FakeTransport, steps: list[Step]) -> None:
    transport.script_for = lambda call: steps
    transport.streams.clear()


def inflight(gateway: LiveGateway) -> int:
    with urllib.request.urlopen(f"{gateway.url}/health") as answer:
        return int(json.load(answer)["inflight"])


def outcomes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """How the requests that ended during the test ended."""
    fields = [record.__dict__["fields"] for record in caplog.records if record.message == "request"]
    return [entry["outcome"] for entry in fields if entry["route"] == CHAT]


def reset(connection: socket.socket) -> None:
    """Close with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half_close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)


def close(connection: socket.socket) -> None:
    connection.close()


@pytest.mark.parametrize("leave", [close, reset, half_close])
@pytest.mark.parametrize(
    ("body", "steps", "reads"),
    [
        pytest.param(STREAM, [Hang()], None, id="stream-before-accepted"),
        pytest.param(STREAM, [ACCEPTED, Hang()], b"assistant", id="stream-before-first-token"),
        pytest.param(STREAM, [ACCEPTED, FIRST, Hang()], b'"a"', id="stream-between-tokens"),
        pytest.param(BODY, [Hang()], None, id="body-before-first-token"),
        pytest.param(BODY, [Chunk(0, ChunkKind.TEXT, text="a", num_tokens=1), Hang()], None, id="body-between-tokens"),
    ],
)
def test_leaving_cancels_the_stream(
    gateway: LiveGateway,
    transport: FakeTransport,
    body: dict[str, Any],
    steps: list[Step],
    reads: bytes | None,
    leave: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    play(transport, steps)
    connection = gateway.post(CHAT, body)
    until(lambda: len(transport.streams) == 1)
    received = b""
    while reads is not None and reads not in received:
        received += connection.recv(65536)
    leave(connection)
    assert until(lambda: transport.streams[0].is_cancelled_early) < WITHIN_S
    assert until(lambda: inflight(gateway) == 0) < WITHIN_S
    connection.close()
    until(lambda: outcomes(caplog)[-1:] == ["cancelled"])
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_leaving_a_batch_cancels_all_of_it(gateway: LiveGateway, transport: FakeTransport) -> None:
    play(transport, [Hang()])
    connection = gateway.post(f"{CHAT}/batch", {"messages": [BODY["messages"]] * 5})
    until(lambda: len(transport.streams) == 5)
    connection.close()
    until(lambda: all(stream.is_cancelled_early for stream in transport.streams), within_s=WITHIN_S)


def test_leaving_within_the_body_starts_nothing(gateway: LiveGateway, transport: FakeTransport) -> None:
    play(transport, [Hang()])
    connection = gateway.connect()
    connection.sendall(
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode()
    )
    until(lambda: inflight(gateway) == 1)
    connection.close()
    until(lambda: inflight(gateway) == 0, within_s=WITHIN_S)
    assert not transport.streams


def test_leaving_after_the_end_cancels_nothing(gateway: LiveGateway, transport: FakeTransport) -> None:
    play(transport, text_script(["a"], accept=True))
    connection = gateway.post(CHAT, STREAM)
    received = b""
    while b"[DONE]" not in received:
        received += connection.recv(65536)
    connection.close()
    until(lambda: inflight(gateway) == 0)
    assert not transport.streams[0].is_cancelled_early


def test_a_storm_of_leaving_clients(gateway: LiveGateway, transport: FakeTransport) -> None:
    play(transport, [ACCEPTED, FIRST, Hang()])
    connections = [gateway.post(CHAT, STREAM) for _ in range(48)]
    until(lambda: len(transport.streams) == 48)
    for connection in connections:
        reset(connection)
    until(lambda: all(stream.is_cancelled_early for stream in transport.streams), within_s=2 * WITHIN_S)
    play(transport, text_script(["a"]))
    connection = gateway.post(CHAT, BODY)
    assert b"200 OK" in connection.recv(65536)
    connection.close()


def test_a_client_that_does_not_read_is_dropped(
    gateway: LiveGateway, transport: FakeTransport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    # 40 MB of output: far more than the sockets' buffers and the limit of 1 MB together.
    steps: list[Step] = []
    for index in range(4000):
        steps += [Chunk(index, ChunkKind.TEXT, text="x" * 10_000, num_tokens=1), *([Pause(0.001)] * (index % 20 == 0))]
    play(transport, [*steps, Hang()])
    connection = gateway.post(CHAT, STREAM, receive_buffer_bytes=4096)
    until(lambda: bool(transport.streams) and transport.streams[0].is_cancelled_early)
    until(lambda: inflight(gateway) == 0, within_s=WITHIN_S)
    # The connection is gone, not waiting to be read out.
    with pytest.raises(ConnectionResetError):
        while connection.recv(1 << 20):
            pass
    connection.close()
    assert outcomes(caplog)[-1] == "cancelled"
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_a_body_that_is_not_read_is_given_up(transport: FakeTransport, caplog: pytest.LogCaptureFixture) -> None:
    """The place of a finished generation is free again although its client never reads the answer."""
    caplog.set_level(logging.INFO)
    play(transport, [*text_script(["x" * 1_000_000] * 20)])
    with live_gateway(transport, GatewaySettings(drain_timeout_s=1, write_timeout_s=0.3)) as gateway:
        connection = gateway.post(CHAT, BODY, receive_buffer_bytes=4096)
        until(lambda: bool(transport.streams) and transport.streams[0].has_ended)
        began = time.monotonic()
        until(lambda: inflight(gateway) == 0, within_s=10)
        assert time.monotonic() - began > 0.2
        with pytest.raises(ConnectionResetError):
            while connection.recv(1 << 20):
                pass
        connection.close()
    assert outcomes(caplog)[-1] == "cancelled"
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@pytest.mark.parametrize("body", [STREAM, BODY], ids=["stream", "body"])
def test_the_end_of_an_answer_that_is_not_read(transport: FakeTransport, body: dict[str, Any]) -> None:
    """All chunks came, less than the unread limit of them waits: the write timeout ends it."""
    play(transport, text_script(["x" * 100_000] * 60))
    with live_gateway(transport, GatewaySettings(drain_timeout_s=1, write_timeout_s=0.3)) as gateway:
        connections = [gateway.post(CHAT, body, receive_buffer_bytes=4096) for _ in range(8)]
        until(lambda: len(transport.streams) == 8)
        until(lambda: inflight(gateway) == 0, within_s=10)
        for connection in connections:
            connection.close()


def test_a_slow_client_that_reads_gets_everything(gateway: LiveGateway, transport: FakeTransport) -> None:
    play(transport, text_script(["x" * 1000] * 500))
    connection = gateway.post(CHAT, STREAM, receive_buffer_bytes=4096)
    received = b""
    while b"[DONE]" not in received:
        received += connection.recv(2048)
        time.sleep(0.0001)
    connection.close()
    body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", received)  # without the framing of the chunks
    assert body.count(b"x" * 1000) == 500
