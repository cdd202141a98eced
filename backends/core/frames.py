# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks as bytes on a link between two processes of one server: raw tensors behind a small JSON list of their names.

Knows neither sockets nor what a chunk means. A frame is a fixed head (length of the body, call, kind) and a body; the
body of a chunk is the length of the list, the list `[name, type, shape, bytes]…`, and the tensors one after another.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, BinaryIO, NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]

_HEAD = struct.Struct("<IQB")
_LENGTH = struct.Struct("<I")
TEXT_TYPE = "text"  # an array of byte strings, each behind its length
_TYPES = {"<i2", "<i4", "<i8", "<f2", "<f4", "<f8", "|u1", "|i1", "|b1"}


class FrameKind(IntEnum):
    """What a frame is."""

    OPEN = 1  # the stage has taken the call: from here on its end of the link answers for it
    CHUNK = 2
    FINAL = 3  # the last chunk
    CANCEL = 4  # to the stage


class Frame(NamedTuple):
    """One frame as it was read."""

    call: int
    kind: FrameKind
    body: bytes


def head(call: int, kind: FrameKind, body_bytes: int = 0) -> bytes:
    """The head of a frame whose body has that many bytes."""
    return _HEAD.pack(body_bytes, call, kind)


def encode(call: int, kind: FrameKind, arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """A frame that carries `arrays`."""
    listing, parts = [], []
    for name, array in arrays.items():
        if array.dtype == np.object_:
            kind_name = TEXT_TYPE
            data = b"".join(_LENGTH.pack(len(text)) + text for text in array.reshape(-1))
        else:
            kind_name = array.dtype.str
            if kind_name not in _TYPES:
                raise ValueError(f"tensor {name} has type {kind_name}, which no link carries")
            data = array.tobytes()
        listing.append([name, kind_name, array.shape, len(data)])
        parts.append(data)
    text = json.dumps(listing, separators=(",", ":")).encode()
    body_bytes = _LENGTH.size + len(text) + sum(map(len, parts))
    return b"".join([head(call, kind, body_bytes), _LENGTH.pack(len(text)), text, *parts])


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next frame; none when the other side has gone."""
    start = stream.read(_HEAD.size)
    if len(start) < _HEAD.size:
        return None
    body_bytes, call, kind = _HEAD.unpack(start)
    body = stream.read(body_bytes) if body_bytes else b""
    return Frame(call, FrameKind(kind), body) if len(body) == body_bytes else None


def decode(body: bytes) -> Arrays:
    """The arrays of a chunk, read-only views of `body`. Raises ValueError on anything that does not add up."""
    try:
        (listing_bytes,) = _LENGTH.unpack_from(body)
        offset = _LENGTH.size + listing_bytes
        arrays: Arrays = {}
        for name, kind_name, shape, size in json.loads(body[_LENGTH.size : offset]):
            data = memoryview(body)[offset : offset + size]
            arrays[name] = _array(data, kind_name, tuple(shape), size)
            offset += size
    except (struct.error, TypeError) as error:
        raise ValueError("a frame that cannot be read") from error
    if offset != len(body):
        raise ValueError("a frame with bytes left over")
    return arrays


def _array(data: memoryview, kind_name: str, shape: tuple[int, ...], size: int) -> np.ndarray[Any, Any]:
    if kind_name == TEXT_TYPE:
        texts, start = [], 0
        while start < size:
            (length,) = _LENGTH.unpack_from(data, start)
            start += _LENGTH.size + length
            if start > size:
                raise ValueError("a text longer than its frame")
            texts.append(bytes(data[start - length : start]))
        array = np.empty(len(texts), dtype=np.object_)
        array[:] = texts
        return array.reshape(shape)
    if kind_name not in _TYPES or math.prod(shape) * np.dtype(kind_name).itemsize != size or len(data) != size:
        raise ValueError("a tensor whose shape and bytes disagree")
    return np.frombuffer(data, dtype=kind_name).reshape(shape)
