# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The formats that are read, known by their first bytes and not by what a client or a server calls them."""

from __future__ import annotations

from typing import Literal, NamedTuple

MediaKind = Literal["image", "audio", "video"]


class MediaFormat(NamedTuple):
    """A format and the kinds of media it can hold. For audio and video `name` is FFmpeg's demuxer."""

    name: str
    kinds: frozenset[MediaKind]


_IMAGE: frozenset[MediaKind] = frozenset({"image"})
_AUDIO: frozenset[MediaKind] = frozenset({"audio"})
_BOTH: frozenset[MediaKind] = frozenset({"audio", "video"})

PNG, JPEG, GIF = MediaFormat("png", _IMAGE), MediaFormat("jpeg", _IMAGE), MediaFormat("gif", _IMAGE)
WEBP, BMP = MediaFormat("webp", _IMAGE), MediaFormat("bmp", _IMAGE)
WAV, FLAC, OGG = MediaFormat("wav", _AUDIO), MediaFormat("flac", _AUDIO), MediaFormat("ogg", _AUDIO)
MP3, AAC = MediaFormat("mp3", _AUDIO), MediaFormat("aac", _AUDIO)
MP4, MATROSKA = MediaFormat("mov", _BOTH), MediaFormat("matroska", _BOTH)

_PREFIXES = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
    (b"BM", BMP),
    (b"fLaC", FLAC),
    (b"OggS", OGG),
    (b"ID3", MP3),
    (b"\x1aE\xdf\xa3", MATROSKA),
)
_RIFF = {b"WEBP": WEBP, b"WAVE": WAV}
# Servers of files often know no better.
_OPAQUE_TYPES = frozenset({"application/octet-stream", "binary/octet-stream"})
_TYPES: dict[MediaKind, tuple[str, ...]] = {
    "image": ("image/",),
    "audio": ("audio/", "video/", "application/ogg"),
    "video": ("video/",),
}


def sniff(head: bytes) -> MediaFormat | None:
    """The format that starts with `head` (16 bytes are enough), or None."""
    for prefix, media_format in _PREFIXES:
        if head.startswith(prefix):
            return media_format
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return MP4
    if len(head) >= 2 and head[0] == 0xFF:
        # An MPEG frame header: eleven bits of sync, then version and layer. ADTS has layer 0, MP3 layer 3 (bits 01).
        if head[1] & 0xF6 == 0xF0:
            return AAC
        if head[1] & 0xE6 == 0xE2:
            return MP3
    return None


def is_type_of(content_type: str, kind: MediaKind) -> bool:
    """Whether a media type, parameters cut off, can label `kind`."""
    content_type = content_type.strip().lower()
    return content_type in _OPAQUE_TYPES or content_type.startswith(_TYPES[kind])
