# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A lost stage ends the streams that need it, refuses new ones and shows in readiness; others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from doubles.events import parse_events
from doubles.fake_transport import FakeTransport, Hang, Pause, capabilities, text_script
from doubles.live_gateway import live_gateway, until

from tritone.ensembles.protocol import HeartbeatJudge
from tritone.errors import TritoneError
from tritone.gateway import stage_health
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.stage_health import StageHealth

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}


def page(**beats: int) -> str:
    """A metrics page: `thinker_7=3` is beat 3 of process 7 of model thinker."""
    lines = []
    for key, beat in beats.items():
        model, _, pid = key.rpartition("_")
        lines.append(f'tritone_stage_heartbeat{{model="{model}",process="{pid}"}} {beat}\n')
    return "".join(lines)


@pytest.fixture
def health() -> StageHealth:
    return StageHealth(FakeTransport(), "")


async def test_silence_is_told_to_those_who_need_the_model(health: StageHealth) -> None:
    told: dict[str, list[TritoneError]] = {"a": [], "b": []}
    now_s = asyncio.get_running_loop().time()
    with health.listening(frozenset({"a"}), told["a"].append), health.listening(frozenset({"b"}), told["b"].append):
        for k in range(10):
            health.take(page(a_1=5, b_2=k + 1), now_s + 0.5 * k)
        assert health.down == {"a"}
    assert [str(error) for error in told["a"]] == ["The stage a stopped; try again."] and not told["b"]
    with pytest.raises(TritoneError, match="The stage a stopped"):
        health.refuse_if_down(frozenset({"a", "b"}))
    health.refuse_if_down(frozenset({"b"}))


async def test_requests_of_the_successor_are_not_told(health: StageHealth) -> None:
    old: list[TritoneError] = []
    young: list[TritoneError] = []
    loop = asyncio.get_running_loop()
    with health.listening(frozenset({"a"}), old.append):
        await asyncio.sleep(0.01)
        health.take(page(a_1=5), loop.time())
        await asyncio.sleep(0.01)
        # Loaded again before the silence was long enough to tell.
        began_s = loop.time()
        health.take(page(a_1=5, a_2=1), began_s)
        with health.listening(frozenset({"a"}), young.append):
            for k in range(1, 9):
                health.take(page(a_1=5, a_2=1 + k), began_s + 0.5 * k)
            assert not health.down
    assert len(old) == 1 and not young


async def test_one_that_was_unloaded_in_order_is_refused_but_its_requests_end_by_themselves(
    health: StageHealth,
) -> None:
    told: list[TritoneError] = []
    now_s = asyncio.get_running_loop().time()
    with health.listening(frozenset({"a"}), told.append):
        health.take(page(a_1=5), now_s)
        for k in range(1, 20):
            health.take(page(), now_s + k)
        assert health.down == {"a"} and not told
        health.take(page(a_2=1), now_s + 20)
        assert not health.down


async def test_models_without_a_heartbeat_count_as_alive(health: StageHealth) -> None:
    health.take('nv_inference_count{model="other"} 3\n', 1.0)
    health.refuse_if_down(frozenset({"other"}))
    assert not health.down


class Page:
    """Triton's metrics page, as the gateway fetches it."""

    def __init__(self) -> None:
        self.beat = 1
        self.is_silent = False
        self.is_away = False

    def fetch(self, url: str) -> bytes | None:
        if self.is_away:
            return None
        self.beat += not self.is_silent
        return page(fake_1=self.beat, fake_thinker_2=self.beat).encode()


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    metrics = Page()
    monkeypatch.setattr(stage_health, "fetch_metrics", metrics.fetch)
    monkeypatch.setattr(stage_health, "READ_INTERVAL_S", 0.05)
    monkeypatch.setattr(stage_health, "HeartbeatJudge", lambda: HeartbeatJudge(0.3))
    yield metrics


SETTINGS = GatewaySettings(drain_timeout_s=1, triton_metrics="http://127.0.0.1:1/metrics")


def test_a_stage_that_falls_silent_ends_streams_and_readiness(triton: Page) -> None:
    transport = FakeTransport(
        script_for=lambda call: [*text_script(["a", "b"], accept=True)[:2], Hang()],
        pipelines={"fake": capabilities()},
    )
    with live_gateway(transport, SETTINGS) as gateway, httpx.Client(base_url=gateway.url, timeout=10) as client:
        until(lambda: client.get("/health/ready").status_code == 200)
        with client.stream("POST", "/v1/chat/completions", json=BODY | {"stream": True}) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data:")
            triton.is_silent = True
            rest = "".join(f"{line}\n" for line in lines)
        events = parse_events(rest.removeprefix("\n"))
        assert events.events[-1]["error"]["code"] == "overloaded"
        assert events.events[-1]["error"]["message"].endswith("stopped; try again.") and not events.is_done
        assert client.get("/health/ready").status_code == 503
        health = client.get("/health").json()
        assert health["reason"] in ("model fake stopped", "model fake_thinker stopped")
        assert health["models"]["fake_thinker"] == "STOPPED"
        refused = client.post("/v1/chat/completions", json=BODY)
        assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
        assert "stopped" in refused.json()["error"]["message"]
        triton.is_silent = False
        until(lambda: client.get("/health/ready").status_code == 200)


def test_a_body_that_waits_gets_503(triton: Page) -> None:
    transport = FakeTransport(script_for=lambda call: [Pause(30)])
    with live_gateway(transport, SETTINGS) as gateway, httpx.Client(base_url=gateway.url, timeout=10) as client:
        until(lambda: client.get("/health/ready").status_code == 200)
        until(lambda: triton.beat > 5)
        triton.is_silent = True
        answer = client.post("/v1/chat/completions", json=BODY)
        assert answer.status_code == 503 and "retry-after" in answer.headers


def test_a_server_that_does_not_answer_ends_streams(triton: Page) -> None:
    transport = FakeTransport(script_for=lambda call: [*text_script(["a"], accept=True)[:2], Hang()])
    with live_gateway(transport, SETTINGS) as gateway, httpx.Client(base_url=gateway.url, timeout=10) as client:
        until(lambda: triton.beat > 3)
        with client.stream("POST", "/v1/chat/completions", json=BODY | {"stream": True}) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data:")
            # The page alone means nothing: only its port may be away.
            triton.is_away = True
            transport.is_away = True
            rest = "\n".join(lines)
        assert "The inference server stopped; try again." in rest
