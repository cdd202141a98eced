# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The way in: hostile values in every kind of field, forms a field takes, fetching, errors (reliability T01, T04)."""

from __future__ import annotations

import builtins
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from doubles.hostile_media import HOSTILE_VALUES, INTERNAL_HOSTS
from doubles.media_files import encoded, picture, tone, video_file, wav
from doubles.media_host import Resolver, WayOut, http_answer, is_public_or_host, media_host

from tritone.errors import InvalidRequest
from tritone.gateway.media.fetch import Fetcher
from tritone.gateway.media.limits import FetchSettings
from tritone.gateway.media.reader import BASE64_FORMS, UPLOAD_FORMS, URL_FORMS, MediaReader

Read = Callable[..., Awaitable[Any]]
KINDS = ("image", "audio", "video")


def reads(media: MediaReader) -> dict[str, Read]:
    return {"image": media.read_image, "audio": media.read_audio, "video": media.read_video}


@pytest.fixture
async def media() -> AsyncIterator[MediaReader]:
    """A reader that fetches, and whose way out leads nowhere."""
    fetcher = Fetcher(FetchSettings(domains=("*",), allow_http=True), resolver=Resolver({}), connector=WayOut())
    media = MediaReader(fetcher=fetcher)
    yield media
    await media.close()


@pytest.fixture
def nothing_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a file or a socket fails the test."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"opened {arguments!r}")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=lambda value: ascii(value)[:30])
async def test_hostile_values(media: MediaReader, nothing_opens: None, kind: str, value: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await reads(media)[kind](value, field="messages[0].content")
    assert refused.value.field == "messages[0].content"
    assert "`messages[0].content`" in refused.value.message
    assert len(refused.value.message) < 200
    assert not value.strip() or value not in refused.value.message
    assert "passwd" not in refused.value.message
    assert not media.pool.processes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", INTERNAL_HOSTS)
async def test_internal_urls(media: MediaReader, nothing_opens: None, kind: str, host: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await reads(media)[kind](f"http://{host}/x?secret=1", field="url")
    assert refused.value.message == "`url` is a URL this server may not fetch."


@pytest.mark.parametrize("kind", KINDS)
async def test_fetching_is_off_by_default(nothing_opens: None, kind: str) -> None:
    media = MediaReader()
    for value in ("https://example.com/a", "HTTP://127.0.0.1/"):
        with pytest.raises(InvalidRequest, match="does not fetch media; send a data URL"):
            await reads(media)[kind](value, field="url")
    await media.close()


async def test_a_field_takes_only_its_forms() -> None:
    media = MediaReader()
    png = encoded(picture())
    for source, forms in (
        (png, URL_FORMS),
        (png, BASE64_FORMS),
        ("AAAA", URL_FORMS),
        ("AAAA", UPLOAD_FORMS),
        ("data:image/png;base64,AAAA", BASE64_FORMS),
        ("https://example.com/", BASE64_FORMS | UPLOAD_FORMS),
    ):
        with pytest.raises(InvalidRequest, match="in a form this field takes"):
            await media.read_image(source, field="image", forms=forms)
    await media.close()


async def test_one_kind_does_not_pass_for_another() -> None:
    media = MediaReader()
    files = {"image": encoded(picture()), "audio": wav(tone(0.1)), "video": video_file(2)}
    for kind, read in reads(media).items():
        for other, file in files.items():
            if other not in (kind, "video"):
                with pytest.raises(InvalidRequest, match=f"is not {kind} in a format"):
                    await read(file, field="x")
    await media.close()


async def test_a_fetched_picture_is_decoded() -> None:
    async with media_host({"/a.png": http_answer(encoded(picture()))}) as host:
        fetcher = Fetcher(
            FetchSettings(domains=("media.example",), allow_http=True),
            resolver=Resolver({"media.example": [["127.0.0.1"]]}),
            connector=WayOut(host.port),
            is_allowed=is_public_or_host,
        )
        media = MediaReader(fetcher=fetcher)
        image = await media.read_image("http://media.example/a.png", field="image")
        await media.close()
    assert (image.pixels == picture()).all()
