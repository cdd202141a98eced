# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A stage that breaks the order of its chunks costs one request a clear error, streamed or not. (reliability T27)"""

from __future__ import annotations

import httpx
import pytest
from doubles.events import parse_events
from doubles.fake_transport import FakeTransport, Step, text_script

from tritone.ensembles.protocol import ChunkKind
from tritone.gateway.transport import Chunk

PATH = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "Hi"}]}
A, B, C, DONE = text_script(["a", "b", "c"])
assert isinstance(DONE, Chunk)

BROKEN: dict[str, list[Step]] = {
    "gap": [A, C, DONE],
    "repeated": [A, A, B, C, DONE],
    "swapped": [B, A, C, DONE],
    "not-from-zero": [B, C, DONE],
    "no-end": [A, B, C],
    "empty": [],
    "two-ends": [A, B, C, DONE, DONE._replace(chunk_index=4)],
    "text-after-the-end": [A, B, C, DONE, Chunk(4, ChunkKind.TEXT, text="d")],
    "choice-out-of-range": [A, Chunk(1, ChunkKind.TEXT, choice_index=7, text="b"), Chunk(2, ChunkKind.DONE)],
    "negative-choice": [A, Chunk(1, ChunkKind.TEXT, choice_index=-2, text="b"), Chunk(2, ChunkKind.DONE)],
    "details-no-json": [A, Chunk(1, ChunkKind.TEXT, text="b", details=b"{"), Chunk(2, ChunkKind.DONE)],
    "usage-no-json": [A, Chunk(1, ChunkKind.DONE, details=b"\xff")],
    "usage-of-text": [A, Chunk(1, ChunkKind.DONE, details=b'{"usage":{"prompt_tokens":"x"}}')],
    "lone-surrogate": [A, Chunk(1, ChunkKind.TEXT, text="\ud800"), Chunk(2, ChunkKind.DONE)],
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("steps", BROKEN.values(), ids=BROKEN)
async def test_a_broken_order_is_an_error(
    client: httpx.AsyncClient, transport: FakeTransport, steps: list[Step], stream: bool
) -> None:
    transport.script_for = lambda call: steps
    response = await client.post(PATH, json={**BODY, "stream": stream})
    if response.status_code == 200:
        events = parse_events(response.text)
        assert stream and not events.is_done
        error = events.events[-1]["error"]
        assert [event for event in events.events if "error" in event] == events.events[-1:]
    else:
        assert response.status_code == 500
        error = response.json()["error"]
    assert error["code"] == "internal"
    assert len(response.content) < 16384
    assert all(stream.has_ended or stream.is_cancelled_early for stream in transport.streams)
    transport.script_for = lambda call: [A, B, C, DONE]
    good = await client.post(PATH, json=BODY)
    assert good.json()["choices"][0]["message"]["content"] == "abc"


async def test_the_good_order(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.script_for = lambda call: [A, B, C, DONE]
    events = parse_events((await client.post(PATH, json={**BODY, "stream": True})).text)
    assert events.is_done
    deltas = [event["choices"][0]["delta"].get("content", "") for event in events.events]
    assert "".join(deltas) == "abc"
    assert [event["choices"][0]["finish_reason"] for event in events.events].count("stop") == 1
    assert events.events[-1]["choices"][0]["finish_reason"] == "stop"
