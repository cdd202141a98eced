# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What a client's value is taken for, and strict base64 (reliability T04, T09)."""

from __future__ import annotations

import asyncio
import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.sources import bytes_of, decode_base64, form_of


def decoded(text: str, *, max_bytes: int = 1 << 30, start: int = 0) -> bytes:
    return bytes(asyncio.run(decode_base64(text, start=start, max_bytes=max_bytes)))


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (b"x", "upload"),
        (bytearray(b"https://example.com"), "upload"),
        ("data:image/png;base64,", "data_url"),
        ("DaTa:x", "data_url"),
        ("https://example.com", "url"),
        ("HTTP://example.com", "url"),
        ("https:/example.com", "base64"),
        ("file:///etc/passwd", "base64"),
        ("/etc/passwd", "base64"),
        ("", "base64"),
    ],
)
def test_form_of_a_value(value: str | bytes, form: str) -> None:
    assert form_of(value) == form


@given(st.binary(max_size=300), st.text(max_size=8))
def test_base64_decodes_what_it_encodes(data: bytes, before: str) -> None:
    text = before + base64.b64encode(data).decode()
    assert decoded(text, start=len(before)) == data


def test_base64_over_several_slices() -> None:
    data = bytes(range(256)) * 12_000
    assert decoded(base64.b64encode(data).decode()) == data


def test_padding_inside_is_refused_at_a_slice_border_too() -> None:
    text = "A" * ((1 << 20) - 4) + "AAA=" + "AAAA"
    with pytest.raises(MediaFault):
        decoded(text)


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "AA",
        "AAA",
        "AA=A",
        "====",
        "=AAA",
        "AAAA=",
        "AA==AAAA",
        "AA A",
        "AA\nA",
        "A-_A",
        "AAA\u00e9",
        "\0AAA",
        "AAA\ud800",
    ],
)
def test_base64_is_strict(text: str) -> None:
    with pytest.raises(MediaFault) as refused:
        decoded(text)
    assert refused.value.fault is Fault.BAD_BASE64


def test_base64_length_is_checked_before_anything_is_decoded() -> None:
    assert decoded("AAAA" * 10, max_bytes=30) == bytes(30)
    assert decoded("AAAA" * 9 + "AA==", max_bytes=28) == bytes(28)
    with pytest.raises(MediaFault) as refused:
        decoded("AAAA" * 11, max_bytes=30)
    assert refused.value.fault is Fault.TOO_MANY_BYTES
    long = "!" * (1 << 27)
    start = time.perf_counter()
    with pytest.raises(MediaFault):
        decoded(long, max_bytes=1000)
    assert time.perf_counter() - start < 0.5


async def test_the_event_loop_turns_while_base64_is_decoded() -> None:
    text = base64.b64encode(bytes(36 << 20)).decode()
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0)
    assert len(await decode_base64(text, start=0, max_bytes=1 << 30)) == 36 << 20
    watcher.cancel()
    # About 2 ms on an idle core.
    assert longest < 0.1


@pytest.mark.parametrize(
    "head",
    [
        "data:image/png;base64",
        "DATA:IMAGE/PNG;BASE64",
        "data:image/png;charset=utf-8;base64",
        "data:image/x-y.z+w;base64",
    ],
)
async def test_data_urls(head: str) -> None:
    assert bytes(await bytes_of(f"{head},aGVsbG8=", kind="image", max_bytes=10)) == b"hello"


@pytest.mark.parametrize(
    "text",
    [
        "data:image/png,aGVsbG8=",
        "data:;base64,aGVsbG8=",
        "data:image/png;base64 ,aGVsbG8=",
        "data:text/html;base64,aGVsbG8=",
        "data:audio/wav;base64,aGVsbG8=",
        "data:image/png;base64;x=y,aGVsbG8=",
        "data:" + "image/png;a=b;" * 1000 + "base64,aGVsbG8=",
        "data:image/png;base64" + "A" * 1_000_000,
    ],
)
async def test_data_urls_of_another_kind_or_form_are_refused(text: str) -> None:
    with pytest.raises(MediaFault) as refused:
        await bytes_of(text, kind="image", max_bytes=10_000_000)
    assert refused.value.fault is Fault.BAD_DATA_URL


async def test_uploads_are_bounded() -> None:
    assert await bytes_of(b"12345", kind="image", max_bytes=5) == b"12345"
    with pytest.raises(MediaFault):
        await bytes_of(b"123456", kind="image", max_bytes=5)
