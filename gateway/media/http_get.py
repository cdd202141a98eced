# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One GET over one fresh connection to a given address. Resolves nothing, follows nothing, reads no environment.

The address is chosen by the caller; Host and the TLS name are those of the URL.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address
from typing import NamedTuple

import h11

from tritone.gateway.media.addresses import Address
from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.urls import MediaUrl

_MAX_HEAD_BYTES = 16 * 1024
_READ_BYTES = 64 * 1024


class Connection(NamedTuple):
    """The two halves of an open connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


# (address, port, TLS context or None, TLS name) → connection.
Connector = Callable[[Address, int, ssl.SSLContext | None, str], Awaitable[Connection]]


class Answer(NamedTuple):
    """A final answer. `body` is empty unless the status is 200."""

    status: int
    headers: dict[bytes, bytes]
    body: bytearray


async def connect(address: Address, port: int, tls: ssl.SSLContext | None, tls_name: str) -> Connection:
    """Open a connection to exactly `address`."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, (str(address), port))
        name = tls_name if tls is not None else None
        return Connection(*await asyncio.open_connection(sock=opened, ssl=tls, server_hostname=name))
    except BaseException:
        opened.close()
        raise


async def get(connection: Connection, url: MediaUrl, *, max_bytes: int) -> Answer:
    """Send the request and read the answer, no more than `max_bytes` of it. Closes the connection."""
    try:
        return await _exchange(connection, url, max_bytes)
    except h11.ProtocolError:
        raise MediaFault(Fault.FETCH_FAILED) from None
    finally:
        # Without waiting: a peer that keeps the connection open must not hold the request.
        connection.writer.transport.abort()


async def _exchange(connection: Connection, url: MediaUrl, max_bytes: int) -> Answer:
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
    headers = [
        ("Host", url.host_header),
        ("User-Agent", "tritone-media"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    request = http.send(h11.Request(method="GET", target=url.target, headers=headers))
    connection.writer.write((request or b"") + (http.send(h11.EndOfMessage()) or b""))
    await connection.writer.drain()

    status, answer_headers, body = 0, {}, bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await connection.reader.read(_READ_BYTES))
        elif isinstance(event, h11.Response):
            status, answer_headers = event.status_code, dict(event.headers)
            if status != 200:
                return Answer(status, answer_headers, body)
            length = answer_headers.get(b"content-length", b"0")
            if int(length) > max_bytes:
                raise MediaFault(Fault.TOO_MANY_BYTES)
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > max_bytes:
                raise MediaFault(Fault.TOO_MANY_BYTES)
        elif isinstance(event, h11.EndOfMessage):
            return Answer(status, answer_headers, body)
        elif isinstance(event, h11.ConnectionClosed):
            raise MediaFault(Fault.FETCH_FAILED)
