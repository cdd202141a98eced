# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Places and the queue before them: waiting, giving up, leaving, and counts that are zero in the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from tritone.errors import Cancelled, Overloaded
from tritone.gateway.admission import Admission


def new_admission(
    *, max_running: int = 1, max_waiting: int = 8, max_wait_s: float = 5.0, max_open_per_key: int = 100
) -> Admission:
    return Admission(
        max_running=max_running, max_waiting=max_waiting, max_wait_s=max_wait_s, max_open_per_key=max_open_per_key
    )


async def stay() -> None:
    await asyncio.Event().wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Runner:
    """Runs one generation that holds its place until told."""

    def __init__(self, admission: Admission, client: int | None, order: list[str], name: str) -> None:
        self.done = asyncio.Event()
        self.left = asyncio.Event()
        self._order = order
        self._name = name
        self.task = asyncio.create_task(self._run(admission, client))

    async def _run(self, admission: Admission, client: int | None) -> None:
        with admission.request(client):
            async with admission.place(client, self.left.wait):
                self._order.append(self._name)
                await self.done.wait()


async def test_waiting_requests_are_served_fewest_running_first() -> None:
    admission, order = new_admission(max_running=2), list[str]()
    names = ("a1", "a2", "a3", "a4", "b1", "b2")
    runners = {name: Runner(admission, 0 if name[0] == "a" else 1, order, name) for name in names}
    await settle()
    assert (order, admission.num_waiting) == (["a1", "a2"], 4)
    for ending in ("a1", "a2", "b1", "a3", "b2", "a4"):
        runners[ending].done.set()
        await settle()
    # b1 passes a3: client b runs nothing. Then a and b have one each, and a3 came before b2.
    assert order == ["a1", "a2", "b1", "a3", "b2", "a4"]
    await asyncio.gather(*(runner.task for runner in runners.values()))
    assert (admission.num_running, admission.num_waiting, admission.num_inflight) == (0, 0, 0)


async def test_a_wait_has_an_end() -> None:
    admission, order = new_admission(max_wait_s=0.05), list[str]()
    running, waiting = Runner(admission, 0, order, "running"), Runner(admission, 1, order, "waiting")
    with pytest.raises(Overloaded) as caught:
        await waiting.task
    assert caught.value.retry_after_s and caught.value.scope == "server"
    running.done.set()
    await running.task
    assert (admission.num_running, admission.num_waiting) == (0, 0)


async def test_a_client_that_leaves_the_queue() -> None:
    admission, order = new_admission(), list[str]()
    running, leaving, next_one = (Runner(admission, client, order, str(client)) for client in (0, 1, 2))
    await settle()
    leaving.left.set()
    with pytest.raises(Cancelled):
        await leaving.task
    running.done.set()
    next_one.done.set()
    await asyncio.gather(running.task, next_one.task)
    assert order == ["0", "2"]


async def test_a_full_queue_refuses_the_client_that_asks_for_most() -> None:
    admission, order = new_admission(max_waiting=2), list[str]()
    greedy = [Runner(admission, 0, order, f"greedy{number}") for number in range(3)]
    await settle()
    late = Runner(admission, 0, order, "late")
    with pytest.raises(Overloaded):
        await late.task
    modest = Runner(admission, 1, order, "modest")
    await settle()
    with pytest.raises(Overloaded):
        await greedy[2].task
    for runner in (greedy[0], greedy[1], modest):
        runner.done.set()
    await asyncio.gather(greedy[0].task, greedy[1].task, modest.task)
    assert order == ["greedy0", "greedy1", "modest"]


async def test_no_queue_refuses_at_once() -> None:
    admission, order = new_admission(max_waiting=0), list[str]()
    running, refused = Runner(admission, None, order, "running"), Runner(admission, None, order, "refused")
    with pytest.raises(Overloaded):
        await refused.task
    running.done.set()
    await running.task


async def test_one_key_has_a_limit_and_no_key_has_none() -> None:
    admission = new_admission(max_open_per_key=2)
    with admission.request(0), admission.request(0), admission.request(None), admission.request(None):
        with admission.request(None), pytest.raises(Overloaded) as caught, admission.request(0):
            pass
        assert caught.value.scope == "client"
        with admission.request(1):
            assert admission.num_inflight == 5
    assert admission.num_inflight == 0


@pytest.mark.parametrize("seed", range(20))
async def test_no_place_is_lost_in_a_storm(seed: int) -> None:
    """Ends, cancels, departures and time-outs in any order, many in the same turn of the loop."""
    rng = random.Random(seed)
    admission, order = new_admission(max_running=3, max_waiting=6, max_wait_s=0.02), list[str]()
    runners: list[Runner] = []
    actions: list[Callable[[Runner], object]] = [
        lambda runner: runner.done.set(),
        lambda runner: runner.task.cancel(),
        lambda runner: runner.left.set(),
    ]
    for number in range(150):
        runners.append(Runner(admission, rng.choice([None, 0, 1]), order, str(number)))
        rng.choice(actions)(rng.choice(runners))
        if rng.random() < 0.3:
            await asyncio.sleep(rng.choice([0, 0, 0.001, 0.01]))
        assert admission.num_running <= 3 and admission.num_waiting <= 6
    for runner in runners:
        runner.done.set()
    await asyncio.gather(*(runner.task for runner in runners), return_exceptions=True)
    assert (admission.num_running, admission.num_waiting, admission.num_inflight) == (0, 0, 0)
    async with asyncio.timeout(1), admission.place(0, stay):
        assert admission.num_running == 1
