# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the gateway under uvicorn: bounded request heads, our error envelope on bad HTTP, a stop that drains."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import struct
import sys

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tritone.gateway import logs
from tritone.gateway.app import create_app
from tritone.gateway.generation import ABORT_EXTENSION
from tritone.gateway.http_errors import HttpFault, reply
from tritone.gateway.settings import GatewaySettings, SettingsError

_HEAD_TIMEOUT_S = 30.0
_LINGER_NOT_AT_ALL = struct.pack("ii", 1, 0)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_log = logging.getLogger("tritone.gateway.server")


class GatewayProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 on h11, the parser that bounds a request's head, with three additions.

    A connection whose first request does not arrive in time is closed; bad HTTP is answered with the error envelope;
    the application can drop the connection of a client that does not read (scope extension `tritone.abort`).
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app = self.app

        async def with_abort(scope: Scope, receive: Receive, send: Send) -> None:
            scope["extensions"] = {**scope.get("extensions", {}), ABORT_EXTENSION: self._reset}
            await app(scope, receive, send)

        self.app = with_abort
        self.loop.call_later(_HEAD_TIMEOUT_S, self._close_if_silent)

    def _reset(self) -> None:
        """Drop the connection and what the kernel still holds for it."""
        if not self.transport.is_closing():  # else its socket may be gone already
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT_AT_ALL)
        self.transport.abort()

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        is_head_too_large = len(self.conn.trailing_data[0]) >= (self.config.h11_max_incomplete_event_size or 0)
        fault = HttpFault(400, "The request is not valid HTTP.", code="bad_http")
        if is_head_too_large:
            fault = HttpFault(431, "The request's headers are too large.", code="headers_too_large")
        status, body, headers = reply(fault)
        head = [*headers, (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
        for event in (h11.Response(status_code=status, headers=head), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def server(settings: GatewaySettings, app: ASGIApp | None = None) -> uvicorn.Server:
    """A uvicorn server for the gateway; `run` or `serve` starts it, SIGTERM drains and stops it."""
    return uvicorn.Server(
        uvicorn.Config(
            app or create_app(settings),
            host=settings.host,
            port=settings.port,
            http=GatewayProtocol,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=settings.max_header_bytes,
            timeout_graceful_shutdown=math.ceil(settings.drain_timeout_s),
        )
    )


def run(settings: GatewaySettings) -> None:
    """Serve until a signal stops it."""
    logs.configure(settings.log_level)
    if settings.host not in _LOOPBACK and not settings.api_keys:
        _log.warning("the gateway is open to the network without API keys (TRITONE_API_KEYS)")
    # uvicorn drains on these signals and then raises them again: by then the stop has worked, so the exit code is 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    server(settings).run()


def main() -> None:
    """Entry point: settings from the environment."""
    try:
        settings = GatewaySettings.from_environment(os.environ)
    except SettingsError as error:
        sys.exit(f"tritone gateway: {error}")
    run(settings)


if __name__ == "__main__":
    main()
