# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the gateway under uvicorn, with a stop that drains: new requests are refused while running ones end."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import resource
import signal
import socket
import sys

import uvicorn

from tritone.gateway import logs
from tritone.gateway.app import create_app
from tritone.gateway.connection import GatewayProtocol, ServerState
from tritone.gateway.middleware.access import AccessLayer
from tritone.gateway.settings import GatewaySettings, SettingsError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FLUSH_S = 3.0  # what is left of an answer may take this long to leave after the drain
_SPARE_FILES = 64  # descriptors for anything but client connections

_log = logging.getLogger("tritone.gateway.server")


class GatewayServer(uvicorn.Server):
    """A server that goes on listening while it drains, so that new requests hear that it is stopping."""

    def __init__(self, config: uvicorn.Config, shared: ServerState, drain_timeout_s: float) -> None:
        super().__init__(config)
        self._shared = shared
        self._drain_timeout_s = drain_timeout_s

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._shared.is_stopping = True
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._drain_timeout_s
        while self.server_state.tasks and loop.time() < deadline_s and not self.force_exit:
            await asyncio.sleep(0.05)
        # uvicorn cancels the requests that are left when this time is over.
        self.config.timeout_graceful_shutdown = 0 if self.server_state.tasks else _FLUSH_S  # type: ignore[assignment]
        await super().shutdown(sockets)


def server(settings: GatewaySettings, app: AccessLayer | None = None) -> GatewayServer:
    """A server for the gateway; `run` or `serve` starts it, SIGTERM drains and stops it."""
    app = app or create_app(settings)
    shared = ServerState(
        max_connections=settings.max_connections,
        head_timeout_s=settings.head_timeout_s,
        write_timeout_s=settings.write_timeout_s,
        on_bad_http=app.count_bad_http,
    )
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=functools.partial(GatewayProtocol, shared),  # type: ignore[arg-type]
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=settings.max_header_bytes,
    )
    return GatewayServer(config, shared, settings.drain_timeout_s)


def run(settings: GatewaySettings) -> None:
    """Serve until a signal stops it."""
    logs.configure(settings.log_level)
    if settings.host not in _LOOPBACK and not settings.api_keys:
        _log.warning("the gateway is open to the network without API keys (TRITONE_API_KEYS)")
    _raise_file_limit(settings.max_connections + _SPARE_FILES)
    # uvicorn drains on these signals and then raises them again: by then the stop has worked, so the exit code is 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    server(settings).run()


def _raise_file_limit(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        _log.warning(
            "this process may open too few files for TRITONE_MAX_CONNECTIONS",
            extra={"fields": {"allowed": allowed, "wanted": wanted}},
        )


def main() -> None:
    """Entry point: settings from the environment."""
    try:
        settings = GatewaySettings.from_environment(os.environ)
    except SettingsError as error:
        sys.exit(f"tritone gateway: {error}")
    run(settings)


if __name__ == "__main__":
    main()
