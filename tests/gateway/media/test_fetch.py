# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Fetching: off by default, listed hosts only, pinned addresses, redirects, caps (reliability T01, T02, T03, T05).

"No packet leaves" is shown by the way out: every connection goes through it, and it notes what it is asked for.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.hostile_media import INTERNAL_HOSTS
from doubles.media_files import encoded, picture, tone, wav
from doubles.media_host import (
    MediaHost,
    Resolver,
    WayOut,
    http_answer,
    is_public_or_host,
    media_host,
    redirect,
)

from tritone.gateway.media.addresses import Address
from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.fetch import Fetcher, SystemResolver
from tritone.gateway.media.limits import FetchSettings

PNG = encoded(picture())
ANY_HOST = FetchSettings(domains=("*", "*:8443"), allow_http=True)
TABLE: dict[str, list[list[str]]] = {
    "media.example": [["127.0.0.1"]],
    "mixed.example": [["127.0.0.1", "10.0.0.7"]],
    "internal.example": [["10.0.0.7"]],
    "empty.example": [[]],
    "rebind.example": [["127.0.0.1"], ["169.254.169.254"]],
    "down.example": [["1.1.1.1", "127.0.0.1"]],
}


def fetcher_of(host: MediaHost, settings: FetchSettings = ANY_HOST) -> tuple[Fetcher, Resolver, WayOut]:
    """A fetcher for which loopback is public and `host` the only server there is."""
    resolver, way_out = Resolver(TABLE), WayOut(host.port)
    return Fetcher(settings, resolver=resolver, connector=way_out, is_allowed=is_public_or_host), resolver, way_out


async def fault_of(fetcher: Fetcher, url: str, *, max_bytes: int = 1 << 20) -> Fault:
    with pytest.raises(MediaFault) as refused:
        await fetcher.fetch(url, kind="image", max_bytes=max_bytes)
    return refused.value.fault


async def test_fetching_is_off_by_default() -> None:
    way_out, resolver = WayOut(), Resolver(TABLE)
    fetcher = Fetcher(FetchSettings(), resolver=resolver, connector=way_out)
    assert await fault_of(fetcher, "https://media.example/a.png") is Fault.FETCHING_OFF
    assert not way_out.asked and not resolver.asked


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", INTERNAL_HOSTS)
async def test_no_packet_leaves_for_an_internal_host(scheme: str, host: str) -> None:
    way_out, resolver = WayOut(), Resolver(TABLE)
    fetcher = Fetcher(ANY_HOST, resolver=resolver, connector=way_out)
    assert await fault_of(fetcher, f"{scheme}://{host}/latest/meta-data") is Fault.URL_REFUSED
    assert not way_out.asked and not resolver.asked


@pytest.mark.parametrize("name", ["internal.example", "mixed.example", "empty.example", "unknown.example"])
async def test_a_name_with_any_bad_address_is_refused_like_an_unknown_one(name: str) -> None:
    way_out = WayOut()
    fetcher = Fetcher(ANY_HOST, resolver=Resolver(TABLE), connector=way_out, is_allowed=is_public_or_host)
    assert await fault_of(fetcher, f"https://{name}/") is Fault.URL_REFUSED
    assert not way_out.asked


async def test_a_listed_host_is_fetched_and_its_address_pinned() -> None:
    async with media_host({"/a.png?x=1": http_answer(PNG)}) as host:
        fetcher, resolver, way_out = fetcher_of(host)
        assert await fetcher.fetch("http://media.example/a.png?x=1", kind="image", max_bytes=1 << 20) == PNG
    assert resolver.asked == ["media.example"]
    assert way_out.asked == [("127.0.0.1", 80)]
    request = host.requests[0].decode().lower()
    assert request.startswith("get /a.png?x=1 http/1.1\r\nhost: media.example\r\n")
    assert "authorization" not in request and "cookie" not in request


async def test_rebinding_between_check_and_use_is_not_possible() -> None:
    async with media_host({"/": http_answer(PNG)}) as host:
        fetcher, resolver, way_out = fetcher_of(host)
        await fetcher.fetch("http://rebind.example/", kind="image", max_bytes=1 << 20)
        assert resolver.asked == ["rebind.example"] and way_out.asked == [("127.0.0.1", 80)]
        # The second fetch sees the second answer.
        assert await fault_of(fetcher, "http://rebind.example/") is Fault.URL_REFUSED
    assert len(way_out.asked) == 1


async def test_rebinding_at_a_redirect_is_refused() -> None:
    async with media_host({"/": redirect("/again"), "/again": http_answer(PNG)}) as host:
        fetcher, resolver, way_out = fetcher_of(host)
        assert await fault_of(fetcher, "http://rebind.example/") is Fault.URL_REFUSED
    assert resolver.asked == ["rebind.example"] * 2
    assert len(way_out.asked) == len(host.requests) == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://0xa9fea9fe/",
        "//[::1]/",
        "http://internal.example/",
        "http://media.example:8080/",
        "http://user:secret@media.example/a",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "",
    ],
)
async def test_every_redirect_is_checked(location: str) -> None:
    async with media_host({"/": redirect(location)}) as host:
        fetcher, _, way_out = fetcher_of(host)
        assert await fault_of(fetcher, "http://media.example/") is Fault.URL_REFUSED
    assert len(way_out.asked) == len(host.requests) == 1


async def test_a_redirect_may_not_leave_the_list_nor_https() -> None:
    settings = FetchSettings(domains=("media.example",), allow_http=True)
    async with media_host({"/": redirect("http://rebind.example/")}) as host:
        fetcher, resolver, _ = fetcher_of(host, settings)
        assert await fault_of(fetcher, "http://media.example/") is Fault.URL_REFUSED
    assert resolver.asked == ["media.example"]
    fetcher = Fetcher(FetchSettings(domains=("*",)), resolver=Resolver(TABLE), connector=WayOut())
    assert await fault_of(fetcher, "http://media.example/") is Fault.URL_REFUSED


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_three_redirects_are_followed_and_a_fourth_is_not(status: str) -> None:
    answers = {f"/{step}": redirect(f"/{step + 1}", status) for step in range(4)}
    async with media_host({**answers, "/4": http_answer(PNG)}) as host:
        fetcher, _, _ = fetcher_of(host)
        assert await fetcher.fetch("http://media.example/1", kind="image", max_bytes=1 << 20) == PNG
        assert await fault_of(fetcher, "http://media.example/0") is Fault.FETCH_FAILED
    assert len(host.requests) == 4 + 4


async def test_an_endless_body_is_cut_at_the_cap() -> None:
    async with media_host({}) as host:
        fetcher, _, _ = fetcher_of(host)
        assert await fault_of(fetcher, "http://media.example/endless", max_bytes=1 << 20) is Fault.TOO_MANY_BYTES
    # What the kernel's buffers took on top.
    assert host.sent_bytes < 16 << 20


async def test_a_length_over_the_cap_is_refused_before_the_body() -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 99999999999999999999\r\n\r\n"
    async with media_host({"/": answer}) as host:
        fetcher, _, _ = fetcher_of(host)
        assert await fault_of(fetcher, "http://media.example/") is Fault.TOO_MANY_BYTES


async def test_a_slow_body_is_cut_at_the_time_limit() -> None:
    async with media_host({}) as host:
        fetcher, _, _ = fetcher_of(host, replace(ANY_HOST, timeout_s=0.4))
        start = time.perf_counter()
        assert await fault_of(fetcher, "http://media.example/slow") is Fault.FETCH_TIMEOUT
        assert time.perf_counter() - start < 4


async def test_the_time_limit_covers_the_resolver() -> None:
    class Stuck(Resolver):
        async def resolve(self, host: str, port: int) -> Sequence[Address]:
            await asyncio.sleep(60)
            return []

    fetcher = Fetcher(replace(ANY_HOST, timeout_s=0.1), resolver=Stuck({}), connector=WayOut())
    assert await fault_of(fetcher, "http://media.example/") is Fault.FETCH_TIMEOUT


async def test_no_more_fetches_at_once_than_allowed() -> None:
    class Counting(Resolver):
        now = most = 0

        async def resolve(self, host: str, port: int) -> Sequence[Address]:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.02)
            self.now -= 1
            return await super().resolve(host, port)

    resolver = Counting({})
    fetcher = Fetcher(replace(ANY_HOST, max_concurrent=2), resolver=resolver, connector=WayOut())
    faults = await asyncio.gather(*(fault_of(fetcher, "http://media.example/") for _ in range(6)))
    assert set(faults) == {Fault.URL_REFUSED}
    assert resolver.most == 2


@pytest.mark.parametrize(
    "answer",
    [
        http_answer(PNG, content_type="text/html"),
        http_answer(PNG, content_type=""),
        http_answer(PNG, content_type="audio/wav"),
        http_answer(b"<html>not a picture</html>"),
        http_answer(wav(tone(0.1)), content_type="image/png"),
        http_answer(b""),
        http_answer(PNG, headers={"content-encoding": "gzip"}),
        http_answer(PNG, status="404 Not Found"),
        http_answer(PNG, status="206 Partial Content"),
        http_answer(PNG)[:-1],
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
        b"SSH-2.0-OpenSSH\r\n",
        b"",
    ],
)
async def test_answers_that_are_no_picture(answer: bytes) -> None:
    async with media_host({"/": answer}) as host:
        fetcher, _, _ = fetcher_of(host)
        assert await fault_of(fetcher, "http://media.example/") is Fault.FETCH_FAILED


async def test_the_next_address_is_tried_when_one_is_down() -> None:
    async with media_host({"/": http_answer(PNG, content_type="application/octet-stream")}) as host:
        fetcher, _, way_out = fetcher_of(host)
        assert await fetcher.fetch("http://down.example/", kind="image", max_bytes=1 << 20) == PNG
    assert way_out.asked == [("1.1.1.1", 80), ("127.0.0.1", 80)]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://10.0.0.7:3128")
    async with media_host({"/": http_answer(PNG)}) as host:
        fetcher, _, way_out = fetcher_of(host)
        await fetcher.fetch("http://media.example/", kind="image", max_bytes=1 << 20)
    assert way_out.asked == [("127.0.0.1", 80)]


async def test_nothing_of_a_url_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with media_host({"/secret?token=secret": http_answer(b"no")}) as host:
        fetcher, _, _ = fetcher_of(host)
        assert await fault_of(fetcher, "http://media.example/secret?token=secret") is Fault.FETCH_FAILED
    assert "secret" not in caplog.text and "media.example" not in caplog.text


async def test_the_system_resolver_reads_loopback() -> None:
    resolver = SystemResolver(1)
    addresses = await resolver.resolve("localhost", 443)
    resolver.close()
    assert {str(address) for address in addresses} <= {"127.0.0.1", "::1"}


async def test_localhost_is_refused_through_the_real_resolver_and_the_real_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        fetcher = Fetcher(FetchSettings(domains=(f"localhost:{server.getsockname()[1]}",), allow_http=True))
        assert await fault_of(fetcher, f"http://localhost:{server.getsockname()[1]}/") is Fault.URL_REFUSED
        fetcher.close()
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", "/CN=media.example", "-addext", "subjectAltName=DNS:media.example"]
        + ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return folder


async def test_tls_checks_the_name_of_the_url_on_the_pinned_address(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    names: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    settings = FetchSettings(domains=("media.example", "down.example"), ca_file=str(certificate / "cert.pem"))
    async with media_host({"/": http_answer(PNG)}, context) as host:
        fetcher, _, _ = fetcher_of(host, settings)
        assert await fetcher.fetch("https://media.example/", kind="image", max_bytes=1 << 20) == PNG
        assert names == ["media.example"]
        # Same server, same address, a name its certificate is not for.
        assert await fault_of(fetcher, "https://down.example/") is Fault.FETCH_FAILED
        # And an authority nobody trusts.
        fetcher, _, _ = fetcher_of(host, replace(settings, ca_file=""))
        assert await fault_of(fetcher, "https://media.example/") is Fault.FETCH_FAILED
    assert len(host.requests) == 1
