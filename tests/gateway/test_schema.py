# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Fuzzing against a gateway on a socket: bodies made from the OpenAPI document, and broken HTTP on every route.

The same code as `tritone bench fuzz`, with fewer cases. (reliability T21, T22)
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from doubles.fake_transport import FakeTransport, capabilities
from doubles.live_gateway import LiveGateway, live_gateway

from tritone.gateway.settings import GatewaySettings
from tritone.tools.bench.fuzz import PIPELINE, Fuzz, Part, answers_well
from tritone.tools.bench.fuzz_http import ROUTES, build, fuzz_http, judge
from tritone.tools.bench.fuzz_schema import fuzz_schema, tame

CASES = 200  # for each route; on a slow machine the time is up before
SECONDS = 45.0


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    transport = FakeTransport(pipelines={PIPELINE: capabilities()})
    with live_gateway(transport, GatewaySettings(drain_timeout_s=1)) as running:
        yield running


def announce(_: str) -> None:
    pass


@pytest.mark.slow
def test_answers_are_as_documented(gateway: LiveGateway, caplog: pytest.LogCaptureFixture) -> None:
    part = Part("OpenAPI")
    fuzz_schema(part, Fuzz(CASES, SECONDS, seed=1), gateway.url, announce)
    assert not part.faults
    assert {"200", "400", "404"} <= set(part.answers)
    assert part.num_cases > 100
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_broken_http(gateway: LiveGateway, caplog: pytest.LogCaptureFixture) -> None:
    part = Part("raw HTTP")
    asyncio.run(fuzz_http(part, Fuzz(40, SECONDS, seed=1), gateway.url, announce))
    assert not part.faults
    assert part.num_cases > 200
    assert {"200", "400", "405", "431"} <= set(part.answers)
    assert answers_well(gateway.url)
    assert "Traceback" not in caplog.text


def test_undocumented_answers_are_found(gateway: LiveGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    real = httpx.get(f"{gateway.url}/openapi.json").json()
    assert "404" in real["paths"]["/v1/models/{model}"]["get"]["responses"]
    del real["paths"]["/v1/models/{model}"]["get"]["responses"]["404"]
    changed = schemathesis.openapi.from_dict(real)
    changed.config.update(base_url=gateway.url)
    monkeypatch.setattr(schemathesis.openapi, "from_url", lambda url: changed)
    part = Part("OpenAPI")
    fuzz_schema(part, Fuzz(5, 10.0, seed=1), gateway.url, announce)
    assert [fault for fault in part.faults if "/v1/models/{model}" in fault and "404" in fault]


@pytest.mark.parametrize(
    ("received", "answer", "is_fault"),
    [
        (b"", "closed", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "closed", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 X\r\n\r\n", "204", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "200", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", "invalid", True),
        (b"garbage\r\n\r\n", "invalid", True),
        (b"HTTP/1.1 500 X\r\ncontent-length: 2\r\n\r\n{}", "500", True),
        (b"HTTP/1.1 400 X\r\ncontent-length: 2\r\n\r\n{}", "400", True),
        (b"HTTP/1.1 400 X\r\ncontent-length: 20000\r\n\r\n" + b"x" * 20_000, "400", True),
        (b"HTTP/1.1 503 X\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}", "503", True),
    ],
)
def test_what_counts_as_a_fault(received: bytes, answer: str, is_fault: bool) -> None:
    got, fault = judge(received, "GET")
    assert (got, bool(fault)) == (answer, is_fault)


def test_a_seed_sends_the_same_cases() -> None:
    def all_of(seed: int) -> list[bytes]:
        return [build(random.Random(f"{seed} {number}"), "POST", ROUTES[0]) for number in range(50)]

    assert all_of(1) == all_of(1) != all_of(2)


def test_bodies_are_tamed_but_stay_wrong_where_they_were() -> None:
    body: dict[str, Any] = {"max_tokens": 5000, "min_tokens": 50, "max_completion_tokens": "x"}
    tame(body)
    assert body == {"max_tokens": 2, "min_tokens": 1, "max_completion_tokens": "x"}
    others: tuple[Any, ...] = ([], "x", None)
    for untouched in others:
        tame(untouched)
