# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One client connection: uvicorn's HTTP/1.1 on h11, the parser that bounds a request's head, with every wait bounded.

A request's head has to arrive in time, on a kept connection too; a client must go on reading; a close that leaves part
of a request unread lets the client see the answer first; bad HTTP gets the error envelope. Knows nothing of routes.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tritone.gateway.http_errors import HttpFault, reply

CONNECTION_EXTENSION = "tritone.connection"  # in the scope's extensions, a `GatewayProtocol`
_LINGER_S = 2.0  # how long what is left of a refused request is read and thrown away
_MAX_LINGER_BYTES = 16 << 20
_MIN_READ_BYTES = 16384  # a client that takes less than this in a write timeout does not read
# A body may come in this many chunks, and in one more for each so many bytes.
_FREE_CHUNKS = 512
_MIN_CHUNK_BYTES = 32
_MAX_HEAD_BYTES = 32768
_NO_LINGER = struct.pack("ii", 1, 0)
_CAN_ANSWER = (h11.IDLE, h11.SEND_RESPONSE)


class Ending(Enum):
    """Why the connection ended before its request did."""

    STALLED = "stalled"  # the client does not read
    BAD_HTTP = "bad_http"  # the body was not valid HTTP; the client was told with a 400


@dataclass
class ServerState:
    """What the connections of one server share."""

    max_connections: int
    head_timeout_s: float
    write_timeout_s: float
    on_bad_http: Callable[[str], None] = lambda code: None  # called with the error's code
    is_stopping: bool = False


class _BoundedParser(h11.Connection):
    """h11 with a bound on the chunks of a body. A chunk costs as much to parse as a small request, and a read brings
    forty thousand of one byte: without a bound one connection keeps all others waiting for seconds.
    """

    def __init__(self, max_incomplete_event_size: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size)
        self._num_chunks = 0
        self._num_bytes = 0

    @property
    def is_too_fine(self) -> bool:
        """Whether the body comes in too many small chunks."""
        return self._num_chunks > _FREE_CHUNKS + self._num_bytes // _MIN_CHUNK_BYTES

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._num_chunks += event.chunk_start
            self._num_bytes += len(event.data)
            if self.is_too_fine:
                raise h11.RemoteProtocolError("too many small chunks")
        return event

    def start_next_cycle(self) -> None:
        super().start_next_cycle()
        self._num_chunks = self._num_bytes = 0


class GatewayProtocol(H11Protocol):
    """A connection. Owns its timers."""

    def __init__(self, shared: ServerState, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.access_log = False  # its lines would hold the query
        self._parser = _BoundedParser(self.config.h11_max_incomplete_event_size or _MAX_HEAD_BYTES)
        self.conn = self._parser
        self._shared = shared
        self.ending: Ending | None = None
        self._is_closing = False
        self._has_client_finished = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._num_unwritten = 0
        self._num_discarded = 0

    @property
    def is_stopping(self) -> bool:
        """Whether the server takes no new requests."""
        return self._shared.is_stopping

    def abort(self) -> None:
        """Drop the connection and what the kernel still holds for it; a close would wait for the client."""
        self._cancel_timers()
        if not self._raw.is_closing():  # else its socket may be gone already
            self._raw.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._raw.abort()

    # --- opening ----------------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._raw = transport
        super().connection_made(_ClosesInTime(transport, self))  # type: ignore[arg-type]
        app = self.app

        async def with_connection(scope: Scope, receive: Receive, send: Send) -> None:
            scope["extensions"] = {**scope.get("extensions", {}), CONNECTION_EXTENSION: self}
            await app(scope, receive, send)

        self.app = with_connection
        self._idle_since_s = self.loop.time()
        if len(self.connections) > self._shared.max_connections:
            self._make_room()
        self._watch_head()

    def _make_room(self) -> None:
        """Drop the connection that has waited longest without a request, and this one when there is no other."""
        others = [other for other in self.connections if isinstance(other, GatewayProtocol) and other is not self]
        idle = [other for other in others if other._is_idle]
        min(idle, key=lambda other: other._idle_since_s, default=self).abort()

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    # --- reading ----------------------------------------------------------------------------------------------------
    def data_received(self, data: bytes) -> None:
        if self._is_closing:
            self._num_discarded += len(data)
            if self._num_discarded > _MAX_LINGER_BYTES:
                self.abort()
            return
        super().data_received(data)
        self._watch_head()

    def eof_received(self) -> None:
        self._has_client_finished = True
        self.close()

    def on_response_complete(self) -> None:
        self._idle_since_s = self.loop.time()
        super().on_response_complete()

    def _watch_head(self) -> None:
        """Arm the timer while a request's head is awaited. More bytes of the same head do not prolong it."""
        if self.conn.their_state is h11.IDLE and not self._is_closing:
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(self._shared.head_timeout_s, self._end_silence)
        elif self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_silence(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE:
            self.close()

    def send_400_response(self, msg: str) -> None:
        limit = self.config.h11_max_incomplete_event_size or _MAX_HEAD_BYTES
        fault = HttpFault(400, "The request is not valid HTTP.", code=Ending.BAD_HTTP.value)
        if len(self.conn.trailing_data[0]) >= limit:
            fault = HttpFault(431, "The request's headers are too large.", code="headers_too_large")
        if self._parser.is_too_fine:
            fault = HttpFault(400, "The body comes in too many small chunks.", code=Ending.BAD_HTTP.value)
        if self._is_idle:
            self._shared.on_bad_http(fault.code)
        else:
            self.ending = Ending.BAD_HTTP
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in _CAN_ANSWER:
            answer = reply(fault)
            headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode()), (b"connection", b"close")]
            self.transport.write(self.conn.send(h11.Response(status_code=answer.status, headers=headers)) or b"")
            if self._is_idle or self.scope["method"] != "HEAD":
                self.transport.write(self.conn.send(h11.Data(data=answer.body)) or b"")
                self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
        self.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered as if it had not asked, and its line is in the access log."""

    # --- writing ----------------------------------------------------------------------------------------------------
    def pause_writing(self) -> None:
        super().pause_writing()
        self._num_unwritten = self._raw.get_write_buffer_size()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _watch_writing(self) -> None:
        self._write_timer = self.loop.call_later(self._shared.write_timeout_s, self._check_writing)

    def _check_writing(self) -> None:
        num_unwritten = self._raw.get_write_buffer_size()
        if self._num_unwritten - num_unwritten < _MIN_READ_BYTES:
            self.ending = Ending.STALLED
            self.abort()
            return
        self._num_unwritten = num_unwritten
        self._watch_writing()

    # --- closing ----------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Close in order. What a client is still sending is read for a moment: unread bytes would make the kernel
        reset the connection, and the client might never see its answer.
        """
        if self._is_closing:
            return
        self._is_closing = True
        self._watch_head()
        is_request_unread = self.conn.their_state in (h11.SEND_BODY, h11.ERROR)
        if is_request_unread and not self._has_client_finished and not self._raw.is_closing():
            self._raw.write_eof()
            self.flow.resume_reading()
            self._close_timer = self.loop.call_later(_LINGER_S, self.abort)
        else:
            self._raw.close()
            self._close_timer = self.loop.call_later(self._shared.write_timeout_s, self.abort)

    def shutdown(self) -> None:
        if not self._is_closing:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._cancel_timers()
        super().connection_lost(exc)

    def _cancel_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer, self._close_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._write_timer = self._close_timer = None


class _ClosesInTime:
    """The transport as uvicorn sees it: its `close` is the connection's."""

    def __init__(self, transport: asyncio.Transport, connection: GatewayProtocol) -> None:
        self._transport = transport
        self.close = connection.close
        self.is_closing = lambda: connection._is_closing or transport.is_closing()
        self.write = transport.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
