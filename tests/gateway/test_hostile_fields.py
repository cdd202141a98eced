# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Well-formed JSON with bad intentions: names that are paths, fields that steer, errors that amplify.
(reliability T14, T15, T18, T20)
"""

from __future__ import annotations

import json
import logging
import urllib.parse
from typing import Any

import httpx
import pytest
from doubles.fake_grpc_triton import FakeGrpcTriton, chunk_message
from doubles.fake_transport import FakeTransport, capabilities, text_script

from tritone.gateway.app import create_app
from tritone.gateway.calls import MAX_BYTES_PER_TOKEN, MAX_OTHER_BYTES
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.transport import Chunk
from tritone.gateway.triton_transport import TritonTransport

CHAT, COMPLETIONS, BATCH = "/v1/chat/completions", "/v1/completions", "/v1/chat/completions/batch"
USER = {"role": "user", "content": "Hi"}
NAMES = [
    "../fake",
    "..",
    ".",
    "../../etc/passwd",
    "/etc/passwd",
    "fake/../fake",
    "%2e%2e%2ffake",
    "..%2ffake",
    "fake\x00",
    "\x00",
    "fake\n",
    "fake\r\nX-A: b",
    "fake ",
    " fake",
    "x" * 10_000,
    "fake\u202e",
    "\ufeff",
    "f\u0430ke",  # a Cyrillic letter
    "fake;ls",
    "$(id)",
    "{{7*7}}",
    "<script>",
    "file:///etc/passwd",
    "~/fake",
    "C:\\fake",
    "\\\\host\\fake",
    "",
]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, BATCH])
@pytest.mark.parametrize("name", NAMES)
async def test_model_names_that_are_no_names(
    client: httpx.AsyncClient, transport: FakeTransport, name: str, path: str
) -> None:
    body = {"model": name, **({"prompt": "a"} if path == COMPLETIONS else {"messages": [USER]})}
    response = await client.post(path, json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "model")
    assert len(response.content) < 400
    assert not name.strip(".x ") or name not in response.json()["error"]["message"]
    assert not transport.calls


@pytest.mark.parametrize("name", NAMES)
async def test_model_names_in_the_path(client: httpx.AsyncClient, transport: FakeTransport, name: str) -> None:
    asked = 0

    async def count() -> Any:
        nonlocal asked
        asked += 1
        return []

    transport.models = count  # type: ignore[method-assign]
    request = client.build_request("GET", "/v1/models")
    request.url = httpx.URL(f"http://gateway/v1/models/{urllib.parse.quote(name, safe='')}")
    response = await client.send(request)
    assert response.status_code in (200, 404, 431)  # "" and ".." are other paths, as a browser resolves them
    assert len(response.content) < 400
    if response.status_code == 404:
        assert asked == 0, "the inference server was asked for a name that cannot exist"


async def test_a_name_that_may_exist_is_said_back(client: httpx.AsyncClient) -> None:
    for name in ("gpt-4o", "Qwen/Qwen3-0.6B", "ft:gpt-4o:org"):
        response = await client.post(CHAT, json={"model": name, "messages": [USER]})
        assert response.status_code == 404
        assert f"`{name}`" in response.json()["error"]["message"]


# --- fields that would steer what is behind -------------------------------------------------------------------------
STEERING = [
    "prompt_embeds",
    "inputs_embeds",
    "input_ids",
    "past_key_values",
    "tensor",
    "accept",
    "cancel",
    "handle",
    "log_id",
    "request_id",
    "correlation_id",
    "sequence_id",
    "sequence_start",
    "priority",
    "timeout",
    "parameters",
    "params",
    "triton_enable_empty_final_response",
    "triton_final_response",
    "chat_template",
    "lora_path",
    "guided_regex",
    "logits_processors",
    "__class__",
    "__proto__",
]


@pytest.mark.parametrize("field", STEERING)
async def test_no_field_steers_a_stage(client: httpx.AsyncClient, transport: FakeTransport, field: str) -> None:
    for value in ("x" * 100, {"a": 1}, [0.5] * 100, True, {"__class__": "os.system", "__reduce__": ["id"]}):
        for path, body in ((CHAT, {"messages": [USER]}), (COMPLETIONS, {"prompt": "a"})):
            if (path, field) == (COMPLETIONS, "prompt"):
                continue
            response = await client.post(path, json={**body, field: value})
            assert (response.status_code, response.json()["error"]["param"]) == (400, field.replace("$", "?"))
    assert not transport.calls


async def test_steering_names_in_free_maps_stay_where_they_are(
    client: httpx.AsyncClient, transport: FakeTransport
) -> None:
    """Maps of the client's own keys reach a stage under their own name or not at all."""
    own = {name: "x" for name in STEERING[:16]}
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in STEERING}}
    response = await client.post(
        CHAT,
        json={
            "messages": [USER],
            "metadata": own,
            "chat_template_kwargs": own,
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
        },
    )
    assert response.status_code == 200, response.text
    params = transport.params()
    assert set(params) == {"messages", "log_id", "chat_template_kwargs", "response_format", "tools"}
    assert params["chat_template_kwargs"] == own
    assert params["log_id"] == response.headers["x-request-id"]


async def test_two_clients_that_choose_the_same_id_stay_apart() -> None:
    """The id a client gives is for logs: Triton sees ids and parameters of the gateway's own."""
    triton = FakeGrpcTriton(messages=[chunk_message(step, is_final=step.kind.value == "done") for step in _chunks()])
    triton.states = {"fake": ("READY", "")}
    triton.configs = {"fake": await FakeTransport().parameters("fake")}
    address = await triton.start()
    transport = TritonTransport(address)
    app = create_app(GatewaySettings(), transport)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        for body in ({"messages": [USER]}, {"messages": [USER], "user": "same", "metadata": {"request_id": "same"}}):
            response = await client.post(
                CHAT, json=body, headers={"x-request-id": "same", "triton-request-id": "same", "x-correlation-id": "1"}
            )
            assert response.status_code == 200, response.text
    await transport.close()
    await triton.stop()
    ids = [request.id for request in triton.requests]
    assert len(set(ids)) == 2 and "same" not in ids
    for request in triton.requests:
        assert set(request.parameters) == {"triton_enable_empty_final_response"}
        assert [tensor.name for tensor in request.inputs] == ["params"]
    for metadata in triton.metadata:
        assert not {"triton-request-id", "x-correlation-id", "x-request-id"} & set(metadata)


def _chunks() -> list[Chunk]:
    return [step for step in text_script(["a", "b"]) if isinstance(step, Chunk)]


# --- errors that amplify --------------------------------------------------------------------------------------------
SECRET = "SECRET-INPUT"
AMPLIFIERS: dict[str, dict[str, Any]] = {
    "messages": {"messages": [{"role": SECRET, "content": {"a": SECRET}}] * 4096},
    "too-many-messages": {"messages": [SECRET] * 12_000},
    "stop": {"messages": [USER], "stop": [{"a": SECRET}] * 12_000},
    "ids": {"messages": [USER], "stop_token_ids": [SECRET] * 12_000},
    "bias": {"messages": [USER], "logit_bias": {f"{SECRET}{i}": SECRET for i in range(12_000)}},
    "tools": {"messages": [USER], "tools": [{"type": SECRET, SECRET: SECRET}] * 128},
    "parts": {"messages": [{"role": "user", "content": [{"type": SECRET, "x": i} for i in range(1024)]}]},
    "unknown-fields": {"messages": [USER], **{f"field_{i}" * 50: SECRET for i in range(12_000)}},
    "long-field-name": {"messages": [USER], "f" * 1_000_000: SECRET},
    "metadata": {"messages": [USER], "metadata": {f"{i}": [SECRET] for i in range(12_000)}},
    "nested": {"messages": [{"role": "assistant", "tool_calls": [{"id": 1, "function": {SECRET: 1}}] * 128}] * 90},
}


@pytest.mark.parametrize("body", AMPLIFIERS.values(), ids=AMPLIFIERS)
async def test_many_faults_make_a_small_answer(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    response = await client.post(CHAT, json=body)
    assert response.status_code == 400
    assert len(response.content) <= 16_384
    assert response.json()["error"]["message"].count("`: ") <= 20
    # A field's name is said, shortened, so that its owner finds it; a value never.
    assert SECRET not in response.text.replace(f"logit_bias.{SECRET}", "").replace(f".{SECRET}", "")


async def test_prompts_of_the_wrong_kind(client: httpx.AsyncClient) -> None:
    prompts: tuple[Any, ...] = (
        [SECRET, 1] * 6000,
        [[SECRET]] * 12_000,
        [[1, "x"]] * 12,
        {"a": 1},
        [[]],
        [1, -1],
        [1.5],
    )
    for prompt in prompts:
        response = await client.post(COMPLETIONS, json={"prompt": prompt})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "prompt")
        assert len(response.content) < 1000 and SECRET not in response.text


# --- prompts that cannot fit ----------------------------------------------------------------------------------------
async def test_a_prompt_far_beyond_the_context_never_reaches_a_stage(
    client: httpx.AsyncClient, transport: FakeTransport
) -> None:
    transport.pipelines = {"fake": capabilities(context_tokens=100)}
    too_long = "x" * (100 * MAX_BYTES_PER_TOKEN + MAX_OTHER_BYTES)
    for path, body, field in (
        (CHAT, {"messages": [{"role": "user", "content": too_long}]}, "messages"),
        (COMPLETIONS, {"prompt": too_long}, "prompt"),
        (COMPLETIONS, {"prompt": [1] * 101}, "prompt"),
        (COMPLETIONS, {"prompt": [[1], [1] * 101]}, "prompt"),
        (BATCH, {"messages": [[USER], [{"role": "user", "content": too_long}]]}, "messages"),
    ):
        response = await client.post(path, json=body)
        assert (response.status_code, response.json()["error"]["param"]) == (400, field)
    assert not transport.calls
    assert (await client.post(COMPLETIONS, json={"prompt": [1] * 100})).status_code == 200
    long_enough = "x" * (100 * MAX_BYTES_PER_TOKEN)
    assert (await client.post(COMPLETIONS, json={"prompt": long_enough})).status_code == 200


# --- what ends up in logs -------------------------------------------------------------------------------------------
async def test_nothing_a_client_writes_breaks_a_log_line(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    from tritone.gateway.logs import JsonFormatter

    caplog.set_level(logging.DEBUG, logger="tritone")
    forged = '{"level":"error"}'
    good_trace = f"00-{'a' * 32}-{'b' * 16}-01"
    for headers in (
        {"x-request-id": f"a\n{forged}"},
        {"x-request-id": "a\u2028b".encode().decode("latin-1")},
        {"traceparent": f"{good_trace}\n{forged}"},
        {"traceparent": f"{good_trace}-extra"},
        {"traceparent": f"ff-{'a' * 32}-{'b' * 16}-01"},
        {"traceparent": f"00-{'0' * 32}-{'b' * 16}-01"},
        {"traceparent": f"00-{'a' * 32}-{'0' * 16}-01"},
        {"tracestate": forged, "user-agent": forged, "referer": forged},
    ):
        encoded = {name.encode(): value.encode("latin-1", "replace") for name, value in headers.items()}
        await client.post(f"/v1/chat/completions?key={SECRET}", json={"messages": [USER]}, headers=encoded)
    await client.request("X" * 5000, f"/{SECRET}", headers={"x-a": SECRET})
    await client.post(CHAT, json={"messages": [{"role": "user", "content": SECRET}], "model": forged})
    formatter = JsonFormatter()
    lines = [formatter.format(record) for record in caplog.records if record.name.startswith("tritone")]
    assert len(lines) == 10
    for line in lines:
        fields = json.loads(line)
        assert "\n" not in line and len(line) < 600
        assert SECRET not in line and "forged" not in line and '\\"level' not in line
        assert "traceparent" not in fields
        assert fields["method"] in ("POST", "other")
