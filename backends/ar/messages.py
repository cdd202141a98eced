# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Checks OpenAI-style messages and tools, and brings them into the plain form chat templates expect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tritone.backends.ar import request_fields as read
from tritone.errors import InvalidRequest, Unsupported

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_MESSAGES = 4096
MAX_TOOLS = 128


def check_messages(value: object) -> tuple[Mapping[str, Any], ...] | None:
    """Messages with string contents; text parts are joined, "developer" becomes "system"."""
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise read.wrong("messages", "a non-empty list", value)
    if len(value) > MAX_MESSAGES:
        raise InvalidRequest(f"messages has {len(value)} entries; at most {MAX_MESSAGES}", field="messages")
    return tuple(_message(index, message) for index, message in enumerate(value))


def check_tools(value: object) -> tuple[Mapping[str, Any], ...]:
    """Function tools, each with a name."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise read.wrong("tools", "a list", value)
    if len(value) > MAX_TOOLS:
        raise InvalidRequest(f"tools has {len(value)} entries; at most {MAX_TOOLS}", field="tools")
    for index, tool in enumerate(value):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(tool, dict) or tool.get("type") != "function" or not isinstance(function, dict):
            raise InvalidRequest(f'tools[{index}] must be {{"type": "function", "function": {{…}}}}', field="tools")
        if not isinstance(function.get("name"), str) or not function["name"]:
            raise InvalidRequest(f"tools[{index}].function.name must be a non-empty string", field="tools")
        if not isinstance(function.get("parameters", {}), dict):
            raise InvalidRequest(f"tools[{index}].function.parameters must be an object", field="tools")
    return tuple(value)


def _message(index: int, message: object) -> Mapping[str, Any]:
    where = f"messages[{index}]"
    if not isinstance(message, dict):
        raise InvalidRequest(f"{where} must be an object, not {read.kind(message)}", field="messages")
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidRequest(f"{where}.role must be one of {', '.join(ROLES)}", field="messages")
    calls = message.get("tool_calls")
    may_be_empty = role == "assistant" and bool(calls)
    plain: dict[str, Any] = {
        "role": "system" if role == "developer" else role,
        "content": _content(where, message.get("content"), may_be_empty),
    }
    for key in ("name", "tool_call_id"):
        if message.get(key) is not None:
            plain[key] = _string(f"{where}.{key}", message[key])
    if calls is not None and role == "assistant":
        if not isinstance(calls, list):
            raise InvalidRequest(f"{where}.tool_calls must be a list", field="messages")
        plain["tool_calls"] = [_tool_call(f"{where}.tool_calls[{i}]", call) for i, call in enumerate(calls)]
    return plain


def _content(where: str, content: object, may_be_empty: bool) -> str:
    if content is None and may_be_empty:
        return ""
    if isinstance(content, str):
        return _string(f"{where}.content", content)
    if not isinstance(content, list):
        raise InvalidRequest(f"{where}.content must be a string or a list of parts", field="messages")
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            raise InvalidRequest(f"{where}.content parts must be objects with a type", field="messages")
        if kind != "text":
            raise Unsupported(f"{where}.content has a {kind[:40]!r} part; this model reads only text", field="messages")
        texts.append(_string(f"{where}.content.text", part.get("text")))
    return "".join(texts)


def _tool_call(where: str, call: object) -> Mapping[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InvalidRequest(f"{where}.function.name must be a string", field="messages")
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        # Templates print arguments as JSON themselves; text that is no JSON is passed on as it is.
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            arguments = _string(f"{where}.function.arguments", arguments)
    return {"type": "function", "function": {"name": function["name"], "arguments": arguments}}


def _string(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{where} must be a string, not {read.kind(value)}", field="messages")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest(f"{where} is not valid Unicode (a lone surrogate)", field="messages") from None
    return value
