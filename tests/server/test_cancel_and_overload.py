# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A closed socket frees its row, before the first token too; a full server says so; nobody else notices.

`tiny_chat` has room for two rows and two waiting requests. Whether a row is free shows in when the next request
gets its first token.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
import pytest

MODEL = "tiny_chat"
# Freed rows are promised within one second; ten times that is a hang.
HANG_S = 10.0
LONG: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "x"}],
    "max_tokens": 7500,
    "ignore_eos": True,
}
SHORT: dict[str, Any] = LONG | {"max_tokens": 2}


def open_request(base_url: str, body: dict[str, Any]) -> socket.socket:
    """Send a request on a bare socket and leave its answer unread."""
    address = urlsplit(base_url)
    assert address.hostname and address.port
    connection = socket.create_connection((address.hostname, address.port), timeout=HANG_S)
    payload = json.dumps(body).encode()
    head = (
        f"POST {address.path}/chat/completions HTTP/1.1\r\nhost: {address.netloc}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(payload)}\r\n\r\n"
    )
    connection.sendall(head.encode() + payload)
    return connection


def wait_for_chunk(connection: socket.socket) -> None:
    received = b""
    while b"data:" not in received:
        part = connection.recv(65536)
        assert part, received
        received += part


def seconds_to_answer(client: openai.OpenAI) -> float:
    """How long a short request takes, retrying while the server says that it is full."""
    began = time.monotonic()
    while time.monotonic() - began < HANG_S:
        try:
            client.post("/chat/completions", body=SHORT, cast_to=object)
            return time.monotonic() - began
        except openai.InternalServerError as error:
            assert error.status_code == 503
            time.sleep(0.02)
    raise AssertionError("no row became free")


@pytest.mark.parametrize("stream", [True, False])
def test_closing_the_socket_frees_running_rows(client: openai.OpenAI, base_url: str, stream: bool) -> None:
    connections = [open_request(base_url, LONG | {"stream": stream}) for _ in range(2)]
    if stream:
        for connection in connections:
            wait_for_chunk(connection)
    else:
        time.sleep(0.5)
    for connection in connections:
        connection.close()
    assert seconds_to_answer(client) < HANG_S


def test_closing_before_the_first_token_frees_the_place_in_the_queue(client: openai.OpenAI, base_url: str) -> None:
    running = [open_request(base_url, LONG | {"stream": True}) for _ in range(2)]
    for connection in running:
        wait_for_chunk(connection)
    waiting = [open_request(base_url, LONG | {"stream": True}) for _ in range(2)]
    time.sleep(0.3)
    for connection in waiting:
        connection.close()
    # Their places are free again when two new requests are accepted rather than refused.
    deadline = time.monotonic() + HANG_S
    while True:
        answers = [httpx_stream_status(base_url, LONG) for _ in range(1)]
        if answers == [200]:
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for connection in running:
        connection.close()
    assert seconds_to_answer(client) < HANG_S


def httpx_stream_status(base_url: str, body: dict[str, Any]) -> int:
    with httpx.stream("POST", f"{base_url}/chat/completions", json=body | {"stream": True}, timeout=HANG_S) as answer:
        return answer.status_code


def test_a_full_server_refuses_with_retry_after_and_serves_on(client: openai.OpenAI, base_url: str) -> None:
    holders = [open_request(base_url, LONG | {"stream": True}) for _ in range(4)]
    try:
        wait_for_chunk(holders[0])
        time.sleep(0.3)
        answer = httpx.post(f"{base_url}/chat/completions", json=SHORT, timeout=HANG_S)
        assert answer.status_code == 503
        assert float(answer.headers["retry-after"]) >= 1
        assert answer.json()["error"]["code"] == "overloaded"
    finally:
        for connection in holders:
            connection.close()
    assert seconds_to_answer(client) < HANG_S


def test_the_other_pipeline_does_not_notice(client: openai.OpenAI, base_url: str) -> None:
    holders = [open_request(base_url, LONG | {"stream": True}) for _ in range(4)]
    try:
        answer = client.chat.completions.create(
            model="smollm2_chat",
            messages=[{"role": "user", "content": "What is the capital of France?"}],
            temperature=0,
            max_tokens=16,
        )
        assert "Paris" in (answer.choices[0].message.content or "")
    finally:
        for connection in holders:
            connection.close()
    assert seconds_to_answer(client) < HANG_S


def test_many_clients_that_vanish_leave_nothing(client: openai.OpenAI, base_url: str) -> None:
    def vanish(delay_s: float) -> None:
        connection = open_request(base_url, LONG | {"stream": True})
        time.sleep(delay_s)
        # A reset, not an orderly close.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()

    threads = [threading.Thread(target=vanish, args=(0.01 * i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seconds_to_answer(client) < HANG_S
    assert seconds_to_answer(client) < HANG_S


def test_a_seeded_answer_survives_a_neighbours_cancel(client: openai.OpenAI, base_url: str) -> None:
    body: dict[str, Any] = SHORT | {"max_tokens": 200, "seed": 11, "temperature": 1.0}
    alone = client.post("/chat/completions", body=body, cast_to=object)
    neighbour = open_request(base_url, LONG | {"stream": True})
    wait_for_chunk(neighbour)
    threading.Timer(0.1, neighbour.close).start()
    beside = client.post("/chat/completions", body=body, cast_to=object)
    assert isinstance(alone, dict) and isinstance(beside, dict)
    assert alone["choices"] == beside["choices"]
