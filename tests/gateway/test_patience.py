# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""How long a request waits: for a place, for its first chunk. Then 503 with a time to try again. (reliability T40)"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from doubles.events import parse_events
from doubles.fake_transport import FakeTransport, Hang, Pause, text_script

PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
ACCEPTED, FIRST, *REST = text_script(["a", "b"], accept=True)


def assert_busy(response: httpx.Response) -> None:
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "overloaded"
    assert int(response.headers["retry-after"]) >= 1


async def hold(client: httpx.AsyncClient, transport: FakeTransport, number: int, **options: Any) -> list[Any]:
    """Requests that hold places until they are cancelled."""
    transport.script_for = lambda call: [ACCEPTED, FIRST, Hang()]
    tasks = [asyncio.create_task(client.post(PATH, json=BODY, **options)) for _ in range(number)]
    while len(transport.streams) < number:
        await asyncio.sleep(0.005)
    transport.script_for = lambda call: text_script(["a"], accept=b"accept" in call.params)
    return tasks


async def release(tasks: list[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_request_waits_for_its_place(new_client: Any, transport: FakeTransport) -> None:
    client = new_client(max_inflight=2)
    running = await hold(client, transport, 2)
    waiting = [asyncio.create_task(client.post(PATH, json=BODY)) for _ in range(4)]
    await asyncio.sleep(0.05)
    assert len(transport.streams) == 2
    await release(running)
    assert [response.status_code for response in await asyncio.gather(*waiting)] == [200] * 4


@pytest.mark.parametrize("stream", [False, True])
async def test_no_place_in_time(new_client: Any, transport: FakeTransport, stream: bool) -> None:
    client = new_client(max_inflight=1, max_queue_s=0.05)
    running = await hold(client, transport, 1)
    assert_busy(await client.post(PATH, json={**BODY, "stream": stream}))
    await release(running)


@pytest.mark.parametrize(("num_slots", "times"), [(4, 2), (4, 10)])
async def test_overload_never_loses_a_request(
    new_client: Any, transport: FakeTransport, num_slots: int, times: int
) -> None:
    """Every request gets its answer or a 503, and the places are never idle: goodput is what the slots give."""
    transport.script_for = lambda call: [Pause(0.05), *text_script(["a"])]
    client = new_client(max_inflight=num_slots, max_waiting=num_slots)
    responses = await asyncio.gather(*(client.post(PATH, json=BODY) for _ in range(num_slots * times)))
    good = [response for response in responses if response.status_code == 200]
    assert len(good) == 2 * num_slots  # those that ran at once and those that waited
    for response in responses:
        if response.status_code != 200:
            assert_busy(response)
    assert (await client.post(PATH, json=BODY)).status_code == 200


async def test_bad_requests_do_not_wait(new_client: Any, transport: FakeTransport) -> None:
    client = new_client(max_inflight=1)
    running = await hold(client, transport, 1)
    async with asyncio.timeout(5):
        assert (await client.post(PATH, json={**BODY, "n": 0})).status_code == 400
    await release(running)


async def test_no_first_chunk_in_time(new_client: Any, transport: FakeTransport) -> None:
    client = new_client(max_queue_s=0.05)
    transport.script_for = lambda call: [Hang()]
    assert_busy(await client.post(PATH, json=BODY))
    assert_busy(await client.post(PATH, json={**BODY, "stream": True}))
    # Accepted by the pipeline, so the status is out: the stream says it.
    transport.script_for = lambda call: [ACCEPTED, Hang()]
    events = parse_events((await client.post(PATH, json={**BODY, "stream": True})).text)
    assert events.events[-1]["error"]["code"] == "overloaded" and not events.is_done
    assert all(stream.is_cancelled_early for stream in transport.streams)


async def test_a_slow_rest_is_no_queue(new_client: Any, transport: FakeTransport) -> None:
    client = new_client(max_queue_s=0.1)
    transport.script_for = lambda call: [ACCEPTED, FIRST, Pause(0.3), *REST]
    assert parse_events((await client.post(PATH, json={**BODY, "stream": True})).text).is_done


async def test_a_modest_key_is_served_before_a_greedy_one(new_client: Any, transport: FakeTransport) -> None:
    keys = ("greedy-key", "modest-key")
    client = new_client(api_keys=keys, max_inflight=4, max_inflight_per_key=64)
    greedy = {"headers": {"authorization": f"Bearer {keys[0]}"}}
    modest = {"headers": {"authorization": f"Bearer {keys[1]}"}}
    running = await hold(client, transport, 4, **greedy)
    order: list[str] = []

    async def ask(name: str, options: dict[str, Any]) -> None:
        assert (await client.post(PATH, json=BODY, **options)).status_code == 200
        order.append(name)

    transport.script_for = lambda call: [Pause(0.02), *text_script(["a"])]
    waiting = [asyncio.create_task(ask("greedy", greedy)) for _ in range(20)]
    await asyncio.sleep(0.02)
    waiting += [asyncio.create_task(ask("modest", modest)) for _ in range(2)]
    await asyncio.sleep(0.02)
    await release(running)
    await asyncio.gather(*waiting)
    # Four places came free together: the modest key has its two before the greedy one's flood.
    assert [name for name in order[:4]].count("modest") == 2


async def test_an_answer_too_large_for_one_body(new_client: Any, transport: FakeTransport) -> None:
    client = new_client(max_answer_bytes=10_000)
    transport.script_for = lambda call: text_script(["x" * 1000] * 20, accept=b"accept" in call.params)
    response = await client.post(PATH, json=BODY)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "stream")
    assert parse_events((await client.post(PATH, json={**BODY, "stream": True})).text).is_done
