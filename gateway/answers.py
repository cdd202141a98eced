# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What turns chunks into the bytes of a response: the two forms every API family implements, and what they share.

Knows nothing of HTTP. The constant part of an event is written once per choice; a token costs one JSON string.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, NamedTuple, Protocol

import orjson

from tritone.gateway.transport import Chunk

DONE_EVENT = b"data: [DONE]\n\n"


class Identity(NamedTuple):
    """What is the same in every chunk of one response."""

    id: str
    created: int  # Unix seconds
    model: str
    fingerprint: str

    @classmethod
    def mint(cls, prefix: str, model: str, fingerprint: str) -> Identity:
        """A fresh identity, now."""
        return cls(f"{prefix}-{uuid.uuid4().hex}", int(time.time()), model, fingerprint)

    def head(self, object_name: str) -> dict[str, Any]:
        """The leading fields of a response body."""
        return {
            "id": self.id,
            "object": object_name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


class EventAnswer(Protocol):
    """A streamed response. Each method gives whole server-sent events, perhaps none."""

    def opening(self) -> bytes: ...

    def add(self, position: int, chunk: Chunk) -> bytes: ...

    def closing(self, usage: Usage) -> bytes: ...


class BodyAnswer(Protocol):
    """A response in one body."""

    def add(self, position: int, chunk: Chunk) -> None: ...

    def body(self, usage: Usage) -> bytes: ...


class Usage:
    """Sums the usage of a request's calls."""

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cached_tokens = 0

    def add(self, details: bytes) -> None:
        """Count the `details` of a DONE chunk."""
        usage = orjson.loads(details).get("usage", {}) if details else {}
        self.prompt_tokens += usage.get("prompt_tokens", 0)
        self.completion_tokens += usage.get("completion_tokens", 0)
        self.cached_tokens += usage.get("cached_tokens", 0)

    def json(self) -> dict[str, Any]:
        """OpenAI's `usage`."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }


def token_logprobs(chunk: Chunk) -> list[dict[str, Any]]:
    """The per-token log probabilities in a TEXT chunk's `details`, as the stage wrote them."""
    logprobs: list[dict[str, Any]] = orjson.loads(chunk.details).get("logprobs") or [] if chunk.details else []
    return logprobs


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(body) + b"\n\n"


def error_event(body: dict[str, Any]) -> bytes:
    """The event that ends a stream which failed. There is no `[DONE]` after it."""
    return event(body)
