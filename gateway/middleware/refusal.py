# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Answers a request that a layer turns away, HTTP or WebSocket: from the layer itself, so CORS headers are added."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from tritone.gateway.http_errors import reply
from tritone.gateway.record import Outcome, record_of

_POLICY_VIOLATION = 1008


async def refuse(scope: Scope, receive: Receive, send: Send, fault: Exception) -> None:
    """End the exchange with `fault`."""
    record = record_of(scope)
    if scope["type"] == "websocket":
        record.outcome = Outcome.REJECTED
        await receive()
        # Before the handshake is accepted this becomes an HTTP 403.
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": str(fault)[:100]})
        return
    await send_reply(send, fault, record.request_id)


async def send_reply(send: Send, error: Exception, request_id: str) -> None:
    """Send an error answer."""
    status, body, headers = reply(error, request_id=request_id)
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
