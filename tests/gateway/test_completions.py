# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`/v1/completions`: prompt forms, choices, logprobs, streaming."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from doubles.events import parse_events
from doubles.fake_transport import FakeTransport

PATH = "/v1/completions"


async def post(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post(PATH, json=fields)


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        ("Hi", [("Hi", None)]),
        ("", [("", None)]),
        (["a", "b"], [("a", None), ("b", None)]),
        ([1, 2, 3], [(None, (1, 2, 3))]),
        ([[1], [2, 3]], [(None, (1,)), (None, (2, 3))]),
    ],
)
async def test_prompt_forms(client: httpx.AsyncClient, transport: FakeTransport, prompt: Any, sent: Any) -> None:
    response = await post(client, prompt=prompt)
    assert response.status_code == 200
    assert [choice["text"] for choice in response.json()["choices"]] == ["Hello, world"] * len(sent)
    assert [(transport.params(i).get("prompt"), transport.calls[i].input_ids) for i in range(len(sent))] == sent


@pytest.mark.parametrize(
    "prompt", [[], [[]], [["a"]], ["a", 1], [1, "a"], [1.5], [True], [-1], [2**31], [1000], None, {}, 5, ["a"] * 65]
)
async def test_bad_prompts_name_the_field(client: httpx.AsyncClient, prompt: Any) -> None:
    response = await post(client, prompt=prompt)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "prompt"


async def test_choices_of_several_prompts(client: httpx.AsyncClient) -> None:
    body = (await post(client, prompt=["a", "b"], n=2)).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert body["object"] == "text_completion"
    assert body["usage"]["completion_tokens"] == 12


async def test_logprobs_format(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    expected = {
        "tokens": ["Hello", ",", " world"],
        "token_logprobs": [-0.5] * 3,
        "top_logprobs": [{token: -0.5, "other": -1.5} for token in ("Hello", ",", " world")],
        "text_offset": [0, 5, 6],
    }
    body = (await post(client, prompt="a", logprobs=2)).json()
    assert body["choices"][0]["logprobs"] == expected
    assert (transport.params()["logprobs"], transport.params()["top_logprobs"]) == (True, 2)
    events, _ = parse_events((await post(client, prompt="a", logprobs=2, stream=True)).text)
    parts = [event["choices"][0]["logprobs"] for event in events]
    assert {key: [item for part in parts for item in part[key]] for key in expected} == expected


async def test_stream(client: httpx.AsyncClient) -> None:
    fields = {"prompt": ["a", "b"], "stream": True, "stream_options": {"include_usage": True}}
    events, is_done = parse_events((await post(client, **fields)).text)
    assert is_done
    assert {event["object"] for event in events} == {"text_completion"}
    assert len({event["id"] for event in events}) == 1
    for index in (0, 1):
        choices = [c for event in events for c in event["choices"] if c["index"] == index]
        assert "".join(choice["text"] for choice in choices) == "Hello, world"
        assert [choice["finish_reason"] for choice in choices] == [None, None, "stop"]
    assert events[-1]["usage"]["prompt_tokens"] == 6


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"suffix": "x"}, "suffix"),
        ({"echo": True}, "echo"),
        ({"best_of": 3}, "best_of"),
        ({"logprobs": True}, "logprobs"),
        ({"prompt": ["a"] * 64, "n": 3}, "prompt"),
        ({"messages": []}, "messages"),
    ],
)
async def test_refused_fields(client: httpx.AsyncClient, fields: dict[str, Any], param: str) -> None:
    response = await post(client, **{"prompt": "a", **fields})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


async def test_harmless_fields(client: httpx.AsyncClient) -> None:
    fields = {"suffix": None, "echo": False, "best_of": 1, "user": "u"}
    assert (await post(client, prompt="a", **fields)).status_code == 200
