# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Fetches remote media for hosts the operator listed: resolves once, refuses if any address is not public, connects to
the address it checked, and does all of that again at every redirect.

Logs nothing: a URL can hold secrets. Refusals do not tell a name that is unknown from one that is internal.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Protocol

from tritone.gateway.media.addresses import Address, is_public
from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.formats import MediaKind, is_type_of, sniff
from tritone.gateway.media.http_get import Answer, Connector, connect, get
from tritone.gateway.media.limits import FetchSettings
from tritone.gateway.media.urls import MediaUrl, is_listed, join_url, parse_url

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# More addresses of one host are not tried.
_MAX_ATTEMPTS = 3


class Resolver(Protocol):
    """Names to addresses. `close` gives up what is under way."""

    async def resolve(self, host: str, port: int) -> Sequence[Address]: ...

    def close(self) -> None: ...


class SystemResolver:
    """The C library's resolver, in threads of its own: a slow name server must not take those of the event loop."""

    def __init__(self, num_threads: int) -> None:
        self._threads = ThreadPoolExecutor(num_threads, thread_name_prefix="media-resolver")

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        def look_up() -> list[Address]:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            return [ip_address(str(entry[4][0])) for entry in found]

        return await asyncio.get_running_loop().run_in_executor(self._threads, look_up)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Fetcher:
    """Gets the bytes behind a URL, or says in one `MediaFault` why not."""

    def __init__(
        self,
        settings: FetchSettings,
        *,
        resolver: Resolver | None = None,
        connector: Connector = connect,
        is_allowed: Callable[[Address], bool] = is_public,
    ) -> None:
        self._settings = settings
        self._resolver = resolver or SystemResolver(settings.max_concurrent)
        self._connector = connector
        self._is_allowed = is_allowed
        self._turns = asyncio.Semaphore(settings.max_concurrent)
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, text: str, *, kind: MediaKind, max_bytes: int) -> bytearray:
        """The body behind the URL `text`, of a type and with first bytes that fit `kind`."""
        if not self._settings.domains:
            raise MediaFault(Fault.FETCHING_OFF)
        url = self._checked(None, text)
        try:
            async with asyncio.timeout(self._settings.timeout_s), self._turns:
                answer = await self._follow(url, max_bytes)
        except TimeoutError:
            raise MediaFault(Fault.FETCH_TIMEOUT) from None
        content_type, _, _ = answer.headers.get(b"content-type", b"").decode("latin-1").partition(";")
        encoding = answer.headers.get(b"content-encoding", b"identity").strip().lower()
        media_format = sniff(bytes(answer.body[:16]))
        if (
            answer.status != 200
            or encoding != b"identity"
            or not is_type_of(content_type, kind)
            or media_format is None
            or kind not in media_format.kinds
        ):
            raise MediaFault(Fault.FETCH_FAILED)
        return answer.body

    def close(self) -> None:
        self._resolver.close()

    async def _follow(self, url: MediaUrl, max_bytes: int) -> Answer:
        for _ in range(self._settings.max_redirects + 1):
            answer = await self._get(url, await self._addresses(url), max_bytes)
            if answer.status not in _REDIRECTS:
                return answer
            url = self._checked(url, answer.headers.get(b"location", b"").decode("latin-1"))
        raise MediaFault(Fault.FETCH_FAILED)

    def _checked(self, base: MediaUrl | None, text: str) -> MediaUrl:
        """The URL `text`, relative to `base` if there is one, when the operator's settings cover it."""
        try:
            url = parse_url(text) if base is None else join_url(base, text)
        except ValueError:
            raise MediaFault(Fault.URL_REFUSED) from None
        schemes = ("https", "http") if self._settings.allow_http else ("https",)
        if url.scheme not in schemes or not is_listed(url, self._settings.domains):
            raise MediaFault(Fault.URL_REFUSED)
        return url

    async def _addresses(self, url: MediaUrl) -> Sequence[Address]:
        if url.address is not None:
            addresses: Sequence[Address] = (url.address,)
        else:
            try:
                addresses = await self._resolver.resolve(url.host, url.port)
            except (OSError, ValueError):
                raise MediaFault(Fault.URL_REFUSED) from None
        # One bad address condemns all: a mixed answer is how rebinding starts.
        if not addresses or not all(self._is_allowed(address) for address in addresses):
            raise MediaFault(Fault.URL_REFUSED)
        return list(dict.fromkeys(addresses))[:_MAX_ATTEMPTS]

    async def _get(self, url: MediaUrl, addresses: Sequence[Address], max_bytes: int) -> Answer:
        tls = self._tls_context() if url.scheme == "https" else None
        for address in addresses:
            try:
                connection = await self._connector(address, url.port, tls, url.tls_name)
            except OSError:  # also every fault of TLS
                continue
            try:
                return await get(connection, url, max_bytes=max_bytes)
            except OSError:
                break
        raise MediaFault(Fault.FETCH_FAILED)

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._settings.ca_file or None)
        return self._tls
