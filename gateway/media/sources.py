# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Tells what a client's value is (upload, data URL, http URL, base64) and decodes the two that carry bytes as text.

Nothing here opens a file or a connection, and nothing a client writes is ever taken for a path.
"""

from __future__ import annotations

import asyncio
import binascii
import re
from typing import Literal

from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.formats import MediaKind, is_type_of

MediaSource = str | bytes | bytearray | memoryview
SourceForm = Literal["upload", "data_url", "url", "base64"]

# A multiple of four characters that decodes in about a millisecond, so the event loop is never held for long.
_SLICE_CHARS = 1 << 20
# `data:image/png;base64,` with room for parameters; the rest of a long string is never searched.
_MAX_DATA_HEAD_CHARS = 256
_DATA_HEAD = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)((?:;[a-z0-9_-]+=[a-z0-9.+_-]+)*);base64", re.IGNORECASE)


def form_of(source: MediaSource) -> SourceForm:
    """The form of `source`. Whatever is no URL of a known scheme counts as base64, whose alphabet decides."""
    if not isinstance(source, str):
        return "upload"
    scheme = source[:8].lower()
    if scheme.startswith("data:"):
        return "data_url"
    return "url" if scheme.startswith(("http://", "https://")) else "base64"


async def bytes_of(source: MediaSource, *, kind: MediaKind, max_bytes: int) -> bytes | bytearray | memoryview:
    """The bytes inside an upload, a data URL or base64 text."""
    form = form_of(source)
    if not isinstance(source, str):
        if len(source) > max_bytes:
            raise MediaFault(Fault.TOO_MANY_BYTES)
        return source
    start = _start_of_data(source, kind) if form == "data_url" else 0
    return await decode_base64(source, start=start, max_bytes=max_bytes)


async def decode_base64(text: str, *, start: int, max_bytes: int) -> bytearray:
    """Decode standard base64 from `start` on: length first, strict alphabet and padding, each character read once."""
    length = len(text) - start
    # At most two characters of padding stand for nothing.
    if length // 4 * 3 > max_bytes + 2:
        raise MediaFault(Fault.TOO_MANY_BYTES)
    if length % 4:
        raise MediaFault(Fault.BAD_BASE64)
    decoded = bytearray()
    for position in range(start, len(text), _SLICE_CHARS):
        piece = text[position : position + _SLICE_CHARS]
        try:
            data = binascii.a2b_base64(piece, strict_mode=True)
        except ValueError:  # binascii.Error, and characters beyond ASCII
            raise MediaFault(Fault.BAD_BASE64) from None
        is_last = position + _SLICE_CHARS >= len(text)
        if len(data) * 4 != len(piece) * 3 and not is_last:
            raise MediaFault(Fault.BAD_BASE64)
        decoded += data
        if not is_last:
            await asyncio.sleep(0)
    if len(decoded) > max_bytes:
        raise MediaFault(Fault.TOO_MANY_BYTES)
    return decoded


def _start_of_data(source: str, kind: MediaKind) -> int:
    comma = source.find(",", 0, _MAX_DATA_HEAD_CHARS)
    head = _DATA_HEAD.fullmatch(source, 0, comma) if comma >= 0 else None
    if head is None or not is_type_of(head[1], kind):
        raise MediaFault(Fault.BAD_DATA_URL)
    return comma + 1
