# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A web server on loopback that serves media as a test says, and stand-ins for the resolver and the way out."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

from tritone.gateway.media.addresses import Address, is_public
from tritone.gateway.media.http_get import Connection, connect

LOOPBACK = ip_address("127.0.0.1")


def is_public_or_host(address: Address) -> bool:
    """The policy, with the test's own server standing in for a public one."""
    return address == LOOPBACK or is_public(address)


class Resolver:
    """Answers from a table of names, each name's answers in turn and the last one for ever. Notes every question."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._answers = {name: [list(turn) for turn in turns] for name, turns in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        turns = self._answers.get(host)
        if turns is None:
            raise OSError("unknown name")
        return [ip_address(text) for text in (turns.pop(0) if len(turns) > 1 else turns[0])]

    def close(self) -> None:
        pass


class WayOut:
    """Notes every connection that is asked for; opens it only to loopback, there to the test's server on any port."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, address: Address, port: int, tls: ssl.SSLContext | None, tls_name: str) -> Connection:
        self.asked.append((str(address), port))
        if not self._port or address != LOOPBACK:
            raise OSError("not in this test")
        return await connect(address, self._port, tls, tls_name)


class MediaHost:
    """The server: `answers` maps a path to the raw bytes of an answer; `/endless` and `/slow` never end theirs."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self._answers = answers
        self.port = 0
        self.requests: list[bytes] = []
        self.sent_bytes = 0
        self._open: set[asyncio.Task[None]] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(request)
            path = request.split(b" ", 2)[1].decode()
            if path in ("/endless", "/slow"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n")
            while path == "/endless":
                writer.write(bytes(65536))
                self.sent_bytes += 65536
                await writer.drain()
            while path == "/slow":
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
            writer.write(self._answers[path])
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def close(self) -> None:
        for task in (open_tasks := tuple(self._open)):
            task.cancel()
        await asyncio.gather(*open_tasks)


@asynccontextmanager
async def media_host(answers: Mapping[str, bytes], tls: ssl.SSLContext | None = None) -> AsyncIterator[MediaHost]:
    """A running `MediaHost`."""
    host = MediaHost(answers)
    server = await asyncio.start_server(host.handle, "127.0.0.1", 0, ssl=tls)
    host.port = server.sockets[0].getsockname()[1]
    try:
        yield host
    finally:
        server.close()
        await server.wait_closed()
        await host.close()


def http_answer(
    body: bytes, content_type: str = "image/png", status: str = "200 OK", headers: Mapping[str, str] | None = None
) -> bytes:
    """A complete answer."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    """An answer that leads elsewhere."""
    return http_answer(b"", status=status, headers={"location": location})
