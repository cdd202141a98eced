# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone chat` against a recorded stream of an OpenAI-compatible server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tritone.tools.openai_client import ask, connect, first_model
from tritone.tools.problems import LaunchError

HEAD: dict[str, Any] = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
PIECES: list[dict[str, Any]] = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"choices": [{"index": 0, "delta": {"content": "Par"}}]},
    {"choices": [{"index": 0, "delta": {"content": "is."}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}},
]


class Handler(BaseHTTPRequestHandler):
    received: list[dict[str, Any]] = []

    def do_GET(self) -> None:
        self._send(200, "application/json", json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.received.append(body)
        if body["model"] == "none":
            self._send(404, "application/json", json.dumps({"error": {"message": "no model `none`"}}))
            return
        events = "".join(f"data: {json.dumps(HEAD | piece)}\n\n" for piece in PIECES)
        self._send(200, "text/event-stream", events + "data: [DONE]\n\n")

    def _send(self, status: int, content_type: str, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Handler.received.clear()
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_an_answer_streams_to_standard_output(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with connect(url, None) as client:
        assert first_model(client) == "m"
        answer = ask(client, "m", "Capital?", system="Be brief.", max_tokens=9, temperature=0.0)
    assert (answer.text, answer.finish_reason, answer.num_tokens) == ("Paris.", "stop", 2)
    assert 0 < answer.first_token_s <= answer.total_s
    assert capsys.readouterr().out == "Paris.\n"
    [body] = Handler.received
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["max_tokens"], body["temperature"], body["stream"]) == (9, 0.0, True)


def test_what_was_not_asked_for_is_not_sent(url: str) -> None:
    with connect(url, None) as client:
        ask(client, "m", "Capital?")
    [body] = Handler.received
    assert set(body) <= {"model", "messages", "stream", "stream_options", "max_tokens", "temperature"}
    assert body.get("max_tokens") is None and body.get("temperature") is None


def test_a_refusal_is_said_in_words(url: str) -> None:
    with connect(url, None) as client, pytest.raises(LaunchError, match="no model `none`"):
        ask(client, "none", "Capital?")
