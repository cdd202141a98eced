# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Answers a request that a layer turns away, HTTP or WebSocket: from the layer itself, so CORS headers are added."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from tritone.gateway.http_errors import reply
from tritone.gateway.record import Outcome, RequestRecord, record_of

_POLICY_VIOLATION = 1008
_HTTP_ANSWER = "websocket.http.response"


async def refuse(scope: Scope, receive: Receive, send: Send, fault: Exception) -> None:
    """End the exchange with `fault`."""
    record = record_of(scope)
    if scope["type"] == "http":
        await send_reply(send, fault, record)
        return
    record.outcome = Outcome.REJECTED
    await receive()
    if _HTTP_ANSWER in scope.get("extensions", {}):
        await send_reply(send, fault, record, prefix="websocket.")
        return
    # Before the handshake is accepted this becomes an HTTP 403.
    record.rejected_for = reply(fault).code
    await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": str(fault)[:100]})


async def send_reply(send: Send, error: Exception, record: RequestRecord, *, prefix: str = "") -> None:
    """Send an error answer, and note its code."""
    answer = reply(error, request_id=record.request_id)
    record.rejected_for = answer.code
    headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode())]
    await send({"type": f"{prefix}http.response.start", "status": answer.status, "headers": headers})
    await send({"type": f"{prefix}http.response.body", "body": answer.body})
