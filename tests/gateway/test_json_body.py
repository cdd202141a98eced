# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The strict JSON reader."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritone.errors import InvalidRequest
from tritone.gateway.json_body import MAX_DEPTH, parse_object

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=20,
)


def nested(depth: int, opening: str, closing: str, inside: str = "1") -> bytes:
    """An object whose nesting is `depth` levels in all."""
    return f'{{"a":{opening * (depth - 1)}{inside}{closing * (depth - 1)}}}'.encode()


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=5))
def test_valid_objects_are_read(value: dict[str, Any]) -> None:
    assert parse_object(json.dumps(value).encode()) == value
    assert parse_object(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"a"',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1,"a":2}',
        b'{"b":[{"a":1,"c":{},"a":2}]}',
        b'{"a":1,"\\u0061":2}',
        b'{"a":"\xff"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\udc00\\ud800"}',
        b'{"a":1} trailing',
        b"\xef\xbb\xbf{}",
        b'{"a":"unclosed',
    ],
)
def test_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_object(body)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"b":', "}"), ('[{"b":', "}]")])
def test_depth_limit(opening: str, closing: str) -> None:
    levels = opening.count("[") + opening.count("{")
    parse_object(nested(MAX_DEPTH // levels, opening, closing))
    with pytest.raises(InvalidRequest, match="deeper"):
        parse_object(nested(MAX_DEPTH + 2, opening, closing))


def test_exact_depth() -> None:
    parse_object(nested(MAX_DEPTH, "[", "]"))
    with pytest.raises(InvalidRequest, match="deeper"):
        parse_object(nested(MAX_DEPTH + 1, "[", "]"))


def test_brackets_and_colons_in_strings_do_not_count() -> None:
    text = "[" * 100 + ":{" + '\\"' * 3
    assert parse_object(json.dumps({"a": text}).encode()) == {"a": text}


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":"' + b"\\" * 1_000_001,
        b'{"a":[' + b"1," * 1_000_000,
        b'{"a":"' + b'"x' * 100_000,
    ],
)
def test_hostile_bodies_are_refused_quickly(body: bytes) -> None:
    began = time.perf_counter()
    with pytest.raises(InvalidRequest):
        parse_object(body)
    assert time.perf_counter() - began < 2.0
