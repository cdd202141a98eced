# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""While the server stops: new requests are told so, and their connections end. Only operators' pages still answer."""

from __future__ import annotations

from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from tritone.gateway.connection import CONNECTION_EXTENSION, GatewayProtocol
from tritone.gateway.http_errors import HttpFault
from tritone.gateway.middleware.refusal import refuse

_HEADERS = ((b"retry-after", b"5"), (b"connection", b"close"))


class DrainLayer:
    """Refuses requests that arrive after the stop began; those that run are none of its business."""

    def __init__(self, app: ASGIApp, open_paths: Collection[str]) -> None:
        self._app = app
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: GatewayProtocol | None = scope.get("extensions", {}).get(CONNECTION_EXTENSION)
        if connection is not None and connection.is_stopping and scope["path"] not in self._open_paths:
            fault = HttpFault(503, "The server is stopping.", code="stopping", headers=_HEADERS)
            await refuse(scope, receive, send, fault)
            return
        await self._app(scope, receive, send)
