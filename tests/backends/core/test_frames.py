# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Frames: whatever arrays go in come out; whatever bytes come in, ValueError is the worst."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from tritone.backends.core.frames import Frame, FrameKind, decode, encode, head, read_frame

TYPES = ["<i2", "<i4", "<i8", "<f2", "<f4", "<f8", "|u1", "|i1", "|b1"]
NUMBERS = st.sampled_from(TYPES).flatmap(
    lambda name: nps.arrays(name, nps.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
)


def texts(values: list[bytes]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), dtype=np.object_)
    array[:] = values
    return array


ARRAYS = st.dictionaries(st.text(min_size=1, max_size=8), st.one_of(NUMBERS, st.lists(st.binary()).map(texts)))


@given(arrays=ARRAYS, call=st.integers(0, (1 << 63) - 1))
def test_arrays_come_out_as_they_went_in(arrays: dict[str, np.ndarray[Any, Any]], call: int) -> None:
    stream = io.BytesIO(encode(call, FrameKind.CHUNK, arrays) + head(7, FrameKind.CANCEL))
    frame = read_frame(stream)
    assert frame is not None and (frame.call, frame.kind) == (call, FrameKind.CHUNK)
    found = decode(frame.body)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes() or found[name].tolist() == array.tolist()
    assert read_frame(stream) == Frame(7, FrameKind.CANCEL, b"")
    assert read_frame(stream) is None


@given(data=st.data(), arrays=ARRAYS)
def test_spoilt_bodies_are_value_errors(data: st.DataObject, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    frame = read_frame(io.BytesIO(encode(1, FrameKind.CHUNK, arrays)))
    assert frame is not None
    body = bytearray(frame.body)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(body[: data.draw(st.integers(0, len(body)))])
    try:
        decode(cut)
    except ValueError:
        pass


@pytest.mark.parametrize("array", [np.array(["x"]), np.array([1 + 2j]), np.array([1], dtype=">i4")])
def test_types_that_no_link_carries_are_refused(array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(ValueError, match="type"):
        encode(1, FrameKind.CHUNK, {"x": array})


def test_a_frame_that_is_cut_off_is_the_end() -> None:
    whole = encode(1, FrameKind.FINAL, {"x": np.arange(9)})
    assert all(read_frame(io.BytesIO(whole[:length])) is None for length in range(len(whole)))
