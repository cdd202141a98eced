# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds on what a request may send: its head, its body with and without a length, and no compression."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tritone.gateway.http_errors import HttpFault
from tritone.gateway.middleware.refusal import refuse

MAX_HEADERS = 128
_CLOSE = ((b"connection", b"close"),)  # what remains of the body is not worth reading


class LimitsLayer:
    """Refuses an oversized head itself; an oversized body is a fault that reading it raises."""

    def __init__(self, app: ASGIApp, *, max_header_bytes: int, max_body_bytes: int) -> None:
        self._app = app
        self._max_header_bytes = max_header_bytes
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        fault = self._head_fault(scope)
        if fault is not None:
            await refuse(scope, receive, send, fault)
            return
        if scope["type"] == "http":
            receive = self._counted(receive)
        await self._app(scope, receive, send)

    def _head_fault(self, scope: Scope) -> HttpFault | None:
        headers = scope["headers"]
        size = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
        size += sum(len(name) + len(value) + 4 for name, value in headers)
        if size > self._max_header_bytes or len(headers) > MAX_HEADERS:
            return HttpFault(431, "The request's headers are too large.", code="headers_too_large", headers=_CLOSE)
        for name, value in headers:
            if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                return HttpFault(
                    415, "Compressed bodies are not accepted.", code="unsupported_encoding", headers=_CLOSE
                )
            if name == b"content-length" and value.isdigit() and int(value) > self._max_body_bytes:
                return self._too_large()
        return None

    def _counted(self, receive: Receive) -> Receive:
        num_bytes = 0

        async def counted() -> Message:
            nonlocal num_bytes
            message = await receive()
            if message["type"] == "http.request":
                num_bytes += len(message.get("body", b""))
                if num_bytes > self._max_body_bytes:
                    raise self._too_large()
            return message

        return counted

    def _too_large(self) -> HttpFault:
        return HttpFault(
            413, f"The body is larger than {self._max_body_bytes} bytes.", code="body_too_large", headers=_CLOSE
        )
