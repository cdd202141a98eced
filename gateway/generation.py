# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The course of every generating route: read, plan, wait for a place, relay, answer.

An API family gives a planner, which turns the body into calls and the form of the answer; all else is here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tritone.ensembles.protocol import ChunkKind
from tritone.errors import Cancelled, Internal, InvalidRequest, Overloaded, TritoneError
from tritone.gateway.answers import BodyAnswer, EventAnswer, Usage, error_event
from tritone.gateway.connection import CONNECTION_EXTENSION, GatewayProtocol
from tritone.gateway.http_errors import JSON_TYPE, envelope
from tritone.gateway.json_body import read_json
from tritone.gateway.record import Outcome, RequestRecord, record_of
from tritone.gateway.relay import Arrival, Relay, RelayLimits
from tritone.gateway.services import Services
from tritone.gateway.transport import GenerationCall

_EVENT_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_FAREWELL_S = 0.5  # how long a stopping server tries to tell a stream why it ends

_log = logging.getLogger("tritone.gateway.generation")


class Plan(NamedTuple):
    """What a request asks for."""

    calls: Sequence[GenerationCall]
    events: EventAnswer | None  # of these two exactly one is given
    body: BodyAnswer | None


Planner = Callable[[dict[str, Any], RequestRecord], Awaitable[Plan]]


class GenerationResponse(Response):
    """Answers one generating request. Errors before the first byte are raised and become a status."""

    def __init__(self, services: Services, route: str, planner: Planner) -> None:
        super().__init__()
        self._services = services
        self._route = route
        self._planner = planner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services, record = self._services, record_of(scope)
        settings = services.settings
        record.route = self._route
        with services.admission.request(record.key):
            plan = await self._planner(await read_json(scope, receive, timeout_s=settings.body_timeout_s), record)
            complete_s = asyncio.get_running_loop().time()
            async with services.admission.place(record.key, lambda: _disconnected(receive)):
                services.metrics.queued(record, asyncio.get_running_loop().time() - complete_s)
                await self._relay(plan, record, scope, receive, send)

    async def _relay(self, plan: Plan, record: RequestRecord, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services
        settings = services.settings
        limits = RelayLimits(
            max_parallel=settings.max_parallel_prompts,
            max_unread_bytes=settings.max_unread_bytes if plan.events else None,
            timeout_s=settings.request_timeout_s,
        )
        relay = Relay(
            services.transport,
            plan.calls,
            catalog=services.catalog,
            receive=receive,
            limits=limits,
            clock=services.metrics.chunk_clock(record),
        )
        async with relay:
            patience = asyncio.get_running_loop().call_later(settings.max_queue_s, _end_waiting, relay, record)
            try:
                if plan.events is not None:
                    await _StreamWriter(relay, plan.events, record, scope, send).run()
                elif plan.body is not None:
                    await _BodyWriter(relay, plan.body, record, scope, send, settings.max_answer_bytes).run()
            finally:
                patience.cancel()


async def _disconnected(receive: Receive) -> None:
    """Wait for the client to go away. The body has been read, so nothing else can arrive."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _end_waiting(relay: Relay, record: RequestRecord) -> None:
    if record.first_token_s is None:
        relay.give_up(Overloaded("The server is busy, try again.", retry_after_s=5.0))


class _BodyWriter:
    """Gathers one body and writes it."""

    def __init__(
        self, relay: Relay, answer: BodyAnswer, record: RequestRecord, scope: Scope, send: Send, max_bytes: int
    ) -> None:
        self._relay = relay
        self._answer = answer
        self._record = record
        self._scope = scope
        self._send = send
        self._max_bytes = max_bytes

    async def run(self) -> None:
        body = await self._gather()
        headers = (JSON_TYPE, (b"content-length", str(len(body)).encode()))
        try:
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send({"type": "http.response.body", "body": body})
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._relay.error is None or task is None:
                raise
            task.uncancel()  # the request's time is over while a slow client still reads
            self._record.outcome = Outcome.CANCELLED
            await _drop_connection(self._scope)

    async def _gather(self) -> bytes:
        usage = Usage()
        num_bytes = 0
        while arrivals := await self._relay.take():
            for position, chunk in arrivals:
                num_bytes += len(chunk.text) + len(chunk.details)
                if chunk.kind is ChunkKind.TEXT:
                    self._answer.add(position, chunk)
                elif chunk.kind is ChunkKind.DONE:
                    usage.add(chunk.details)
            if num_bytes > self._max_bytes:
                raise InvalidRequest("The answer is too large for one body; stream it or ask for less.", field="stream")
        _note_usage(self._record, usage)
        self._relay.finish()
        return self._answer.body(usage)


class _StreamWriter:
    """Writes one event stream."""

    def __init__(self, relay: Relay, answer: EventAnswer, record: RequestRecord, scope: Scope, send: Send) -> None:
        self._relay = relay
        self._answer = answer
        self._record = record
        self._scope = scope
        self._send = send
        self._usage = Usage()

    async def run(self) -> None:
        # Nothing is sent before the pipeline has accepted the request, so that a refusal still gets its status.
        arrivals = await self._relay.take()
        try:
            await self._send({"type": "http.response.start", "status": 200, "headers": _EVENT_HEADERS})
            await self._write(self._answer.opening() + self._format(arrivals))
            while arrivals := await self._relay.take():
                await self._write(self._format(arrivals))
            self._relay.finish()
            _note_usage(self._record, self._usage)
            await self._write(self._answer.closing(self._usage), more=False)
        except Cancelled:
            await self._leave()
        except TritoneError as error:
            await self._fail(error)
        except asyncio.CancelledError:
            await self._interrupted()
        except Exception:
            _log.exception("a stream could not be written", extra={"fields": {"request_id": self._record.request_id}})
            await self._fail(Internal("The gateway failed to write the answer."))

    def _format(self, arrivals: list[Arrival]) -> bytes:
        answer = self._answer
        if len(arrivals) == 1 and arrivals[0].chunk.kind is ChunkKind.TEXT:
            return answer.add(*arrivals[0])
        events: list[bytes] = []
        for position, chunk in arrivals:
            if chunk.kind is ChunkKind.TEXT:
                events.append(answer.add(position, chunk))
            elif chunk.kind is ChunkKind.DONE:
                self._usage.add(chunk.details)
        return b"".join(events)

    async def _write(self, events: bytes, *, more: bool = True) -> None:
        if events or not more:
            await self._send({"type": "http.response.body", "body": events, "more_body": more})

    async def _fail(self, error: TritoneError) -> None:
        self._record.outcome = Outcome.FAILED
        self._relay.finish()
        await self._write(error_event(envelope(error, request_id=self._record.request_id)), more=False)

    async def _interrupted(self) -> None:
        """The relay stopped a write that nobody reads, or the server is going down."""
        task = asyncio.current_task()
        if self._relay.error is None or task is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL_S):
                    await self._fail(Overloaded("The server is stopping."))
            raise asyncio.CancelledError
        task.uncancel()
        await self._leave()

    async def _leave(self) -> None:
        """End the exchange without a word: the client went away or does not read."""
        self._record.outcome = Outcome.CANCELLED
        if not await _drop_connection(self._scope):
            await self._write(b"", more=False)


async def _drop_connection(scope: Scope) -> bool:
    """Drop the client's connection, where there is one: a close would wait for a client that does not read."""
    connection: GatewayProtocol | None = scope.get("extensions", {}).get(CONNECTION_EXTENSION)
    if connection is None:
        return False
    connection.abort()
    await asyncio.sleep(0)  # lets the server see that the connection is gone before the response ends
    return True


def _note_usage(record: RequestRecord, usage: Usage) -> None:
    record.prompt_tokens = usage.prompt_tokens
    record.completion_tokens = usage.completion_tokens
