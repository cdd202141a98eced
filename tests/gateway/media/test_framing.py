# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway believes no reply: what a decoder may claim about its tensors."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritone.gateway.media.decoder_process import _exchange
from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.framing import (
    MAX_HEADER_BYTES,
    BadFrame,
    header_bytes,
    header_length,
    read_header,
    tensor_heads,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
SHAPES = st.lists(st.integers(-2, 2**40) | st.booleans() | st.floats(), max_size=6)
TENSORS = st.fixed_dictionaries(
    {
        "name": st.text(max_size=4) | st.integers(),
        "dtype": st.sampled_from(["uint8", "float32", "object", "O", "int64", ""]) | JSON,
        "shape": SHAPES | JSON,
    }
)


@given(st.fixed_dictionaries({"tensors": st.lists(TENSORS, max_size=6) | JSON}))
def test_any_claim_is_bounded_or_refused(header: dict[str, Any]) -> None:
    try:
        heads = tensor_heads(header, max_bytes=1000)
    except BadFrame:
        return
    assert sum(head.num_bytes for head in heads) <= 1000
    assert all(head.dtype in ("uint8", "float32") and min(head.shape) >= 0 for head in heads)


@pytest.mark.parametrize(
    "tensor",
    [
        {"name": "x", "dtype": "uint8", "shape": [1001]},
        {"name": "x", "dtype": "float32", "shape": [251]},
        {"name": "x", "dtype": "uint8", "shape": [-1, -1]},
        {"name": "x", "dtype": "uint8", "shape": [1, 1, 1, 1, 1]},
        {"name": "x", "dtype": "uint8", "shape": []},
        {"name": "x", "dtype": "uint8", "shape": [True]},
        {"name": "x", "dtype": "O", "shape": [1]},
        {"name": "x", "dtype": "uint8"},
    ],
)
def test_claims_that_are_refused(tensor: dict[str, Any]) -> None:
    with pytest.raises(BadFrame):
        tensor_heads({"tensors": [tensor]}, max_bytes=1000)


@given(st.binary(min_size=4, max_size=4))
def test_lengths(prefix: bytes) -> None:
    (length,) = struct.unpack("<I", prefix)
    if 2 <= length <= MAX_HEADER_BYTES:
        assert header_length(prefix) == length
    else:
        with pytest.raises(BadFrame):
            header_length(prefix)


@given(st.dictionaries(st.text(), st.integers()))
def test_headers_arrive_as_they_were(header: dict[str, int]) -> None:
    sent = header_bytes(header)
    assert header_length(sent[:4]) == len(sent) - 4
    assert read_header(sent[4:]) == header


@given(st.binary(max_size=200))
def test_headers_that_are_no_object_are_refused(text: bytes) -> None:
    try:
        assert isinstance(read_header(text), dict)
    except BadFrame:
        pass


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x01",
        b"\xff\xff\xff\xff",
        header_bytes({}),
        header_bytes({"fault": "no such fault"}),
        header_bytes({"fault": ["x"]}),
        header_bytes({"tensors": [{"name": "x", "dtype": "uint8", "shape": [1 << 40]}]}),
        header_bytes({"tensors": [{"name": "x", "dtype": "uint8", "shape": [8]}]}) + b"short",
        struct.pack("<I", 8) + b"not json",
        struct.pack("<I", 16_000) + b"[" * 16_000,
    ],
)
async def test_replies_that_break_off_or_lie(answer: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(BadFrame):
            await _exchange(ours, {"num_bytes": 3}, b"abc", 1000)


async def test_a_fault_crosses_as_its_name() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(header_bytes({"fault": "too_many_pixels"}))
        with pytest.raises(MediaFault) as refused:
            await _exchange(ours, {"num_bytes": 3}, b"abc", 1000)
        assert refused.value.fault is Fault.TOO_MANY_PIXELS
        job = await asyncio.to_thread(theirs.recv, 1000)
    assert json.loads(job[4:-3]) == {"num_bytes": 3} and job.endswith(b"abc")
