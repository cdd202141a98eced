# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds on what a request may send: its head, its body, all bodies together, and no compression."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tritone.errors import Overloaded
from tritone.gateway.http_errors import HttpFault
from tritone.gateway.middleware.refusal import refuse

MAX_HEADERS = 128
_HTTP_VERSIONS = ("1.0", "1.1", "2", "3")
# The beginning of a body that is not counted against the sum: large bodies cannot keep ordinary requests out.
FREE_BODY_BYTES = 65536
_CLOSE = ((b"connection", b"close"),)  # what remains of the body is not worth reading


class BodyBudget:
    """The bytes of request bodies that are in memory at once. Owns the count."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held_bytes = 0

    def take(self, num_bytes: int) -> None:
        """Count bytes that have arrived; raises `Overloaded` when there is no room for them."""
        if self.held_bytes + num_bytes > self._max_bytes:
            raise Overloaded("The server holds too many large requests, try again.", retry_after_s=2.0)
        self.held_bytes += num_bytes

    def give_back(self, num_bytes: int) -> None:
        """The request that took them has ended."""
        self.held_bytes -= num_bytes


class LimitsLayer:
    """Refuses an oversized head itself; an oversized body is a fault that reading it raises."""

    def __init__(self, app: ASGIApp, *, max_header_bytes: int, max_body_bytes: int, budget: BodyBudget) -> None:
        self._app = app
        self._max_header_bytes = max_header_bytes
        self._max_body_bytes = max_body_bytes
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        fault = self._head_fault(scope)
        if fault is not None:
            await refuse(scope, receive, send, fault)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _CountedBody(receive, self._max_body_bytes, self._budget)
        try:
            await self._app(scope, body.receive, send)
        finally:
            self._budget.give_back(body.num_taken)

    def _head_fault(self, scope: Scope) -> HttpFault | None:
        headers = scope["headers"]
        size = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
        size += sum(len(name) + len(value) + 4 for name, value in headers)
        if size > self._max_header_bytes or len(headers) > MAX_HEADERS:
            return HttpFault(431, "The request's headers are too large.", code="headers_too_large", headers=_CLOSE)
        has_length = is_chunked = False
        for name, value in headers:
            if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                return HttpFault(
                    415, "Compressed bodies are not accepted.", code="unsupported_encoding", headers=_CLOSE
                )
            if name == b"content-length":
                has_length = True
                if value.isdigit() and int(value) > self._max_body_bytes:
                    return _too_large(self._max_body_bytes)
            is_chunked |= name == b"transfer-encoding"
        if has_length and is_chunked:
            # Servers disagree on which of the two counts: a proxy in front may see another request than this one.
            return _bad_http()
        return _bad_http() if scope.get("http_version", "1.1") not in _HTTP_VERSIONS else None


class _CountedBody:
    """The body of one request while it is read."""

    def __init__(self, receive: Receive, max_bytes: int, budget: BodyBudget) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._budget = budget
        self._num_bytes = 0
        self.num_taken = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and (body := message.get("body", b"")):
            self._num_bytes += len(body)
            if self._num_bytes > self._max_bytes:
                raise _too_large(self._max_bytes)
            counted = max(0, self._num_bytes - FREE_BODY_BYTES) - self.num_taken
            if counted:
                self._budget.take(counted)
                self.num_taken += counted
        return message


def _bad_http() -> HttpFault:
    return HttpFault(400, "The request is not valid HTTP.", code="bad_http", headers=_CLOSE)


def _too_large(max_bytes: int) -> HttpFault:
    return HttpFault(413, f"The body is larger than {max_bytes} bytes.", code="body_too_large", headers=_CLOSE)
