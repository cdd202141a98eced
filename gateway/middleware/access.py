# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The outermost layer: gives every request its id and record, counts and logs it, and answers what fell through."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import uuid
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tritone.errors import Overloaded, TritoneError
from tritone.gateway.connection import CONNECTION_EXTENSION, Ending, GatewayProtocol
from tritone.gateway.http_errors import HttpFault
from tritone.gateway.metrics import GatewayMetrics
from tritone.gateway.middleware.exchange import CLIENT_CLOSED, Exchange
from tritone.gateway.record import Outcome, RequestRecord, attach

# What a client may call its request: enough for any tracing system, nothing that can break a log or a header.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"))
_FAREWELL_S = 0.5  # how long a stopping server tries to tell a client why its request ends

_log = logging.getLogger("tritone.gateway.access")


class AccessLayer:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp, metrics: GatewayMetrics, routes: Collection[str] = ()) -> None:
        self._app = app
        self._metrics = metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        record = _new_record(scope)
        if scope["path"] in self._routes:  # for what is refused before its route sees it
            record.route = scope["path"]
        attach(scope, record)
        self._metrics.started()
        exchange = Exchange(scope, receive, send, record)
        connection: GatewayProtocol | None = scope.get("extensions", {}).get(CONNECTION_EXTENSION)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except (TritoneError, HttpFault) as error:
            await exchange.answer(error)
        except asyncio.CancelledError:
            record.outcome = record.outcome or Outcome.FAILED
            if connection is None or not connection.is_stopping:
                raise
            # The drain is over. That is no fault, and uvicorn would log one.
            await _say_farewell(exchange)
        except Exception as error:
            _log.exception("a request failed", extra={"fields": {"request_id": record.request_id}})
            await exchange.answer(error)
        finally:
            self._finish(scope, record, exchange, connection)

    def count_bad_http(self, code: str) -> None:
        """Count a request that was no valid HTTP: the connection answered it, and no record of it exists."""
        self._metrics.started()
        record = RequestRecord(request_id="", rejected_for=code)
        self._metrics.finished(record, Outcome.REJECTED, 0.0)

    def _finish(
        self, scope: Scope, record: RequestRecord, exchange: Exchange, connection: GatewayProtocol | None
    ) -> None:
        duration_s = asyncio.get_running_loop().time() - record.started_s
        outcome, status = record.outcome or exchange.outcome, exchange.status
        ending = connection.ending if connection is not None else None
        if ending is Ending.STALLED and outcome is Outcome.OK:
            outcome = Outcome.CANCELLED
        if ending is Ending.BAD_HTTP:
            outcome, status, record.rejected_for = Outcome.REJECTED, 400, ending.value
        self._metrics.finished(record, outcome, duration_s)
        method = scope.get("method", "WEBSOCKET")
        fields = {
            "request_id": record.request_id,
            "method": method if method in _METHODS or method == "WEBSOCKET" else "other",
            "route": record.route,
            "model": record.model,
            "status": CLIENT_CLOSED if outcome is Outcome.CANCELLED else status,
            "outcome": outcome.value,
            "duration_ms": round(duration_s * 1000, 2),
        }
        if outcome is Outcome.REJECTED:
            fields["reason"] = record.rejected_for
        if record.key is not None:
            fields["key"] = record.key
        if record.traceparent:
            fields["traceparent"] = record.traceparent
        if record.first_token_s is not None:
            fields["first_token_ms"] = round(record.first_token_s * 1000, 2)
            fields["prompt_tokens"] = record.prompt_tokens
            fields["completion_tokens"] = record.completion_tokens
        _log.info("request", extra={"fields": fields})


async def _say_farewell(exchange: Exchange) -> None:
    if not exchange.status:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await exchange.answer(Overloaded("The server is stopping.", retry_after_s=5.0))


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
