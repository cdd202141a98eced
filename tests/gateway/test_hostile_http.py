# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""An attacker with a socket: smuggling, endless heads and bodies, silence, floods. Every request has one clear end and
the next client is served. (reliability T09, T10, T12, T13, T21)
"""

from __future__ import annotations

import gzip
import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from doubles.fake_transport import FakeTransport
from doubles.live_gateway import LiveGateway, live_gateway, until
from doubles.raw_http import Answer, parse_answers, read_until_close

from tritone.gateway.settings import GatewaySettings

CHAT = "/v1/chat/completions"
BODY = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()
JSON = b"Content-Type: application/json\r\n"
LIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
SETTINGS = GatewaySettings(
    max_header_bytes=16384,
    max_body_bytes=1 << 20,
    head_timeout_s=0.3,
    body_timeout_s=0.3,
    write_timeout_s=0.3,
    drain_timeout_s=1,
)


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with live_gateway(FakeTransport(), SETTINGS) as running:
        yield running


@pytest.fixture(autouse=True)
def next_client_is_served_and_no_traceback_logged(
    gateway: LiveGateway, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    caplog.set_level(logging.INFO)
    yield
    assert send(gateway, LAST)[0].status == 200
    assert not [record.getMessage() for record in caplog.records if record.levelno > logging.WARNING]


def send(gateway: LiveGateway, data: bytes, methods: list[str] | None = None) -> list[Answer]:
    """The answers to raw bytes, once the server has closed the connection."""
    with gateway.connect() as connection:
        connection.sendall(data)
        return parse_answers(read_until_close(connection), methods or ["GET"])


def post(*headers: bytes, body: bytes = b"", path: str = CHAT) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n".encode() + lines + JSON + b"\r\n" + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


# --- what is not HTTP -----------------------------------------------------------------------------------------------
BAD_HTTP = {
    "nonsense": b"nonsense\r\n\r\n",
    "no-version": b"GET /health/live\r\n\r\n",
    "http-9": b"GET /health/live HTTP/9.9\r\nHost: x\r\n\r\n",
    "http2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no-host": b"GET /health/live HTTP/1.1\r\n\r\n",
    "two-hosts": b"GET /health/live HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "space-in-target": b"GET /health/ live HTTP/1.1\r\nHost: x\r\n\r\n",
    "nul-in-target": b"GET /health/live\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    "nul-in-header": b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\n\r\n",
    "bare-cr-in-header": b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-A: a\rX-B: b\r\n\r\n",
    "space-before-colon": b"GET /health/live HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\n",
    "no-colon": b"GET /health/live HTTP/1.1\r\nHost: x\r\nContent-Length\r\n\r\n",
    "empty-name": b"GET /health/live HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n",
    "negative-length": post(b"Content-Length: -1"),
    "plus-length": post(b"Content-Length: +5"),
    "hex-length": post(b"Content-Length: 0x5"),
    "two-lengths": post(b"Content-Length: 2", b"Content-Length: 3", body=b"{}"),
    "lengths-in-one": post(b"Content-Length: 2, 3", body=b"{}"),
    "huge-length": post(b"Content-Length: " + b"9" * 5000),
    "unknown-coding": post(b"Transfer-Encoding: gzip"),
    "chunked-twice": post(b"Transfer-Encoding: chunked, chunked"),
    "chunked-not-last": post(b"Transfer-Encoding: chunked, identity"),
    "chunk-size-no-hex": post(b"Transfer-Encoding: chunked", body=b"zz\r\n"),
    "chunk-size-negative": post(b"Transfer-Encoding: chunked", body=b"-1\r\n"),
    "chunk-size-huge": post(b"Transfer-Encoding: chunked", body=b"f" * 100 + b"\r\n"),
    "chunk-without-end": post(b"Transfer-Encoding: chunked", body=b"2\r\n{}XX"),
    "length-and-chunked": post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\nG"),
    "chunked-and-length": post(b"Transfer-Encoding: chunked", b"Content-Length: 0", body=chunk(b"{}")),
}


@pytest.mark.parametrize("data", BAD_HTTP.values(), ids=BAD_HTTP)
def test_bad_http_is_refused_and_ends_the_connection(gateway: LiveGateway, data: bytes) -> None:
    (answer,) = send(gateway, data + LIVE)  # nothing that follows may be taken for a request
    assert (answer.status, answer.code) == (400, "bad_http")
    assert answer.headers["connection"] == "close"


def test_bad_http_in_the_body_of_a_head_request(gateway: LiveGateway, caplog: pytest.LogCaptureFixture) -> None:
    data = post(b"Transfer-Encoding: chunked", body=b"zz\r\n").replace(b"POST", b"HEAD")
    with gateway.connect() as connection:
        connection.sendall(data)
        received = read_until_close(connection)
    assert received.startswith(b"HTTP/1.1 400 ") and received.endswith(b"\r\n\r\n")
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("name", [b"Content_Length", b"Transfer_Encoding", b"X_Forwarded_For"])
def test_names_with_underscores_mean_nothing(gateway: LiveGateway, name: bytes) -> None:
    value = b"chunked" if b"Transfer" in name else b"5"
    answers = send(gateway, LIVE.replace(b"\r\n\r\n", b"\r\n%b: %b\r\n\r\n" % (name, value)) + LAST, ["GET", "GET"])
    assert [answer.status for answer in answers] == [200, 200]


def test_a_folded_header_is_one_header(gateway: LiveGateway) -> None:
    (answer,) = send(gateway, LAST.replace(b"Host: x", b"Host: x\r\nX-Request-Id: a\r\n Content-Length: 5"))
    assert answer.status == 200
    assert "Content" not in answer.headers["x-request-id"]


# --- targets --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "line",
    [
        b"GET http://evil.example/health/live HTTP/1.1",
        b"GET http://x@127.0.0.1/health/live HTTP/1.1",
        b"CONNECT 127.0.0.1:22 HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"GET health/live HTTP/1.1",
        b"GET ?/health/live HTTP/1.1",
        b"GET \\health\\live HTTP/1.1",
        b"GET /%ff%00%0d%0aX:%20y HTTP/1.1",
        b"GET /health/live%00 HTTP/1.1",
        b"BREW /health/nothing HTTP/1.1",
    ],
)
def test_odd_targets_are_no_routes(gateway: LiveGateway, line: bytes) -> None:
    (answer,) = send(gateway, line + b"\r\nHost: x\r\nConnection: close\r\n\r\n", [line.split()[0].decode()])
    assert (answer.status, answer.code) == (404, "route_not_found")
    assert "evil" not in str(answer.headers) and "X: y" not in str(answer.headers)


@pytest.mark.parametrize("host", [b"", b"evil.example", b"127.0.0.1:1", b"[::1]", b"a" * 8000, b"a/../b?c#d"])
def test_the_host_header_decides_nothing(gateway: LiveGateway, host: bytes) -> None:
    (answer,) = send(gateway, LAST.replace(b"Host: x", b"Host: " + host))
    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')
    assert b"evil" not in str(answer.headers).encode()


# --- several requests on one connection -----------------------------------------------------------------------------
def test_pipelined_requests_are_answered_in_order(gateway: LiveGateway) -> None:
    bad = post(b"Content-Length: 2", body=b"{}")
    good = post(b"Content-Length: %d" % len(BODY), body=BODY)
    answers = send(gateway, LIVE + bad + good + LAST, ["GET", "POST", "POST", "GET"])
    assert [answer.status for answer in answers] == [200, 400, 200, 200]


@pytest.mark.parametrize("value", [b"h2c", b"websocket", b"TLS/1.0, h2c"])
def test_an_upgrade_is_not_taken(gateway: LiveGateway, value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    upgrade = b"Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nUpgrade: " + value
    answers = send(gateway, LIVE.replace(b"Host: x", upgrade) + LAST, ["GET", "GET"])
    assert [answer.status for answer in answers] == [200, 200]
    assert {record.getMessage() for record in caplog.records if record.name != "tritone.gateway.access"} == set()


def test_who_is_refused_within_a_body_loses_the_connection(gateway: LiveGateway) -> None:
    for path, status in ((CHAT, 415), ("/nope", 404), ("/health/live", 405)):
        data = post(b"Transfer-Encoding: chunked", path=path).replace(b"application/json", b"multipart/form-data")
        with gateway.connect() as connection:
            connection.sendall(data + chunk(b"x" * 1000))
            began = time.monotonic()
            answer = parse_answers(read_until_close(connection), ["POST"])[0]
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert time.monotonic() - began < 5


def test_a_refusal_is_no_reset(gateway: LiveGateway) -> None:
    """What the client was still sending must not make the kernel throw its answer away."""
    with gateway.connect() as connection:
        connection.sendall(post(b"Content-Length: 4000000") + b"x" * 500_000)
        received = b""
        while part := connection.recv(65536):  # a reset would raise
            received += part
            if b"body_too_large" in received:
                connection.sendall(b"x" * 500_000)
                connection.shutdown(socket.SHUT_WR)
    assert parse_answers(received, ["POST"])[0].status == 413


def test_a_trickle_after_a_refusal_ends(gateway: LiveGateway) -> None:
    """One byte now and then of a body that nobody reads must not hold the connection."""
    with gateway.connect() as connection:
        connection.sendall(post(b"Transfer-Encoding: chunked", path="/nope"))
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - began < 20:
                connection.sendall(chunk(b"x"))
                time.sleep(0.05)
    assert time.monotonic() - began < 10


def test_expect_continue(gateway: LiveGateway) -> None:
    head = post(b"Expect: 100-continue", b"Content-Length: %d" % len(BODY), b"Connection: close")
    with gateway.connect() as connection:
        connection.sendall(head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY)
        assert parse_answers(read_until_close(connection), ["POST"])[0].status == 200
    # Who never sends the body is told off in time; who would be refused is not asked to go on.
    assert send(gateway, head, ["POST"])[0].status == 408
    refused = send(gateway, head.replace(CHAT.encode(), b"/nope"), ["POST"])[0]
    assert (refused.status, refused.headers["connection"]) == (404, "close")


# --- size -----------------------------------------------------------------------------------------------------------
def flood(gateway: LiveGateway, head: bytes, piece: bytes, max_bytes: int) -> tuple[list[Answer], int]:
    """Send pieces until the server hangs up; gives the answer and how much was sent."""
    with gateway.connect() as connection:
        connection.sendall(head)
        num_sent = 0
        try:
            while num_sent < max_bytes:
                connection.sendall(piece)
                num_sent += len(piece)
        except OSError:
            pass
        return parse_answers(read_until_close(connection), ["POST"]), num_sent


def test_an_endless_chunked_body(gateway: LiveGateway) -> None:
    """T09: a gigabyte without a length. The answer arrives although the client was still sending."""
    piece = chunk(b"QUJD" * 16384)
    (answer,), num_sent = flood(gateway, post(b"Transfer-Encoding: chunked"), piece, 1 << 30)
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert num_sent < 64 << 20


def test_a_length_above_the_limit_is_refused_unread(gateway: LiveGateway) -> None:
    (answer,) = send(gateway, post(b"Content-Length: 1073741824", b"Expect: 100-continue"), ["POST"])
    assert (answer.status, answer.code) == (413, "body_too_large")


@pytest.mark.parametrize("coding", [b"gzip", b"br", b"deflate", b"zstd", b"gzip, gzip", b"IDENTITY, gzip"])
def test_compressed_bodies(gateway: LiveGateway, coding: bytes) -> None:
    bomb = gzip.compress(b"0" * 1_000_000)
    (answer,) = send(
        gateway, post(b"Content-Encoding: " + coding, b"Content-Length: %d" % len(bomb), body=bomb), ["POST"]
    )
    assert (answer.status, answer.code) == (415, "unsupported_encoding")


def test_multipart(gateway: LiveGateway) -> None:
    """T12 on JSON routes: refused by its type, however it is broken inside."""
    head = post(b"Transfer-Encoding: chunked").replace(b"application/json", b"multipart/form-data; boundary=b")
    part = chunk(b'--b\r\ncontent-disposition: form-data; name="f"\r\n\r\n' + b"x" * 60_000)
    (answer,), num_sent = flood(gateway, head, part, 1 << 30)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert num_sent < 64 << 20


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health/live HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %b\r\n" % (i, b"a" * 8192) for i in range(1000)),
        b"GET /health/live HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 2000 + b"\r\n",
        b"GET /" + b"a" * 1_000_000,
        b"GET /health/live?" + b"a" * 15_000 + b" HTTP/1.1\r\nHost: x\r\nX: " + b"b" * 8000 + b"\r\n\r\n",
        b"A" * 1_000_000,
    ],
    ids=["1000x8KB", "2000-headers", "target", "target-and-header", "method"],
)
def test_endless_heads(gateway: LiveGateway, head: bytes) -> None:
    """T13."""
    with gateway.connect() as connection:
        try:
            connection.sendall(head)
        except OSError:
            pass
        (answer,) = parse_answers(read_until_close(connection), ["GET"])
    assert (answer.status, answer.code) == (431, "headers_too_large")


def test_endless_trailers_and_chunk_extensions(gateway: LiveGateway) -> None:
    for body in (b"0\r\n" + b"X: a\r\n" * 100_000, b"1;" + b"a" * 1_000_000):
        (answer,), _ = flood(gateway, post(b"Transfer-Encoding: chunked", body=b"2\r\n{}\r\n"), body, 1)
        assert answer.status in (400, 431)


def test_a_body_in_tiny_chunks(gateway: LiveGateway) -> None:
    """Each costs as much to parse as a request: whoever sends them by the thousand is stopped, others are served."""
    tiny = b"".join(chunk(bytes((byte,))) for byte in BODY)
    assert (
        send(gateway, post(b"Transfer-Encoding: chunked", b"Connection: close", body=tiny + chunk(b"")), ["POST"])[
            0
        ].status
        == 200
    )
    small = b"".join(chunk(b" " * 32) for _ in range(5000)) + chunk(BODY) + chunk(b"")
    assert (
        send(gateway, post(b"Transfer-Encoding: chunked", b"Connection: close", body=small), ["POST"])[0].status == 200
    )
    (answer,), num_sent = flood(gateway, post(b"Transfer-Encoding: chunked"), chunk(b" ") * 10_000, 1 << 30)
    assert (answer.status, answer.code) == (400, "bad_http") and b"chunks" in answer.body
    assert num_sent < 64 << 20


# --- time -----------------------------------------------------------------------------------------------------------
def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(65536)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(5)


@pytest.mark.parametrize("start", [b"", b"G", LIVE[:-2]], ids=["silent", "one-byte", "no-end"])
def test_a_head_that_never_ends(gateway: LiveGateway, start: bytes) -> None:
    with gateway.connect() as connection:
        connection.sendall(start)
        until(lambda: is_closed(connection))


@pytest.mark.parametrize("before", [b"", LIVE], ids=["first", "second-request"])
def test_a_head_in_drops(gateway: LiveGateway, before: bytes) -> None:
    """Slow loris: a byte every now and then does not prolong the time, on a kept connection neither."""
    with gateway.connect() as connection:
        if before:
            connection.sendall(before)
            assert b"200 OK" in connection.recv(65536)
        began = time.monotonic()
        with pytest.raises(OSError):
            connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n")
            while time.monotonic() - began < 20:
                connection.sendall(b"X")
                time.sleep(0.02)
        assert time.monotonic() - began < 3 * 10 * SETTINGS.head_timeout_s


def test_a_body_in_drops(gateway: LiveGateway) -> None:
    with gateway.connect() as connection:
        connection.sendall(post(b"Content-Length: 1000"))
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - began < 20:
                connection.sendall(b" ")
                time.sleep(0.02)
        answers = read_until_close(connection) if not is_closed(connection) else b""
    assert time.monotonic() - began < 10
    assert not answers or b"408" in answers


def test_an_answer_that_is_not_read(gateway: LiveGateway) -> None:
    """Any route, not only streams: megabytes of OpenAPI document asked for and left in the socket."""
    document = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with gateway.connect(receive_buffer_bytes=4096) as connection:
        connection.setblocking(False)
        pending = document * 200

        def has_hung_up() -> bool:
            nonlocal pending
            try:
                if pending:
                    pending = pending[connection.send(pending) :]
                return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
            except BlockingIOError:
                return False
            except OSError:
                return True

        until(has_hung_up, within_s=20)


def test_a_full_house_drops_the_longest_idle_connection() -> None:
    settings = GatewaySettings(max_connections=8, drain_timeout_s=1)
    with live_gateway(FakeTransport(), settings) as gateway:
        with ExitStack() as stack:
            silent = []
            for _ in range(40):
                silent.append(stack.enter_context(gateway.connect()))
                time.sleep(0.005)
            assert send(gateway, LAST)[0].status == 200
            until(lambda: sum(not is_closed(connection) for connection in silent) <= 8)
            assert is_closed(silent[0]) and not is_closed(silent[-1])
