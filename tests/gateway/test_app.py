# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The layers around the routes: envelope, limits, CORS, request ids, logs, metrics, models and health."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from doubles.fake_transport import FakeTransport, Hang, capabilities, text_script
from prometheus_client.parser import text_string_to_metric_families

from tritone.errors import Internal
from tritone.gateway.routes import health
from tritone.gateway.transport import ModelState, ModelStatus

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "Hi"}]}
JSON = {"content-type": "application/json"}


def assert_envelope(response: httpx.Response, status: int, code: str) -> None:
    assert response.status_code == status
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert response.json()["error"]["code"] == code
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]


async def test_unknown_route(client: httpx.AsyncClient) -> None:
    assert_envelope(await client.get("/v1/nope"), 404, "route_not_found")
    assert_envelope(await client.get("/v1/models/"), 404, "route_not_found")


async def test_wrong_method(client: httpx.AsyncClient) -> None:
    response = await client.get(CHAT)
    assert_envelope(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


async def test_a_fault_of_ours_shows_nothing(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("/srv/secret.py at 0x7f00")

    transport.script_for = broken
    response = await client.post(CHAT, json=BODY)
    assert_envelope(response, 500, "internal")
    assert "secret" not in response.text
    assert response.headers["x-request-id"] in response.text


async def test_a_fault_outside_of_a_stream(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    async def broken() -> list[ModelStatus]:
        raise RuntimeError("/srv/secret.py at 0x7f00")

    transport.models = broken  # type: ignore[method-assign]
    response = await client.get("/v1/models")
    assert_envelope(response, 500, "internal")
    assert "secret" not in response.text


# --- limits ---------------------------------------------------------------------------------------------------------
async def test_body_too_large_with_a_length(new_client: Any) -> None:
    client = new_client(max_body_bytes=1024)
    response = await client.post(CHAT, content=b"x" * 1025, headers=JSON)
    assert_envelope(response, 413, "body_too_large")
    assert response.headers["connection"] == "close"


async def test_body_too_large_without_a_length(new_client: Any) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 512
            yield b"x" * 512

    response = await new_client(max_body_bytes=1024).post(CHAT, content=endless(), headers=JSON)
    assert_envelope(response, 413, "body_too_large")
    assert taken <= 2048


async def test_a_slow_body_times_out(new_client: Any) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    assert_envelope(await new_client(body_timeout_s=0.05).post(CHAT, content=slow(), headers=JSON), 408, "timeout")


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "identity, gzip"])
async def test_compressed_bodies(client: httpx.AsyncClient, encoding: str) -> None:
    response = await client.post(CHAT, content=b"{}", headers={**JSON, "content-encoding": encoding})
    assert_envelope(response, 415, "unsupported_encoding")


async def test_large_headers(client: httpx.AsyncClient) -> None:
    assert_envelope(await client.get("/v1/models", headers={"x-a": "a" * 40_000}), 431, "headers_too_large")
    many = {f"x-{index}": "a" for index in range(200)}
    assert_envelope(await client.get("/v1/models", headers=many), 431, "headers_too_large")


async def test_the_server_is_full(new_client: Any, transport: FakeTransport) -> None:
    transport.script_for = lambda call: [Hang()]
    client = new_client(max_inflight=1, max_waiting=0)
    running = asyncio.create_task(client.post(CHAT, json=BODY))
    while not transport.streams:
        await asyncio.sleep(0.005)
    response = await client.post(CHAT, json=BODY)
    assert_envelope(response, 503, "overloaded")
    assert int(response.headers["retry-after"]) >= 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    transport.script_for = lambda call: text_script(["a"])
    assert (await client.post(CHAT, json=BODY)).status_code == 200


# --- CORS -----------------------------------------------------------------------------------------------------------
PREFLIGHT = {"origin": "https://a.example", "access-control-request-method": "POST"}


async def test_cors_is_off_by_default(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/models", headers={"origin": "https://a.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]
    assert (await client.options(CHAT, headers=PREFLIGHT)).status_code == 405


async def test_cors_allow_list(new_client: Any) -> None:
    client = new_client(cors_origins=("https://a.example",), api_keys=("a-long-key",))
    # As OpenAI's SDK asks from a browser.
    wanted = "authorization, content-type, x-stainless-arch, x-stainless-os, x-stainless-retry-count"
    preflight = await client.options(CHAT, headers={**PREFLIGHT, "access-control-request-headers": wanted})
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-headers"] == wanted
    assert preflight.headers["access-control-allow-origin"] == "https://a.example"
    refused = await client.options(CHAT, headers={**PREFLIGHT, "origin": "https://b.example"})
    assert "access-control-allow-origin" not in refused.headers
    # Even a refusal can be read by the page that made the request.
    answer = await client.get("/v1/models", headers={"origin": "https://a.example"})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "https://a.example"


# --- request id, trace, log, metrics --------------------------------------------------------------------------------
async def test_request_id_is_kept_or_minted(client: httpx.AsyncClient) -> None:
    given = await client.get("/health/live", headers={"x-request-id": "abc-1.2:3"})
    assert given.headers["x-request-id"] == "abc-1.2:3"
    minted = [(await client.get("/health/live", headers={"x-request-id": bad})) for bad in ("a b", "x" * 129, "")]
    assert all(re.fullmatch(r"[0-9a-f]{32}", response.headers["x-request-id"]) for response in minted)


async def test_traceparent_is_passed_on(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    good = f"00-{'a' * 32}-{'b' * 16}-01"
    await client.post(CHAT, json=BODY, headers={"traceparent": good})
    assert transport.calls[-1].traceparent == good
    assert transport.params()["log_id"].endswith(good)
    await client.post(CHAT, json=BODY, headers={"traceparent": "00-zz"})
    assert transport.calls[-1].traceparent is None


async def test_one_access_line(client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tritone")
    await client.post(CHAT, json={**BODY, "stream": True})
    (record,) = [record for record in caplog.records if record.message == "request"]
    fields = record.__dict__["fields"]
    assert fields["route"] == CHAT
    assert fields["model"] == "fake"
    assert (fields["status"], fields["outcome"]) == (200, "ok")
    assert (fields["prompt_tokens"], fields["completion_tokens"]) == (3, 3)
    assert 0 <= fields["first_token_ms"] <= fields["duration_ms"]


async def test_the_outcomes_add_up(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    await client.post(CHAT, json=BODY)
    await client.post(CHAT, json={**BODY, "stream": True})
    await client.post(CHAT, json={**BODY, "model": "zz"})
    await client.get("/nope")
    transport.script_for = lambda call: [Internal("broken")]
    await client.post(CHAT, json=BODY)
    transport.script_for = lambda call: [*text_script(["a", "b"])[:1], Internal("broken")]
    await client.post(CHAT, json={**BODY, "stream": True})
    text = (await client.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    outcomes: dict[str, float] = {}
    for sample in families["tritone_gateway_requests"].samples:
        if sample.name.endswith("_total"):
            outcomes[sample.labels["outcome"]] = outcomes.get(sample.labels["outcome"], 0) + sample.value
    assert outcomes == {"ok": 2, "rejected": 2, "failed": 2}
    assert families["tritone_gateway_inflight_requests"].samples[0].value == 1  # the scrape itself
    tokens = sum(s.value for s in families["tritone_gateway_completion_tokens"].samples if s.name.endswith("_total"))
    assert tokens == 7
    gaps = [s for s in families["tritone_gateway_inter_chunk_seconds"].samples if s.name.endswith("_count")]
    assert gaps[0].value == 4


async def test_tritons_metrics_are_appended(
    new_client: Any, transport: FakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "fetch_metrics", lambda url: b"nv_inference_count 1\n")
    text = (await new_client(triton_metrics="http://127.0.0.1:1/metrics").get("/metrics")).text
    assert "tritone_gateway_requests" in text
    assert text.endswith("nv_inference_count 1\n")


async def test_metrics_of_a_triton_that_is_away(new_client: Any) -> None:
    response = await new_client(triton_metrics="http://127.0.0.1:1/metrics").get("/metrics")
    assert response.status_code == 200
    assert response.text.endswith("# Triton's metrics could not be read\n")


# --- models and health ----------------------------------------------------------------------------------------------
async def test_models(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.pipelines = {"b": capabilities(), "a": capabilities(tool_format=None)}
    body = (await client.get("/v1/models")).json()
    assert [card["id"] for card in body["data"]] == ["a", "b"]
    assert body["data"][0]["created"] == 1760000000
    assert (await client.get("/v1/models/b")).json() == body["data"][1]
    assert_envelope(await client.get("/v1/models/zz"), 404, "model_not_found")


async def test_a_new_model_is_found_at_once(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    await client.get("/v1/models")
    transport.pipelines["late"] = capabilities()
    await asyncio.sleep(1.1)
    assert (await client.get("/v1/models/late")).status_code == 200


async def test_health_when_all_is_well(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health/ready")).json() == {"status": "ready"}
    body = (await client.get("/health")).json()
    assert body == {
        "status": "ready",
        "reason": "",
        "models": {"fake": "READY", "fake_thinker": "READY"},
        "inflight": 0,
    }


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (ModelStatus("fake_thinker", ModelState.UNAVAILABLE, has_failed=True), "model fake_thinker failed to load"),
        (ModelStatus("fake_thinker", ModelState.UNAVAILABLE), "model fake_thinker is not ready"),
        (ModelStatus("other", ModelState.LOADING), "model other is loading"),
        (ModelStatus("fake", ModelState.UNAVAILABLE), "no pipeline is loaded"),
    ],
)
async def test_not_ready(client: httpx.AsyncClient, transport: FakeTransport, status: ModelStatus, reason: str) -> None:
    transport.statuses = {status.name: status}
    assert (await client.get("/health/ready")).status_code == 503
    response = await client.get("/health")
    assert (response.status_code, response.json()["reason"]) == (503, reason)
    assert (await client.get("/health/live")).status_code == 200


async def test_not_ready_while_the_server_is_away(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.is_away = True
    assert (await client.get("/health/ready")).status_code == 503
    assert (await client.get("/v1/models")).status_code == 503
