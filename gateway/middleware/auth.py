# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""API keys for every HTTP route and WebSocket but the two probes. What it does not recognise it refuses."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tritone.gateway.http_errors import HttpFault
from tritone.gateway.middleware.refusal import refuse
from tritone.gateway.record import record_of

# Browsers cannot set a header on a WebSocket; OpenAI's clients send the key as a subprotocol of this form.
_SUBPROTOCOL = "openai-insecure-api-key."


class AuthLayer:
    """Default deny: a request passes with a valid key or when its path is exactly one of `open_paths`."""

    def __init__(self, app: ASGIApp, keys: Sequence[str], open_paths: Collection[str]) -> None:
        self._app = app
        # Digests have one length, so comparing them tells nothing about a key's length either.
        self._digests = [_digest(key) for key in keys]
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or not self._digests:
            await self._app(scope, receive, send)
            return
        key = self._find(_presented_key(scope))
        if key is not None:
            record_of(scope).key = key
        elif not (scope["type"] == "http" and scope["path"] in self._open_paths):
            await refuse(scope, receive, send, _no_valid_key())
            return
        await self._app(scope, receive, send)

    def _find(self, presented: str) -> int | None:
        """Number of the key, from 0. Compares with every key, so that time does not tell which one was near."""
        digest = _digest(presented)
        found = None
        for number, known in enumerate(self._digests):
            if hmac.compare_digest(digest, known):
                found = number
        return found


def _no_valid_key() -> HttpFault:
    return HttpFault(
        401,
        "Incorrect or missing API key. Send it as `Authorization: Bearer KEY`.",
        code="invalid_api_key",
        headers=((b"www-authenticate", b"Bearer"),),
    )


def _presented_key(scope: Scope) -> str:
    given = Headers(scope=scope).getlist("authorization")
    # Of two headers a proxy may have checked the other one.
    scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    if scope["type"] == "websocket" and not given:
        for protocol in scope.get("subprotocols", ()):
            if protocol.startswith(_SUBPROTOCOL):
                return str(protocol[len(_SUBPROTOCOL) :])
    return ""


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
