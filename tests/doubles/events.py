# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Reads server-sent events strictly: any byte that is not a `data:` line or an empty line fails."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class EventStream(NamedTuple):
    """A parsed stream."""

    events: list[dict[str, Any]]
    is_done: bool  # ended with `[DONE]`


def parse_events(text: str) -> EventStream:
    """Every event of a complete stream."""
    assert text.endswith("\n\n")
    blocks = text.removesuffix("\n\n").split("\n\n")
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks), blocks
    payloads = [block.removeprefix("data: ") for block in blocks]
    is_done = payloads[-1] == "[DONE]"
    assert "[DONE]" not in payloads[:-1]
    return EventStream([json.loads(payload) for payload in payloads if payload != "[DONE]"], is_done)
