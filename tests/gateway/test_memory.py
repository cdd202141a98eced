# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Hostile bodies against a gateway process whose memory is watched. (reliability T09, T10, T11)"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from doubles.live_gateway import LiveGateway, until
from doubles.raw_http import Answer, parse_answers, read_until_close

MIB = 1 << 20
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
GOOD = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()
PROGRAM = """
import sys
from doubles.fake_transport import FakeTransport
from tritone.gateway import server
from tritone.gateway.app import create_app
from tritone.gateway.settings import GatewaySettings
settings = GatewaySettings(
    port=int(sys.argv[1]), max_body_bytes=16 << 20, max_bodies_bytes=48 << 20, body_timeout_s=5, drain_timeout_s=1
)
server.create_app = lambda settings: create_app(settings, FakeTransport())
server.run(settings)
"""


class Gateway(LiveGateway):
    """A gateway process and its memory."""

    process: psutil.Process

    def rss(self) -> int:
        return int(self.process.memory_info().rss)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(port)], env=environment) as process:
        try:
            found = Gateway(port)
            found.process = psutil.Process(process.pid)

            def is_listening() -> bool:
                with socket.socket() as connection:
                    return connection.connect_ex(("127.0.0.1", port)) == 0

            until(is_listening, within_s=30)
            # Once up to what a body of full size takes in order, so that growth after it is growth.
            send(found, json.dumps({"messages": [{"role": "user", "content": "x" * (15 << 20)}]}).encode())
            yield found
        finally:
            process.terminate()


def send(gateway: Gateway, body: bytes) -> Answer:
    with gateway.connect() as connection:
        connection.settimeout(60)
        try:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        except OSError:
            pass
        (answer,) = parse_answers(read_until_close(connection), ["POST"])
    return answer


class Peak:
    """The largest memory of a process while the block runs."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.bytes = 0

    def __enter__(self) -> Peak:
        self._before = self._gateway.rss()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.bytes = max(self.bytes, self._gateway.rss() - self._before)


def test_a_gigabyte_without_a_length(gateway: Gateway) -> None:
    piece = b"10000\r\n" + b"QUJD" * 16384 + b"\r\n"
    with Peak(gateway) as peak, gateway.connect() as connection:
        connection.sendall(HEAD + b'Transfer-Encoding: chunked\r\n\r\n8\r\n{"a": "A\r\n')
        num_sent = 0
        try:
            while num_sent < 1 << 30:
                connection.sendall(piece)
                num_sent += len(piece)
        except OSError:
            pass
        (answer,) = parse_answers(read_until_close(connection), ["POST"])
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert num_sent < 128 * MIB
    assert peak.bytes < 64 * MIB


# Each fills the body limit with what costs most for its size: values of two bytes, keys, strings, brackets, escapes.
SIZE = 15 << 20
BOMBS = {
    "empty-lists": b'{"messages":[' + b"[]," * (SIZE // 3) + b"[]]}",
    "empty-objects": b'{"messages":[' + b"{}," * (SIZE // 3) + b"{}]}",
    "empty-strings": b'{"messages":[' + b'"",' * (SIZE // 3) + b'""]}',
    "numbers": b'{"messages":[' + b"1," * (SIZE // 2) + b"1]}",
    "floats": b'{"messages":[' + b"1e9," * (SIZE // 4) + b"1]}",
    "keys": b"{" + b",".join(b'"%x":0' % i for i in range(SIZE // 12)) + b"}",
    "deep-lists": b'{"a":' + b"[" * (SIZE // 2) + b"]" * (SIZE // 2) + b"}",
    "deep-objects": b'{"a":' * (SIZE // 5),
    "closing": b'{"a":' + b"[" * 31 + b"]" * SIZE,
    "pairs": b"[]" * (SIZE // 2),
    "backslashes": b'{"a":"' + b"\\" * SIZE + b'"}',
    "escaped-quotes": b'{"a":"' + b'\\"' * (SIZE // 2) + b'","a":1}',
    "unicode-escapes": b'{"a":"' + b"\\u0041" * (SIZE // 6) + b'","a":1}',
    "quotes-outside": b'\\"' * (SIZE // 2),
    "long-number": b'{"n":' + b"9" * SIZE + b"}",
    "million-items": b'{"prompt":[' + b"1," * 1_000_000 + b"1]}",
    "spaces": b" " * SIZE,
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_bodies_that_cost_more_than_they_weigh(gateway: Gateway, body: bytes) -> None:
    lags: list[float] = []
    done = threading.Event()

    def probe() -> None:
        while not done.is_set():
            began = time.monotonic()
            with gateway.connect() as connection:
                connection.settimeout(30)
                connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert b"200 OK" in read_until_close(connection)
            lags.append(time.monotonic() - began)

    with ThreadPoolExecutor(1) as pool, Peak(gateway) as peak:
        probing = pool.submit(probe)
        answer = send(gateway, body)
        done.set()
        probing.result()
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert len(answer.body) < 1000
    assert peak.bytes < 100 * MIB
    assert max(lags) < 3  # a hang guard; 0.02 to 0.3 on two busy cores
    assert send(gateway, GOOD).status == 200


def test_many_large_bodies_at_once(gateway: Gateway) -> None:
    """Bodies that stay unfinished are held only up to the common limit; small requests get through meanwhile."""
    with ThreadPoolExecutor(16) as pool, Peak(gateway) as peak:

        def hold(_: int) -> int:
            with gateway.connect() as connection:
                connection.settimeout(30)
                try:
                    connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (15 << 20) + b" " * (14 << 20))
                except OSError:
                    pass
                (answer,) = parse_answers(read_until_close(connection), ["POST"])
                return answer.status

        held = [pool.submit(hold, number) for number in range(16)]
        until(lambda: sum(future.done() for future in held) >= 10, within_s=20)
        assert send(gateway, GOOD).status == 200
        statuses = [future.result() for future in held]
    assert set(statuses) == {503, 408}
    assert statuses.count(408) <= 4
    assert peak.bytes < 256 * MIB
    # What was held is given back.
    assert send(gateway, b" " * (14 << 20)).status == 400
