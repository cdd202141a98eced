# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""API keys: every route, method and WebSocket asks for one, whatever the path looks like."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import types
from typing import Any

import httpx
import pytest
from doubles.fake_transport import FakeTransport, Hang, text_script

from tritone.gateway.app import create_app
from tritone.gateway.settings import GatewaySettings

KEYS = ("first-key-1", "second-key-2")
GOOD = {"authorization": f"Bearer {KEYS[1]}"}
PATHS = (
    "/v1/chat/completions",
    "/v1/chat/completions/batch",
    "/v1/completions",
    "/v1/models",
    "/v1/models/fake",
    "/health",
    "/metrics",
    "/docs",
    "/redoc",
    "/openapi.json",
    "/",
    "/nope",
)
TRICKS = (
    "//v1/models",
    "/v1/../metrics",
    "/health/live/../../metrics",
    "/health/live/",
    "/health/live%2f..%2f..%2fmetrics",
    "/HEALTH/LIVE",
    "/V1/models",
    "/v1/models/",
    "//health/live",
    "/health/live;x",
    "/%2e/metrics",
    "/metrics?x=/health/live",
)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE")


@pytest.fixture
def client(new_client: Any) -> httpx.AsyncClient:
    made: httpx.AsyncClient = new_client(api_keys=KEYS)
    return made


@pytest.mark.parametrize("path", PATHS + TRICKS)
@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong-key"}, {"authorization": f"Basic {KEYS[0]}"}, {"x-api-key": KEYS[0]}],
)
async def test_without_a_valid_key_every_method_is_401(
    client: httpx.AsyncClient, path: str, headers: dict[str, str]
) -> None:
    for method in METHODS:
        response = await client.request(method, path, headers=headers)
        assert response.status_code == 401, (method, path)
        if method != "HEAD":
            assert response.json()["error"]["code"] == "invalid_api_key"
        assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", TRICKS)
async def test_with_a_key_a_trick_path_is_no_route(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path, headers=GOOD)
    # A query is no part of the path; the HTTP client resolves dot segments itself, as browsers do.
    assert response.status_code == (200 if "metrics" in str(response.request.url.path) and "%" not in path else 404)


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
async def test_the_probes_are_open(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 200


async def test_each_key_works(client: httpx.AsyncClient) -> None:
    for key in KEYS:
        assert (await client.get("/v1/models", headers={"authorization": f"bearer {key}"})).status_code == 200


async def test_without_keys_everything_is_open(new_client: Any) -> None:
    assert (await new_client().get("/v1/models")).status_code == 200


async def websocket_messages(transport: FakeTransport, **scope: Any) -> list[dict[str, Any]]:
    app = create_app(GatewaySettings(api_keys=KEYS), transport)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    base = {"type": "websocket", "path": "/v1/realtime", "headers": [], "query_string": b"", "subprotocols": []}
    await app({**base, **scope}, receive, send)
    return sent


async def test_a_websocket_without_key_is_refused(transport: FakeTransport) -> None:
    for path in ("/v1/realtime", "/health/live"):
        (message,) = await websocket_messages(transport, path=path)
        assert (message["type"], message["code"]) == ("websocket.close", 1008)


@pytest.mark.parametrize(
    "scope",
    [
        {"headers": [(b"authorization", f"Bearer {KEYS[0]}".encode())]},
        {"subprotocols": ["realtime", f"openai-insecure-api-key.{KEYS[0]}"]},
    ],
)
async def test_a_websocket_with_key_reaches_the_router(transport: FakeTransport, scope: dict[str, Any]) -> None:
    messages = await websocket_messages(transport, **scope)
    assert all(message.get("code") != 1008 for message in messages)


async def test_a_refused_websocket_is_a_401_where_the_server_can_say_so(transport: FakeTransport) -> None:
    for headers in ([], [(b"authorization", b"Bearer wrong-key")]):
        extensions: dict[str, Any] = {"websocket.http.response": {}}
        start, body = await websocket_messages(transport, headers=headers, extensions=extensions)
        assert (start["type"], start["status"]) == ("websocket.http.response.start", 401)
        assert (b"www-authenticate", b"Bearer") in start["headers"]
        assert json.loads(body["body"])["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    "path", ["/v1/realtime", "/nope", "/v1/chat/completions", "/health/live", "//v1/realtime", "/"]
)
async def test_a_websocket_that_is_no_route_is_refused_and_counted(
    transport: FakeTransport, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tritone")
    key = [(b"authorization", f"Bearer {KEYS[0]}".encode())]
    (refused,) = await websocket_messages(transport, path=path, headers=key)
    assert refused["type"] == "websocket.close"
    await websocket_messages(transport, path=path)
    fields = [record.__dict__["fields"] for record in caplog.records if record.message == "request"]
    assert [(line["method"], line["status"], line["outcome"]) for line in fields] == [
        ("WEBSOCKET", 403, "rejected")
    ] * 2
    assert [line.get("reason") for line in fields] == ["", "invalid_api_key"]


@pytest.mark.parametrize(
    "values",
    [
        [f"Bearer {KEYS[0]}", "Bearer wrong-key"],
        ["Bearer wrong-key", f"Bearer {KEYS[0]}"],
        [f"Bearer {KEYS[0]}", f"Bearer {KEYS[0]}"],
        [f"Bearer {KEYS[0]}, Bearer wrong-key"],
        [f"Bearer{KEYS[0]}"],
        [f"Bearer\t{KEYS[0]}"],
        [f"Token {KEYS[0]}"],
        [KEYS[0]],
        ["Bearer"],
        ["Bearer " + KEYS[0].upper()],
        ["Bearer " + KEYS[0] + "\xa0x"],
        [f"Bearer {','.join(KEYS)}"],
    ],
)
async def test_one_header_with_exactly_the_key(client: httpx.AsyncClient, values: list[str]) -> None:
    headers = [(b"authorization", value.encode("latin-1")) for value in values]
    assert (await client.get("/v1/models", headers=headers)).status_code == 401


async def test_every_key_is_compared_whatever_was_sent(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the number nor the kind of comparisons tells how near a guess was."""
    compared: list[tuple[int, int]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return hmac.compare_digest(a, b)

    fake = types.SimpleNamespace(compare_digest=compare)
    monkeypatch.setattr("tritone.gateway.middleware.auth.hmac", fake)
    for guess in ("x", KEYS[0], KEYS[1], KEYS[0][:-1], "x" * 5000):
        compared.clear()
        await client.get("/v1/models", headers={"authorization": f"Bearer {guess}"})
        assert compared == [(32, 32)] * len(KEYS)


# --- browsers -------------------------------------------------------------------------------------------------------
ORIGIN = "https://a.example"


@pytest.mark.parametrize(
    "origin",
    ["null", "https://a.example.evil", "https://evil-a.example", "https://A.example", "http://a.example", "https://a.example:444",
     "https://a.example/", "https://a.example, https://b.example", "*", "file://"],
)  # fmt: skip
async def test_an_origin_that_only_looks_allowed(new_client: Any, origin: str) -> None:
    client = new_client(api_keys=KEYS, cors_origins=(ORIGIN,))
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
    }
    for response in (
        await client.options("/v1/chat/completions", headers=asked),
        await client.get("/v1/models", headers={**GOOD, "origin": origin}),
        await client.get("/v1/models", headers={"origin": origin}),
    ):
        assert "access-control-allow-origin" not in response.headers
        assert "example" not in response.text


async def test_a_preflight_opens_nothing(new_client: Any) -> None:
    """It asks for no key, as browsers want it, and so must tell nothing and reach nothing."""
    client = new_client(api_keys=KEYS, cors_origins=(ORIGIN,))
    good = {"origin": ORIGIN, "access-control-request-method": "POST"}
    for path in (*PATHS, *TRICKS):
        response = await client.options(path, headers=good)
        assert (response.status_code, response.text) == (200, "OK")
        assert "access-control-allow-credentials" not in response.headers
    response = await client.options("/metrics", headers={**good, "access-control-request-method": "DELETE"})
    assert response.status_code == 400 and len(response.content) < 200
    # Without the header that makes it one it is a request like any other.
    assert (await client.options("/metrics", headers={"origin": ORIGIN})).status_code == 401


async def test_keys_are_never_logged(client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="tritone")
    await client.get("/v1/models", headers=GOOD)
    await client.get("/v1/models", headers={"authorization": "Bearer wrong-key-9"})
    lines = [str(record.__dict__) for record in caplog.records if record.name.startswith("tritone")]
    assert lines
    assert not any(secret in line for line in lines for secret in (*KEYS, "wrong-key-9"))
    assert [record.__dict__["fields"].get("key") for record in caplog.records if record.message == "request"] == [
        1,
        None,
    ]


async def test_one_key_cannot_take_everything(new_client: Any, transport: FakeTransport) -> None:
    transport.script_for = lambda call: [*text_script(["a"], accept=True)[:1], Hang()]
    client = new_client(api_keys=KEYS, max_inflight_per_key=1, max_inflight=2)
    body = {"messages": [{"role": "user", "content": "a"}]}

    def post(key: str) -> Any:
        return client.post("/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"})

    running = asyncio.create_task(post(KEYS[0]))
    while not transport.streams:
        await asyncio.sleep(0.005)
    refused = await post(KEYS[0])
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert int(refused.headers["retry-after"]) >= 1
    other = asyncio.create_task(post(KEYS[1]))
    while len(transport.streams) < 2:
        await asyncio.sleep(0.005)
    for task in (running, other):
        task.cancel()
    await asyncio.gather(running, other, return_exceptions=True)
    transport.script_for = lambda call: text_script(["a"])
    assert (await post(KEYS[0])).status_code == 200
