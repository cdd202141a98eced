# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a request body as one strict JSON object.

Refused beyond bad JSON: nesting deeper than 32, more than half a million values, duplicate keys, NaN and Infinity,
invalid UTF-8, lone surrogates.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import orjson
from starlette.types import Receive, Scope

from tritone.errors import Cancelled, InvalidRequest
from tritone.gateway.http_errors import HttpFault

MAX_DEPTH = 32
# A value of one or two bytes in the body is an object of fifty and more in memory.
MAX_VALUES = 1 << 19
# Parsing more than this takes long enough for other requests to notice; a thread shares the interpreter with them.
_MAX_INLINE_BYTES = 1 << 18

_INNERMOST = re.compile(rb"\[\]|\{\}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


async def read_json(scope: Scope, receive: Receive, *, timeout_s: float) -> dict[str, Any]:
    """The body of an `application/json` request."""
    _require_json_type(scope)
    try:
        async with asyncio.timeout(timeout_s):
            body = await _read_body(receive)
    except TimeoutError:
        raise HttpFault(
            408, "The request body did not arrive in time.", code="timeout", headers=((b"connection", b"close"),)
        ) from None
    if len(body) > _MAX_INLINE_BYTES:
        return await asyncio.to_thread(parse_object, body)
    return parse_object(body)


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse one JSON object under the rules of this module."""
    # What is left without strings shows nesting and the number of keys without building a tree.
    structure = _without_strings(body)
    closing = structure.count(b"]") + structure.count(b"}")
    if sum(map(structure.count, (b",", b"[", b"{"))) > MAX_VALUES or closing > MAX_VALUES:
        raise _too_many_values()
    if _is_too_deep(structure):
        raise InvalidRequest(f"The JSON body is nested deeper than {MAX_DEPTH} levels.")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not valid JSON (line {error.lineno}, column {error.colno}).") from None
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if _count_keys(value) != structure.count(b":"):
        raise InvalidRequest("The JSON body has an object with a duplicate key.")
    return value


def _without_strings(body: bytes) -> bytes:
    """`body` without its strings, if it is JSON; of anything else as much is right as a parser gets through."""
    if b"\\" in body:  # outside of strings JSON has no backslash
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if body.count(b'"') > 2 * MAX_VALUES:
        raise _too_many_values()
    return b"".join(body.split(b'"')[::2])


def _too_many_values() -> InvalidRequest:
    return InvalidRequest(f"The JSON body has more than {MAX_VALUES} values.")


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Cancelled("the client went away before its request was complete")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _require_json_type(scope: Scope) -> None:
    values = [value for name, value in scope["headers"] if name == b"content-type"]
    media_type, _, parameters = (values[0] if len(values) == 1 else b"").partition(b";")
    charset = parameters.strip().lower().replace(b'"', b"")
    if media_type.strip().lower() != b"application/json" or charset not in (b"", b"charset=utf-8"):
        raise HttpFault(415, "Content-Type must be application/json.", code="unsupported_media_type")


def _is_too_deep(structure: bytes) -> bool:
    brackets = structure.translate(None, _NOT_BRACKETS)
    # Each pass removes the innermost level. Brackets that do not match stay, and the parser refuses them.
    for _ in range(MAX_DEPTH):
        shorter = _INNERMOST.sub(b"", brackets)
        if len(shorter) == len(brackets):
            return False
        brackets = shorter
    return _INNERMOST.search(brackets) is not None


def _count_keys(root: dict[str, Any]) -> int:
    count = 0
    pending: list[Any] = [root]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            count += len(value)
            pending.extend(child for child in value.values() if isinstance(child, dict | list))
        else:
            pending.extend(child for child in value if isinstance(child, dict | list))
    return count
