# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Bad requests: each names its field, quotes nothing of the input and stays small; the next request is right."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from doubles.fake_transport import FakeTransport, capabilities

PATH = "/v1/chat/completions"
USER = {"role": "user", "content": "Hi"}
SECRET = "SECRET-INPUT"

BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": SECRET}, "messages"),
    ({"messages": [SECRET]}, "messages[0]"),
    ({"messages": [{"role": SECRET, "content": "a"}]}, "messages[0].role"),
    ({"messages": [USER, {"content": "a"}]}, "messages[1].role"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}, "messages[0].content[0].text"),
    ({"messages": [{"role": "user", "content": [{"type": SECRET}]}]}, "messages[0].content[0].type"),
    ({"messages": [{**USER, "tool_call_id": "a"}]}, "messages[0].tool_call_id"),
    ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].tool_call_id"),
    ({"messages": [{**USER, "zz": 1}]}, "messages[0].zz"),
    ({"model": 5}, "model"),
    ({"model": ""}, "model"),
    ({"temperature": "1"}, "temperature"),
    ({"temperature": 2.5}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"top_p": 1.01}, "top_p"),
    ({"top_k": -2}, "top_k"),
    ({"min_p": 1}, "min_p"),
    ({"n": 0}, "n"),
    ({"n": 17}, "n"),
    ({"n": 1.5}, "n"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 2**70}, "max_tokens"),
    ({"max_tokens": 1, "max_completion_tokens": 2}, "max_completion_tokens"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"presence_penalty": 3}, "presence_penalty"),
    ({"stop": ""}, "stop[0]"),
    ({"stop": ["a"] * 17}, "stop"),
    ({"stop": [1]}, "stop[0]"),
    ({"seed": 2**63}, "seed"),
    ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
    ({"logit_bias": {"x": 1}}, "logit_bias.x"),
    ({"logit_bias": {"1": 101}}, "logit_bias.1"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"logprobs": 1}, "logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"stream": 1}, "stream"),
    ({"stream_options": {}}, "stream_options"),
    ({"stream": True, "stream_options": {"zz": 1}}, "stream_options.zz"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"unknown_field": 1}, "unknown_field"),
    ({"extra_body": {"top_k": 1}}, "extra_body"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs"),
]
UNSUPPORTED_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
     "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0].type"),
    ({"modalities": ["text", "audio"]}, "modalities"),
    ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"function_call": "auto"}, "function_call"),
    ({"prediction": {"type": "content", "content": "a"}}, "prediction"),
    ({"web_search_options": {}}, "web_search_options"),
    ({"reasoning_effort": "low"}, "reasoning_effort"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param"), BAD_FIELDS + UNSUPPORTED_FIELDS)
async def test_the_field_is_named(
    client: httpx.AsyncClient, transport: FakeTransport, fields: dict[str, Any], param: str
) -> None:
    response = await client.post(PATH, json={"messages": [USER], **fields})
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param or error["param"].startswith(f"{param}[")
    assert SECRET not in response.text
    assert not transport.calls
    assert (await client.post(PATH, json={"messages": [USER]})).status_code == 200


@pytest.mark.parametrize("fields", [fields for fields, _ in UNSUPPORTED_FIELDS if "modalities" not in fields])
async def test_unsupported_has_its_code(client: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    response = await client.post(PATH, json={"messages": [USER], **fields})
    assert response.json()["error"]["code"] == "unsupported"


async def test_harmless_fields_are_accepted(client: httpx.AsyncClient) -> None:
    fields = {
        "user": "u",
        "metadata": {"a": "b"},
        "store": False,
        "service_tier": "auto",
        "parallel_tool_calls": True,
        "modalities": ["text"],
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "audio": None,
        "reasoning_effort": None,
        "tools": [],
        "logit_bias": {},
    }
    response = await client.post(PATH, json={"messages": [USER], **fields})
    assert response.status_code == 200, response.text


async def test_many_faults_stay_small(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": SECRET, "content": []}] * 4000, **{f"field_{i}" * 20: 1 for i in range(2000)}}
    response = await client.post(PATH, json=body)
    assert response.status_code == 400
    assert len(response.content) <= 16384
    assert response.text.count("`: ") <= 20
    assert SECRET not in response.text


async def test_too_many_items(client: httpx.AsyncClient) -> None:
    response = await client.post(PATH, json={"messages": [SECRET] * 100_000})
    assert response.status_code == 400
    assert len(response.content) <= 16384


@pytest.mark.parametrize(
    "body",
    [b"", b"nope", b"[]", b'{"messages":NaN}', b'{"a":1,"a":2}', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":' * 5000],
)
async def test_bad_json(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.post(PATH, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_request"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", ""]
)
async def test_media_type(client: httpx.AsyncClient, kind: str) -> None:
    response = await client.post(PATH, content=b"{}", headers={"content-type": kind})
    assert response.status_code == 415


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=UTF-8"])
async def test_good_media_types(client: httpx.AsyncClient, kind: str) -> None:
    response = await client.post(PATH, content=b"{}", headers={"content-type": kind})
    assert response.status_code == 400


# --- model ----------------------------------------------------------------------------------------------------------
async def test_unknown_model(client: httpx.AsyncClient) -> None:
    response = await client.post(PATH, json={"messages": [USER], "model": "zz"})
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
    assert response.json()["error"]["param"] == "model"


async def test_model_is_needed_when_several_serve(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.pipelines = {"a": capabilities(), "b": capabilities()}
    response = await client.post(PATH, json={"messages": [USER]})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "model")
    assert (await client.post(PATH, json={"messages": [USER], "model": "b"})).json()["model"] == "b"


async def test_model_of_another_route(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.pipelines = {"a": capabilities(routes=["speech"])}
    assert (await client.post(PATH, json={"messages": [USER], "model": "a"})).status_code == 404
    assert (await client.post(PATH, json={"messages": [USER]})).status_code == 404


async def test_the_pipeline_limits_n(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.pipelines = {"a": capabilities(max_n=2)}
    response = await client.post(PATH, json={"messages": [USER], "n": 3})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "n")


async def test_the_stage_is_no_model(client: httpx.AsyncClient) -> None:
    assert (await client.post(PATH, json={"messages": [USER], "model": "fake_thinker"})).status_code == 404
