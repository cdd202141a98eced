# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The life of one client request's streams: reads them as fast as they come, watches the client, stops on either side.

Owns the tasks and the bounded buffer between the inference server and the client. One reader task per stream, one
watcher per request; nothing is created per chunk. Knows nothing of what chunks become.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from starlette.types import Receive

from tritone.ensembles.protocol import ChunkKind
from tritone.errors import Cancelled, Internal, Overloaded, TritoneError
from tritone.gateway.catalog import Catalog
from tritone.gateway.metrics import ChunkClock
from tritone.gateway.transport import Chunk, ChunkStream, GenerationCall, Transport

_log = logging.getLogger("tritone.gateway.relay")


class Arrival(NamedTuple):
    """A chunk and which of the request's calls it answers."""

    position: int
    chunk: Chunk


class RelayLimits(NamedTuple):
    """What a relay may use."""

    max_parallel: int  # streams open at once
    max_unread_bytes: int | None  # None: the reader assembles one body and cannot be slow
    timeout_s: float


class Relay:
    """An async context manager; leaving it cancels whatever still runs.

    Entering raises `Overloaded` when a model that the calls need is down; one that is lost later stops the relay.
    """

    def __init__(
        self,
        transport: Transport,
        calls: Sequence[GenerationCall],
        *,
        catalog: Catalog,
        receive: Receive,
        limits: RelayLimits,
        clock: ChunkClock,
    ) -> None:
        self._transport = transport
        self._calls = calls
        self._health = catalog.health
        self._models = frozenset[str]().union(*(catalog.members(call.model) for call in calls))
        self._exits = ExitStack()
        self._receive = receive
        self._limits = limits
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(limits.max_parallel)
        self._streams: set[ChunkStream] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._num_running = len(calls)
        self._buffer: list[Arrival] = []
        self._unread_bytes = 0
        self._error: TritoneError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._writer: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_finished = False

    async def __aenter__(self) -> Self:
        self._health.refuse_if_down(self._models)
        self._exits.enter_context(self._health.listening(self._models, self._stop))
        self._writer = asyncio.current_task()
        self._timer = self._loop.call_later(self._limits.timeout_s, self._expire)
        self._tasks = [asyncio.create_task(self._read(position, call)) for position, call in enumerate(self._calls)]
        self._tasks.append(asyncio.create_task(self._watch()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_finished = True
        self._exits.close()
        if self._timer is not None:
            self._timer.cancel()
        for stream in tuple(self._streams):
            stream.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def error(self) -> TritoneError | None:
        """Why the relay stopped early, if it did."""
        return self._error

    def finish(self) -> None:
        """Everything was taken: from here on the end of the connection is no cancel."""
        self._is_finished = True

    async def take(self) -> list[Arrival]:
        """All chunks that came since the last call; waits for one. Empty once every stream has ended.

        Raises the error that stopped the relay, after the chunks that came before it.
        """
        while not self._buffer:
            if self._error is not None:
                raise self._error
            if not self._num_running:
                return []
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        arrivals, self._buffer = self._buffer, []
        self._unread_bytes = 0
        return arrivals

    async def _read(self, position: int, call: GenerationCall) -> None:
        try:
            async with self._slots:
                await self._read_stream(position, call)
        except TritoneError as error:
            self._stop(error)
        except Exception:
            _log.exception("a stream failed", extra={"fields": {"model": call.model}})
            self._stop(Internal("The gateway failed to read the answer."))
        finally:
            self._num_running -= 1
            self._wake()

    async def _read_stream(self, position: int, call: GenerationCall) -> None:
        stream = self._transport.open(call)
        self._streams.add(stream)
        expected_index = 0
        is_done = False
        try:
            async for chunk in stream:
                if chunk.chunk_index != expected_index:
                    raise Internal("The answer has a gap.")
                if is_done:
                    raise Internal("The answer goes on after its end.")
                expected_index += 1
                is_done = chunk.kind is ChunkKind.DONE
                if not self._push(Arrival(position, chunk)):
                    return
            if not is_done:
                raise Internal("The answer ended early.")
        finally:
            self._streams.discard(stream)
            stream.cancel()

    def _push(self, arrival: Arrival) -> bool:
        if self._error is not None:
            return False
        chunk = arrival.chunk
        if chunk.kind is ChunkKind.TEXT:
            self._clock.tick(self._loop.time(), chunk.num_tokens)
        self._buffer.append(arrival)
        self._unread_bytes += chunk.size_bytes
        limit = self._limits.max_unread_bytes
        if limit is not None and self._unread_bytes > limit:
            self._drop_client(Cancelled("the client reads too slowly"))
            return False
        self._wake()
        return True

    async def _watch(self) -> None:
        """Wait for the client to go away. The body has been read, so nothing else can arrive."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                break
        if not self._is_finished:
            self._drop_client(Cancelled("the client went away"))

    def give_up(self, error: TritoneError) -> None:
        """Stop with an error of which the client is told."""
        self._stop(error)
        self._interrupt_writer()

    def _expire(self) -> None:
        self.give_up(Overloaded(f"The request took longer than {self._limits.timeout_s:g} s.", retry_after_s=5.0))

    def _drop_client(self, error: Cancelled) -> None:
        self._buffer.clear()
        self._stop(error)
        self._interrupt_writer()

    def _interrupt_writer(self) -> None:
        """Wake a writer that waits for a socket nobody reads. One that waits in `take` is woken by the error."""
        if self._waiter is None and self._writer is not None:
            self._writer.cancel()

    def _stop(self, error: TritoneError) -> None:
        if self._error is not None:
            return
        self._error = error
        for stream in tuple(self._streams):
            stream.cancel()
        for task in self._tasks[: len(self._calls)]:
            if task is not asyncio.current_task(self._loop):
                task.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
