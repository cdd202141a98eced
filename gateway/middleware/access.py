# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The outermost layer: gives every request its id and record, counts and logs it, and answers what fell through."""

from __future__ import annotations

import asyncio
import logging
import re
import uuid

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tritone.errors import Cancelled, TritoneError
from tritone.gateway.http_errors import HttpFault
from tritone.gateway.metrics import GatewayMetrics
from tritone.gateway.middleware.refusal import send_reply
from tritone.gateway.record import Outcome, RequestRecord, attach

# What a client may call its request: enough for any tracing system, nothing that can break a log or a header.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_CLIENT_CLOSED = 499
_CLOSE = ((b"connection", b"close"), (b"content-length", b"0"))

_log = logging.getLogger("tritone.gateway.access")


class AccessLayer:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp, metrics: GatewayMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        record = _new_record(scope)
        attach(scope, record)
        self._metrics.started()
        exchange = _Exchange(send, record)
        try:
            await self._app(scope, receive, exchange.send)
        except (TritoneError, HttpFault) as error:
            await exchange.answer(error, scope)
        except asyncio.CancelledError:
            record.outcome = record.outcome or Outcome.FAILED
            raise
        except Exception as error:
            _log.exception("a request failed", extra={"fields": {"request_id": record.request_id}})
            await exchange.answer(error, scope)
        finally:
            self._finish(scope, record, exchange)

    def _finish(self, scope: Scope, record: RequestRecord, exchange: _Exchange) -> None:
        duration_s = asyncio.get_running_loop().time() - record.started_s
        outcome = record.outcome or _outcome_of(exchange.status)
        self._metrics.finished(record, outcome, duration_s)
        fields = {
            "request_id": record.request_id,
            "method": scope.get("method", "WEBSOCKET"),
            "route": record.route,
            "model": record.model,
            "status": _CLIENT_CLOSED if outcome is Outcome.CANCELLED else exchange.status,
            "outcome": outcome.value,
            "duration_ms": round(duration_s * 1000, 2),
        }
        if record.key is not None:
            fields["key"] = record.key
        if record.traceparent:
            fields["traceparent"] = record.traceparent
        if record.first_token_s is not None:
            fields["first_token_ms"] = round(record.first_token_s * 1000, 2)
            fields["prompt_tokens"] = record.prompt_tokens
            fields["completion_tokens"] = record.completion_tokens
        _log.info("request", extra={"fields": fields})


class _Exchange:
    """Adds the request id to the answer and remembers its status."""

    def __init__(self, send: Send, record: RequestRecord) -> None:
        self._send = send
        self._record = record
        self._request_id = (b"x-request-id", record.request_id.encode())
        self.status = 0  # 0: nothing was sent
        self.is_complete = False

    async def send(self, message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), self._request_id]}
        elif message["type"] == "websocket.accept":
            self.status = 101
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.is_complete = True
        await self._send(message)

    async def answer(self, error: Exception, scope: Scope) -> None:
        """Answer an error that reached this layer, unless an answer has begun or nobody is there."""
        if self.is_complete:
            return
        if isinstance(error, Cancelled):
            self._record.outcome = Outcome.CANCELLED
            if scope["type"] == "http" and not self.status:
                # The client has gone; this only tells the server that the exchange is over.
                await self._send({"type": "http.response.start", "status": _CLIENT_CLOSED, "headers": _CLOSE})
                await self._send({"type": "http.response.body", "body": b""})
            elif scope["type"] == "http":
                await self._send({"type": "http.response.body", "body": b""})
            return
        if not self.status and scope["type"] == "http":
            await send_reply(self.send, error, self._record.request_id)
            return
        self._record.outcome = Outcome.FAILED
        if scope["type"] == "http":
            raise ConnectionAbortedError("the answer had begun when the request failed") from error


def _new_record(scope: Scope) -> RequestRecord:
    headers = Headers(scope=scope)
    given = headers.get("x-request-id", "")
    request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    traceparent = headers.get("traceparent", "")
    return RequestRecord(
        request_id=request_id,
        traceparent=traceparent if _TRACEPARENT.fullmatch(traceparent) else None,
        started_s=asyncio.get_running_loop().time(),
    )


def _outcome_of(status: int) -> Outcome:
    if status == 0:
        return Outcome.FAILED
    if status == _CLIENT_CLOSED:
        return Outcome.CANCELLED
    if status < 400:
        return Outcome.OK
    return Outcome.REJECTED if status < 500 or status == 503 else Outcome.FAILED
