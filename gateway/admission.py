# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""How many generations run at once, and who waits for a place: over all clients, and for one API key.

Owns the counts and the queue. Which client comes first is `fairness`. Used from the event loop only.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from tritone.errors import Cancelled, Overloaded
from tritone.gateway.fairness import Client, client_to_displace, client_to_serve


class _Waiter:
    """A request in the queue. Its future gives a place, or the error it leaves with."""

    def __init__(self, client: Client, arrival: int) -> None:
        self.client = client
        self.arrival = arrival
        self.place: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Admission:
    """Lets up to `max_running` generations run and up to `max_waiting` wait for at most `max_wait_s`."""

    def __init__(self, *, max_running: int, max_waiting: int, max_wait_s: float, max_open_per_key: int) -> None:
        self._max_running = max_running
        self._max_waiting = max_waiting
        self._max_wait_s = max_wait_s
        self._max_open_per_key = max_open_per_key
        self._open: Counter[Client] = Counter()
        self._running: Counter[Client] = Counter()
        self._queues: dict[Client, deque[_Waiter]] = {}  # no empty ones
        self._arrivals = itertools.count()

    @property
    def num_running(self) -> int:
        """Generations that have a place."""
        return self._running.total()

    @property
    def num_waiting(self) -> int:
        """Requests in the queue."""
        return sum(map(len, self._queues.values()))

    @property
    def num_inflight(self) -> int:
        """Requests that are read, wait or run."""
        return self._open.total()

    @contextmanager
    def request(self, client: Client) -> Iterator[None]:
        """Hold while a request is read, waits and runs: bounds what one API key may have open."""
        if client is not None and self._open[client] >= self._max_open_per_key:
            limit = self._max_open_per_key
            raise Overloaded(f"This API key already has {limit} requests running.", retry_after_s=1.0, scope="client")
        self._open[client] += 1
        try:
            yield
        finally:
            self._open[client] -= 1

    @asynccontextmanager
    async def place(self, client: Client, disconnected: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Hold while a generation runs; waits for a free place first. `disconnected` returns when the client goes
        away; it is called only if there is a wait.
        """
        if self.num_running < self._max_running and not self._queues:
            self._running[client] += 1
        else:
            await self._wait(self._join(client), disconnected)
        try:
            yield
        finally:
            self._running[client] -= 1
            self._serve()

    def _join(self, client: Client) -> _Waiter:
        if self.num_waiting >= self._max_waiting:
            waiting = {other: len(queue) for other, queue in self._queues.items()}
            leaving = client_to_displace(waiting, self._running, client)
            if leaving == client:
                raise _busy()
            waiter = self._queues[leaving][-1]
            self._remove(waiter)
            waiter.place.set_exception(_busy())
        waiter = _Waiter(client, next(self._arrivals))
        self._queues.setdefault(client, deque()).append(waiter)
        return waiter

    async def _wait(self, waiter: _Waiter, disconnected: Callable[[], Awaitable[object]]) -> None:
        gone = asyncio.ensure_future(disconnected())
        try:
            await asyncio.wait((waiter.place, gone), timeout=self._max_wait_s, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._withdraw(waiter)
            raise
        finally:
            gone.cancel()
        if waiter.place.done():
            waiter.place.result()
            return
        self._withdraw(waiter)
        if gone.done() and not gone.cancelled():
            raise Cancelled("the client went away while its request waited")
        raise _busy()

    def _withdraw(self, waiter: _Waiter) -> None:
        """Leave the queue; a place that was given in the meantime goes to the next."""
        if not waiter.place.done():
            self._remove(waiter)
            waiter.place.cancel()
        elif waiter.place.exception() is None:
            self._running[waiter.client] -= 1
            self._serve()

    def _remove(self, waiter: _Waiter) -> None:
        queue = self._queues[waiter.client]
        queue.remove(waiter)
        if not queue:
            del self._queues[waiter.client]

    def _serve(self) -> None:
        while self._queues and self.num_running < self._max_running:
            heads = {client: queue[0].arrival for client, queue in self._queues.items()}
            waiter = self._queues[client_to_serve(heads, self._running)][0]
            self._remove(waiter)
            self._running[waiter.client] += 1
            waiter.place.set_result(None)


def _busy() -> Overloaded:
    return Overloaded("The server is busy, try again.", retry_after_s=1.0)
