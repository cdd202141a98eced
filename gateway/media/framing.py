# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What travels between gateway and decoder: a JSON header with its length before it, then raw bytes. No pickle.

A job is a header and the file; a reply is a header and the tensors it lists. The gateway trusts no reply: a decoder may
have been taken over by the file it was given.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_LENGTH = struct.Struct("<I")
PREFIX_BYTES = _LENGTH.size
MAX_HEADER_BYTES = 16 * 1024
ITEM_BYTES = {"uint8": 1, "float32": 4}
_MAX_RANK = 4


class BadFrame(Exception):
    """The other side sent something that is not of this protocol, or broke off."""


class TensorHead(NamedTuple):
    """Name, type and shape of a tensor of a reply."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


def header_bytes(header: Mapping[str, Any]) -> bytes:
    """A header as it is sent, its length before it."""
    text = json.dumps(header).encode()
    return _LENGTH.pack(len(text)) + text


def header_length(prefix: bytes | bytearray) -> int:
    """The length that `prefix` announces, if it is a possible one."""
    (length,) = _LENGTH.unpack(prefix)
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise BadFrame("header length")
    return int(length)


def read_header(text: bytes | bytearray) -> dict[str, Any]:
    """The JSON object in `text`."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("header") from None
    if not isinstance(header, dict):
        raise BadFrame("header")
    return header


def tensor_heads(header: Mapping[str, Any], *, max_bytes: int) -> list[TensorHead]:
    """The tensors a reply lists, each checked, together no more than `max_bytes`."""
    heads: list[TensorHead] = []
    listed = header.get("tensors")
    if not isinstance(listed, list) or len(listed) > 4:
        raise BadFrame("tensors")
    for entry in listed:
        if not isinstance(entry, dict):
            raise BadFrame("tensor")
        name, dtype, shape = entry.get("name"), entry.get("dtype"), entry.get("shape")
        if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in ITEM_BYTES:
            raise BadFrame("tensor type")
        if not isinstance(shape, list) or not 1 <= len(shape) <= _MAX_RANK:
            raise BadFrame("tensor shape")
        if not all(type(size) is int and 0 <= size <= max_bytes for size in shape):
            raise BadFrame("tensor shape")
        heads.append(TensorHead(name, dtype, tuple(shape)))
    if sum(head.num_bytes for head in heads) > max_bytes:
        raise BadFrame("tensor bytes")
    return heads


def receive_exactly(pipe: socket.socket, num_bytes: int) -> bytearray:
    """`num_bytes` from a blocking socket."""
    received = bytearray(num_bytes)
    view = memoryview(received)
    while view:
        count = pipe.recv_into(view)
        if not count:
            raise BadFrame("broken off")
        view = view[count:]
    return received


def send_reply(pipe: socket.socket, header: Mapping[str, Any], blocks: Iterable[bytes | bytearray] = ()) -> None:
    """Send a header and the bytes of its tensors, in their order."""
    pipe.sendall(header_bytes(header))
    for block in blocks:
        pipe.sendall(block)
