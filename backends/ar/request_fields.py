# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Readers of single JSON fields: type, range and size, with an error that names the field. Null means absent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from tritone.errors import InvalidRequest

Default = TypeVar("Default", str, None)


def kind(value: object) -> str:
    """JSON's word for the type of `value`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list | tuple) else "an object"


def wrong(key: str, expected: str, value: object) -> InvalidRequest:
    """The error for a value of the wrong type or range."""
    simple = isinstance(value, bool | float | str) or (isinstance(value, int) and abs(value) < 1 << 63)
    seen = repr(value)[:80] if simple else kind(value)
    return InvalidRequest(f"{key} must be {expected}; got {seen}", field=key)


def flag(params: Mapping[str, Any], key: str, default: bool) -> bool:
    """A boolean."""
    value = params.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise wrong(key, "true or false", value)
    return value


def optional_integer(params: Mapping[str, Any], key: str, low: int, high: int) -> int | None:
    """An integer from `low` to `high`, or None. 3.0 counts as 3, true does not count as 1."""
    value = params.get(key)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise wrong(key, f"an integer from {low} to {high}", value)
    return value


def integer(params: Mapping[str, Any], key: str, default: int, low: int, high: int) -> int:
    """An integer from `low` to `high`."""
    value = optional_integer(params, key, low, high)
    return default if value is None else value


def number(
    params: Mapping[str, Any],
    key: str,
    default: float,
    low: float,
    high: float,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """A finite number in the interval; an open end excludes its bound."""
    value = params.get(key)
    if value is None:
        return default
    interval = f"a number in {'(' if low_open else '['}{low:g}, {high:g}{')' if high_open else ']'}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(key, interval, value)
    # Compared before the conversion: a huge int does not fit a float.
    if not low <= value <= high or (low_open and value == low) or (high_open and value == high):
        raise wrong(key, interval, value)
    if not math.isfinite(value):
        raise wrong(key, interval, value)
    return float(value)


def text(params: Mapping[str, Any], key: str, default: Default, *, max_chars: int | None = None) -> str | Default:
    """A string of valid Unicode."""
    value = params.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise wrong(key, "a string", value)
    check_unicode(key, value)
    if max_chars is not None and len(value) > max_chars:
        raise InvalidRequest(f"{key} has {len(value)} characters; at most {max_chars}", field=key)
    return value


def check_unicode(key: str, value: str) -> None:
    """JSON can smuggle in half a surrogate pair, which no tokenizer takes."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest(f"{key} is not valid Unicode (a lone surrogate)", field=key) from None


def text_list(params: Mapping[str, Any], key: str, max_items: int, max_chars: int) -> tuple[str, ...]:
    """A list of non-empty strings; a single string counts as a list of one."""
    value = params.get(key)
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise wrong(key, "a string or a list of strings", value)
    if len(items) > max_items:
        raise InvalidRequest(f"{key} has {len(items)} entries; at most {max_items}", field=key)
    for item in items:
        if not isinstance(item, str) or not item or len(item) > max_chars:
            raise wrong(key, f"non-empty strings of at most {max_chars} characters", item)
        check_unicode(key, item)
    return tuple(items)


def id_list(params: Mapping[str, Any], key: str, max_items: int) -> tuple[int, ...]:
    """A list of token ids; whether the vocabulary has them is checked where it is known."""
    value = params.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong(key, "a list of token ids", value)
    if len(value) > max_items:
        raise InvalidRequest(f"{key} has {len(value)} entries; at most {max_items}", field=key)
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < 1 << 31:
            raise wrong(key, "non-negative token ids", item)
    return tuple(value)
