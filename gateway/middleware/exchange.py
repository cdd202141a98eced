# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One request and its answer as the outermost layer sees them: what was read, what was sent, how it ended."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope, Send

from tritone.errors import Cancelled
from tritone.gateway.middleware.refusal import send_reply
from tritone.gateway.record import Outcome, RequestRecord

CLIENT_CLOSED = 499  # never sent; what logs show for a client that went away
_CLOSE = (b"connection", b"close")
_EMPTY = (_CLOSE, (b"content-length", b"0"))
# A larger piece of an answer goes out in parts, each after the client has read most of what came before it: what
# waits for a slow reader is counted where it is made, not in the socket.
_PART_BYTES = 65536


class Exchange:
    """Adds the request id to the answer, and a close when the request was not read to its end."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, record: RequestRecord) -> None:
        self._is_http = scope["type"] == "http"
        self._receive = receive
        self._send = send
        self._record = record
        self._request_id = (b"x-request-id", record.request_id.encode())
        self._is_request_read = not self._is_http or not _has_body(scope)
        self._is_complete = False
        self.status = 0  # 0: nothing was sent

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self._is_request_read = True
        return message

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            headers = [*message.get("headers", ()), self._request_id]
            if not self._is_request_read and _CLOSE not in headers:
                # Else whoever was refused could hold the connection by sending the rest for ever.
                headers.append(_CLOSE)
            message = {**message, "headers": headers}
        elif kind == "websocket.accept":
            self.status = 101
        elif kind == "websocket.close" and not self.status:
            self.status = 403  # what the server makes of a close before the handshake
        elif kind == "http.response.body":
            body = message.get("body", b"")
            if len(body) > _PART_BYTES:
                message = await self._send_all_but_last_part(message, body)
            if not message.get("more_body", False):
                self._is_complete = True
        await self._send(message)

    async def _send_all_but_last_part(self, message: Message, body: bytes) -> Message:
        last = (len(body) - 1) // _PART_BYTES * _PART_BYTES
        for start in range(0, last, _PART_BYTES):
            part = body[start : start + _PART_BYTES]
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        return {**message, "body": body[last:]}

    async def answer(self, error: Exception) -> None:
        """Answer an error that reached the outermost layer, unless an answer has begun or nobody is there."""
        if self._is_complete:
            return
        if isinstance(error, Cancelled):
            self._record.outcome = Outcome.CANCELLED
            if self._is_http:
                # The client has gone; this only tells the server that the exchange is over.
                if not self.status:
                    await self._send({"type": "http.response.start", "status": CLIENT_CLOSED, "headers": _EMPTY})
                await self._send({"type": "http.response.body", "body": b""})
            return
        if not self.status and self._is_http:
            await send_reply(self.send, error, self._record)
            return
        self._record.outcome = Outcome.FAILED
        if self._is_http:
            raise ConnectionAbortedError("the answer had begun when the request failed") from error

    @property
    def outcome(self) -> Outcome:
        """How the request ended as far as its status tells."""
        status = self.status
        if status == 0:
            return Outcome.FAILED
        if status == CLIENT_CLOSED:
            return Outcome.CANCELLED
        if status < 400:
            return Outcome.OK
        return Outcome.REJECTED if status < 500 or status == 503 else Outcome.FAILED


def _has_body(scope: Scope) -> bool:
    for name, value in scope["headers"]:
        if name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0")):
            return True
    return False
