# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM under load: new requests are refused, running ones end or are told, the exit code is 0. (reliability T48)"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from doubles.live_gateway import LiveGateway, until
from doubles.raw_http import parse_answers, read_until_close

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
LIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
DRAIN_S = 1.5
# A gateway process over a transport that needs no server; a prompt "long" never ends, others take most of a second.
PROGRAM = """
import sys
from doubles.fake_transport import FakeTransport, Hang, text_script
from tritone.gateway import logs, server
from tritone.gateway.app import create_app
from tritone.gateway.settings import GatewaySettings

def script(call):
    if b"long" in call.params:
        return [*text_script(["a"], accept=True)[:2], Hang()]
    return text_script(["a"] * 20, accept=b'"accept"' in call.params, pause_s=0.04)

server.create_app = lambda settings: create_app(settings, FakeTransport(script))
server.run(GatewaySettings(port=int(sys.argv[1]), drain_timeout_s=float(sys.argv[2])))
"""


@contextmanager
def gateway_process() -> Iterator[tuple[LiveGateway, subprocess.Popen[bytes]]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(port), str(DRAIN_S)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
        stderr=subprocess.PIPE,
    )
    gateway = LiveGateway(port)

    def is_listening() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(is_listening, within_s=30)
        yield gateway, process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


class Reader:
    """Reads one answer to its end in a thread."""

    def __init__(self, gateway: LiveGateway, body: dict[str, Any]) -> None:
        self.connection = gateway.post(CHAT, body)
        self.connection.settimeout(30)
        self.received = b""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        self.received = read_until_close(self.connection)

    def result(self) -> bytes:
        self._thread.join(30)
        self.connection.close()
        return self.received


def inflight(gateway: LiveGateway) -> int:
    with urllib.request.urlopen(f"{gateway.url}/health") as answer:
        return int(json.load(answer)["inflight"])


@pytest.mark.parametrize("is_endless", [False, True], ids=["all-finish", "some-never-end"])
def test_sigterm_under_load(is_endless: bool) -> None:
    prompt = {"messages": [{"role": "user", "content": "long" if is_endless else "short"}]}
    with gateway_process() as (gateway, process):
        readers = [Reader(gateway, {**prompt, "stream": stream}) for stream in (True, False) for _ in range(8)]
        until(lambda: inflight(gateway) == 16)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        until(lambda: ask(gateway, LIVE.replace(b"/health/live", b"/v1/models"))[0] == 503)
        refused = gateway.post(CHAT, BODY)
        (answer,) = parse_answers(read_until_close(refused), ["POST"])
        refused.close()
        assert (answer.status, answer.code, answer.headers["connection"]) == (503, "stopping", "close")
        assert int(answer.headers["retry-after"]) >= 1
        assert ask(gateway, LIVE.replace(b"live", b"ready"))[0] == 503
        assert ask(gateway, LIVE)[0] == 200
        results = [reader.result() for reader in readers]
        _, errors = process.communicate(timeout=20)
        duration_s = time.monotonic() - began
    assert process.returncode == 0
    assert duration_s < 10 * DRAIN_S
    for result in results[:8]:
        assert result.startswith(b"HTTP/1.1 200 ")
        assert (b"The server is stopping." if is_endless else b"[DONE]") in result
        assert (b"[DONE]" in result) is not is_endless
    for result in results[8:]:
        (answer,) = parse_answers(result, ["POST"])
        assert answer.status == (503 if is_endless else 200)
        assert not is_endless or answer.code == "overloaded"
    lines = [json.loads(line) for line in errors.splitlines()]
    assert not [line for line in lines if "traceback" in line]
    requests = [line for line in lines if line["message"] == "request" and line["route"] == CHAT]
    assert sorted({line["outcome"] for line in requests}) == (
        ["failed", "rejected"] if is_endless else ["ok", "rejected"]
    )


def ask(gateway: LiveGateway, data: bytes) -> tuple[int, bytes]:
    with gateway.connect() as connection:
        connection.sendall(data)
        (answer,) = parse_answers(read_until_close(connection), ["GET"])
    return answer.status, answer.body


def test_an_idle_gateway_stops_at_once() -> None:
    with gateway_process() as (gateway, process), gateway.connect() as idle:
        idle.sendall(LIVE.replace(b"Connection: close\r\n", b""))
        assert b"200 OK" in idle.recv(65536)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        process.communicate(timeout=20)
        assert process.returncode == 0
        assert time.monotonic() - began < 10
