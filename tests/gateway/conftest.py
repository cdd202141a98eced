# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the gateway's tests: a fake transport, and a client on the application without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from doubles.fake_transport import FakeTransport

from tritone.gateway.app import create_app
from tritone.gateway.settings import GatewaySettings

ClientFactory = Callable[..., httpx.AsyncClient]


@pytest.fixture
def transport() -> FakeTransport:
    return FakeTransport()


@pytest.fixture
async def new_client(transport: FakeTransport) -> AsyncIterator[ClientFactory]:
    """Makes a client for a gateway with the given settings."""
    async with AsyncExitStack() as stack:

        def make(**settings: Any) -> httpx.AsyncClient:
            app = create_app(GatewaySettings(**settings), transport)
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")
            stack.push_async_callback(client.aclose)
            return client

        yield make


@pytest.fixture
def client(new_client: ClientFactory) -> httpx.AsyncClient:
    return new_client()
