# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Raw HTTP at a gateway: eight methods on every route, broken in the request line, headers, framing and body.

What must hold: an answer is valid HTTP, below 500 (503 with a time to retry apart), errors are the envelope and small,
and nothing hangs.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import h11

if TYPE_CHECKING:
    from tritone.tools.bench.fuzz import Announce, Fuzz, Part

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE")
ROUTES = (
    "/v1/chat/completions",
    "/v1/chat/completions/batch",
    "/v1/completions",
    "/v1/models",
    "/v1/models/smollm2_chat",
    "/health",
    "/health/live",
    "/health/ready",
    "/metrics",
    "/openapi.json",
    "/nope",
)
MAX_ERROR_BYTES = 16384
_CLIENTS = 16
_QUIET_S = 0.25  # a server that says nothing for so long waits for the rest of the request
_HANG_S = 30.0
_PROMPT = {"messages": [{"role": "user", "content": "a"}], "prompt": "a", "max_tokens": 1}
_JUNK = (
    b"\x00",
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b":",
    b"\xff\xfe",
    b"%00",
    b"../",
    b"\x1b[2J",
    b"A" * 9000,
)


def build(rng: random.Random, method: str, route: str) -> bytes:
    """One request, broken at up to three places. The bytes after it may be a second request."""
    body = _body(rng)
    headers = [b"Host: x", b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    head = [f"{method} {route} HTTP/1.1".encode(), *headers]
    for _ in range(rng.randint(0, 3)):
        rng.choice(_BREAKS)(rng, head)
    if any(b"chunked" in line.lower() for line in head) and rng.random() < 0.8:
        body = _chunked(rng, body)
    data = b"\r\n".join(head) + b"\r\n\r\n" + body
    if rng.random() < 0.15:
        position = rng.randrange(len(data))
        data = data[:position] + rng.choice(_JUNK) + data[position:]
    if rng.random() < 0.1:
        data = data[: rng.randrange(len(data))]
    if rng.random() < 0.1:
        data += b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    return data


def _body(rng: random.Random) -> bytes:
    text = json.dumps(_PROMPT).encode()
    kind = rng.randrange(6)
    if kind == 0:
        return b""
    if kind == 1:
        return rng.randbytes(rng.randrange(200))
    if kind == 2:
        position = rng.randrange(len(text))
        return text[:position] + rng.choice(_JUNK) + text[position + 1 :]
    if kind == 3:
        return b'{"messages":' + rng.choice([b"[", b'{"a":', b'[{"role":']) * rng.randrange(2000)
    return text


def _chunked(rng: random.Random, body: bytes) -> bytes:
    sizes = [b"%x" % len(body), b"%X;a=b" % len(body), b"-1", b"zz", b"", b"f" * 20, b"0x5", b"+5", b" 5"]
    size = rng.choice(sizes[:2] * 5 + sizes[2:])
    ending = rng.choice([b"\r\n0\r\n\r\n"] * 5 + [b"\n0\n\n", b"0\r\n\r\n", b"\r\n0\r\nX: " + b"a" * 5000, b""])
    return size + b"\r\n" + body + ending


def _break_line(rng: random.Random, head: list[bytes]) -> None:
    method, target, version = (head[0].split(b" ") + [b"", b""])[:3]
    head[0] = rng.choice(
        (
            method.lower() + b" " + target + b" " + version,
            method + b"  " + target + b" " + version,
            method + b" " + target,
            method + b" " + target + b" HTTP/" + rng.choice([b"0.9", b"1.0", b"1.2", b"2.0", b"11", b"x", b""]),
            method + b" http://other.example" + target + b" " + version,
            method + b" //x" + target + b" " + version,
            method + b" " + target + b"/../../metrics " + version,
            method + b" " + target.upper() + b"/ " + version,
            method + b" " + target + b"?" + rng.choice(_JUNK) * 3 + b" " + version,
            method + b" " + target + b"%2e%2e%2f%00%ff" + b" " + version,
            method + b" * " + version,
            b"PRI * HTTP/2.0",
            rng.randbytes(rng.randrange(1, 40)),
        )
    )


def _break_headers(rng: random.Random, head: list[bytes]) -> None:
    extra = rng.choice(
        (
            b"Content-Length: "
            + rng.choice([b"0", b"1", b"-1", b"+1", b"1,1", b"0x1", b"9" * 30, b"", b"67108865", b"a"]),
            b"Content_Length: 5",
            b"Content-Length : 5",
            b"Transfer-Encoding: "
            + rng.choice([b"chunked", b"Chunked", b"xchunked", b"chunked, chunked", b"gzip", b""]),
            b"Transfer-Encoding:\tchunked",
            b" folded: yes",
            b"Expect: " + rng.choice([b"100-continue", b"200-ok"]),
            b"Upgrade: " + rng.choice([b"h2c", b"websocket"]) + b"\r\nConnection: Upgrade",
            b"Connection: " + rng.choice([b"close", b"keep-alive", b"Transfer-Encoding", b"x" * 3000]),
            b"Content-Type: "
            + rng.choice([b"text/plain", b"multipart/form-data; boundary=b", b"", b"application/json"]),
            b"Content-Encoding: " + rng.choice([b"gzip", b"identity", b"br, gzip"]),
            b"Authorization: " + rng.choice([b"Bearer x", b"Basic x", b"Bearer", b"x" * 2000]),
            b"Host: " + rng.choice([b"y", b"", b"a/b", b"x" * 300]),
            b"X-Request-Id: " + rng.choice([b"a b", b"a" * 200, b"\xff", b"ok-1"]),
            b"traceparent: " + rng.choice([b"00-zz", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"]),
            b"Origin: http://evil.example\r\nAccess-Control-Request-Method: POST",
            b"Range: bytes=0-,0-,0-",
            b"X: " + rng.choice(_JUNK),
            b"\r\n".join([b"X-A: a"] * 300),
            b"X-Big: " + b"a" * 40_000,
            b": empty",
            b"no colon",
        )
    )
    head.insert(rng.randrange(1, len(head) + 1), extra)


def _drop_header(rng: random.Random, head: list[bytes]) -> None:
    if len(head) > 1:
        del head[rng.randrange(1, len(head))]


_BREAKS: tuple[Callable[[random.Random, list[bytes]], None], ...] = (
    _break_line,
    _break_headers,
    _break_headers,
    _break_headers,
    _drop_header,
)


def judge(received: bytes, method: str) -> tuple[str, str | None]:
    """What the first answer in `received` is, and what is wrong with it."""
    received = _without_continue(received)
    if not received:
        return "closed", None
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(received)
    client.receive_data(b"")
    status, headers, body = 0, dict[bytes, bytes](), b""
    try:
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status, headers = event.status_code, dict(event.headers)
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed):
                return "cut", "the answer is not complete"
    except h11.RemoteProtocolError as error:
        return "invalid", f"the answer is not HTTP: {error}"
    return str(status), _fault_of(status, headers, body, method)


def _fault_of(status: int, headers: dict[bytes, bytes], body: bytes, method: str) -> str | None:
    if status >= 500 and not (status == 503 and (b"retry-after" in headers or b"not ready" in body)):
        return f"status {status}"
    if status < 400 or method == "HEAD":
        return None
    if len(body) > MAX_ERROR_BYTES:
        return f"an error of {len(body)} bytes"
    try:
        error = json.loads(body)["error"]
        return None if set(error) == {"message", "type", "param", "code"} else "not the error envelope"
    except (ValueError, KeyError, TypeError):
        return "not the error envelope"


async def fuzz_http(part: Part, fuzz: Fuzz, url: str, announce: Announce) -> None:
    """Send `fuzz.cases` requests for each route, spread over the methods."""
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port or 80
    plan = [(route, number) for number in range(fuzz.cases) for route in ROUTES]
    deadline = time.monotonic() + fuzz.seconds
    upcoming = iter(plan)

    async def client() -> None:
        for route, number in upcoming:
            if time.monotonic() > deadline:
                return
            rng = random.Random(f"{fuzz.seed} {route} {number}")
            method = METHODS[number % len(METHODS)]
            data = build(rng, method, route)
            try:
                async with asyncio.timeout(_HANG_S):
                    received, is_silent = await _exchange(host, port, data)
            except (OSError, TimeoutError) as error:
                part.faults.append(f"{method} {route} #{number}: {type(error).__name__}")
                continue
            # A method that was broken is unknown to the parser of the answer; only HEAD matters to it.
            sent_method = data.split(b" ")[0]
            answer, fault = judge(received, "HEAD" if sent_method == b"HEAD" else "GET")
            if answer in ("closed", "cut") and is_silent:
                answer, fault = "waits", None
            part.num_cases += 1
            part.answers[answer] += 1
            if fault:
                part.faults.append(f"{method} {route} #{number}: {fault}")
            if part.num_cases % 200 == 0:
                announce(f"raw HTTP … {part.num_cases} of {len(plan)}, {len(part.faults)} faults")

    await asyncio.gather(*(client() for _ in range(_CLIENTS)))


async def _exchange(host: str, port: int, data: bytes) -> tuple[bytes, bool]:
    """What came back, and whether the server was still waiting when we hung up."""
    reader, writer = await asyncio.open_connection(host, port)
    received = b""
    try:
        writer.write(data)
        while True:
            try:
                async with asyncio.timeout(_QUIET_S if not received else 5 * _QUIET_S):
                    piece = await reader.read(65536)
            except TimeoutError:
                return received, True
            if not piece:
                return received, False
            received += piece
            if _is_complete(received):
                return received, True
    except ConnectionError:
        return received, False
    finally:
        writer.close()


def _without_continue(received: bytes) -> bytes:
    """What comes after "go on and send the body", which is no answer."""
    return received.partition(b"\r\n\r\n")[2] if received.startswith(b"HTTP/1.1 100 ") else received


def _is_complete(received: bytes) -> bool:
    head, separator, body = _without_continue(received).partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return bool(separator) and len(body) >= int(line.split(b":")[1])
    return b"transfer-encoding" in head.lower() and received.endswith(b"0\r\n\r\n")
