# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the gateway counts equals what its clients saw: good, bad, cancelled, refused, failed. (reliability T56)"""

from __future__ import annotations

import json
import random
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from doubles.fake_transport import FakeTransport, Hang, Script, capabilities, text_script
from doubles.live_gateway import LiveGateway, live_gateway, until
from doubles.raw_http import parse_answers, read_until_close
from prometheus_client.parser import text_string_to_metric_families

from tritone.errors import Internal, Overloaded
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.transport import GenerationCall

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
USER = {"role": "user", "content": "Hi"}
KEYS = ("first-key-1", "second-key-2")
Truth = Counter[tuple[str, str, str]]  # route, model, outcome

# Kind of request → route, changes to a good body, model and outcome that must be counted.
KINDS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "good": (CHAT, {}, "a", "ok"),
    "good-stream": (CHAT, {"stream": True}, "a", "ok"),
    "other-model": (CHAT, {"model": "b"}, "b", "ok"),
    "prompts": (COMPLETIONS, {"messages": None, "prompt": ["x", "y"]}, "a", "ok"),
    "bad-field": (CHAT, {"temperature": 9}, "", "rejected"),
    "unknown-model": (CHAT, {"model": "zz"}, "", "rejected"),
    "stage-refuses": (CHAT, {"seed": 1}, "a", "rejected"),
    "stage-full": (CHAT, {"seed": 2, "stream": True}, "a", "rejected"),
    "stage-fails": (CHAT, {"seed": 3}, "a", "failed"),
    "fails-in-stream": (CHAT, {"seed": 4, "stream": True}, "a", "failed"),
    "cancel-stream": (CHAT, {"seed": 5, "stream": True}, "a", "cancelled"),
    "cancel-body": (CHAT, {"seed": 5}, "a", "cancelled"),
    "no-route": ("/v1/nope", {}, "", "rejected"),
    "bad-http": (CHAT, {}, "", "rejected"),
    "bad-key": (CHAT, {}, "", "rejected"),
    "leaves-in-body": (CHAT, {}, "", "cancelled"),
}


def script(call: GenerationCall) -> Script:
    params = json.loads(call.params)
    good = text_script(["a", "b", "c"], accept=bool(params.get("accept")))
    scripts: dict[int, Script] = {
        1: [Overloaded("full")] if params.get("n") else [Overloaded("full", retry_after_s=3)],
        2: [Overloaded("full")],
        3: [*good[:1], Internal("broken")],
        4: [*good[:2], Internal("broken")],
        5: [*good[:2], Hang()],
    }
    return scripts.get(params.get("seed", 0), good)


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    transport = FakeTransport(script, pipelines={"a": capabilities(), "b": capabilities()})
    with live_gateway(transport, GatewaySettings(api_keys=KEYS, drain_timeout_s=1)) as running:
        yield running


def families(gateway: LiveGateway) -> dict[str, Any]:
    request = urllib.request.Request(f"{gateway.url}/metrics", headers={"authorization": f"Bearer {KEYS[0]}"})
    with urllib.request.urlopen(request) as answer:
        return {family.name: family for family in text_string_to_metric_families(answer.read().decode())}


def counted(gateway: LiveGateway, name: str, *labels: str) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for sample in families(gateway)[name].samples:
        if sample.name == f"{name}_total" and sample.labels.get("route") != "/metrics":
            found[tuple(sample.labels[label] for label in labels)] += int(sample.value)
    return found


def request(gateway: LiveGateway, kind: str) -> tuple[str, str, str]:
    """Send one request of a kind; gives what its client saw."""
    path, changes, model, expected = KINDS[kind]
    body = json.dumps(
        {k: v for k, v in {"messages": [USER], "model": "a", **changes}.items() if v is not None}
    ).encode()
    key = "wrong-key" if kind == "bad-key" else random.choice(KEYS)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer {key}\r\n"
    head += "Content-Length: 1x\r\n\r\n" if kind == "bad-http" else f"Content-Length: {len(body)}\r\n\r\n"
    route = path if path in (CHAT, COMPLETIONS) and kind != "bad-http" else "unmatched"
    with gateway.connect() as connection:
        connection.settimeout(30)
        if kind == "leaves-in-body":
            connection.sendall(head.encode() + body[:10])
            return route, model, "cancelled"
        connection.sendall(head.encode() + body)
        if kind == "cancel-stream":
            while b'"a"' not in connection.recv(65536):
                pass
            return route, model, "cancelled"
        if kind == "cancel-body":
            threading.Event().wait(0.3)
            return route, model, "cancelled"
        received = b""
        while not received.endswith((b"}", b"0\r\n\r\n")):
            part = connection.recv(65536)
            assert part, received
            received += part
    (answer,) = parse_answers(received, ["POST"])
    if answer.status in (500, 502, 504) or (answer.status == 200 and b'"error"' in answer.body):
        return route, model, "failed"
    return route, model, "ok" if answer.status == 200 else "rejected"


def test_counts_equal_the_clients_own(gateway: LiveGateway) -> None:
    before = counted(gateway, "tritone_gateway_requests", "route", "model", "outcome")
    kinds = [kind for kind in KINDS for _ in range(8)]
    random.Random(1).shuffle(kinds)
    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda kind: request(gateway, kind), kinds))
    for kind, got in zip(kinds, seen, strict=True):
        assert got[2] == KINDS[kind][3], kind
    truth: Truth = Counter(seen)

    def difference() -> Truth:
        now = counted(gateway, "tritone_gateway_requests", "route", "model", "outcome")
        return Counter({key: number - before[key] for key, number in now.items() if number != before[key]})  # type: ignore[misc]

    until(lambda: difference().total() >= truth.total(), within_s=10)
    assert difference() == truth
    now = families(gateway)
    finished = [sample for sample in now["tritone_gateway_requests"].samples if sample.name.endswith("_total")]
    inflight = now["tritone_gateway_inflight_requests"].samples[0].value
    assert inflight == 1  # the scrape itself
    received = now["tritone_gateway_received_requests"].samples[0].value
    assert received == sum(sample.value for sample in finished) + inflight
    rejected = counted(gateway, "tritone_gateway_rejected_requests", "reason")
    expected = {"invalid_request", "model_not_found", "overloaded", "route_not_found", "bad_http", "invalid_api_key"}
    assert set(reason for (reason,) in rejected) == expected
    gauges = families(gateway)
    for name in ("running_generations", "waiting_generations", "body_bytes"):
        assert gauges[f"tritone_gateway_{name}"].samples[0].value == 0, name


def counted_all(gateway: LiveGateway) -> dict[str, float]:
    totals: Counter[str] = Counter()
    for sample in families(gateway)["tritone_gateway_requests"].samples:
        if sample.name.endswith("_total"):
            totals[sample.labels["outcome"]] += int(sample.value)
    return dict(totals)


def test_a_full_house_is_counted_too() -> None:
    transport = FakeTransport(lambda call: [*text_script(["a"], accept=True)[:2], Hang()])
    settings = GatewaySettings(max_inflight=4, max_waiting=2, max_queue_s=0.3, drain_timeout_s=1)
    stream = {"messages": [USER], "stream": True}
    with live_gateway(transport, settings) as gateway:
        running = [gateway.post(CHAT, stream) for _ in range(4)]
        until(lambda: families(gateway)["tritone_gateway_running_generations"].samples[0].value == 4)
        with ThreadPoolExecutor(8) as pool:

            def ask(_: int) -> int:
                body = json.dumps(stream).encode()
                head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
                with gateway.connect() as connection:
                    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                    (answer,) = parse_answers(read_until_close(connection), ["POST"])
                assert int(answer.headers["retry-after"]) >= 1
                return answer.status

            assert list(pool.map(ask, range(8))) == [503] * 8
        for connection in running:
            connection.close()
        until(lambda: counted_all(gateway).get("cancelled") == 4)
        assert counted(gateway, "tritone_gateway_rejected_requests", "reason") == {("overloaded",): 8}
        queue = families(gateway)["tritone_gateway_queue_seconds"].samples
        assert sum(sample.value for sample in queue if sample.name.endswith("_count")) == 4


def test_what_the_process_uses_is_shown(gateway: LiveGateway) -> None:
    found = families(gateway)
    for name in (
        "process_open_fds",
        "process_resident_memory_bytes",
        "tritone_gateway_threads",
        "tritone_shm_size_bytes",
    ):
        assert found[name].samples[0].value > 0, name
    assert found["tritone_shm_used_bytes"].samples[0].value >= 0
