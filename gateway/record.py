# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What is known of one HTTP request while it runs: the source of its log line and its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from starlette.types import Scope

_SCOPE_KEY = "tritone.record"


class Outcome(StrEnum):
    """How a request ended. Every request counts under exactly one."""

    OK = "ok"
    FAILED = "failed"  # our fault: a status of 500 or above, or an error inside a stream
    CANCELLED = "cancelled"  # the client went away, or read too slowly
    REJECTED = "rejected"  # refused: a 4xx, or 503 because the server is full


@dataclass
class RequestRecord:
    """Filled by the layer that learns each fact; read once, at the end, by the access layer."""

    request_id: str
    traceparent: str | None = None
    key: int | None = None  # number of the API key, set by the authentication layer
    route: str = "unmatched"  # set by the route
    model: str = ""  # set once the request names a model that exists, so label values stay bounded
    outcome: Outcome | None = None  # set where the status does not tell, as inside a stream
    rejected_for: str = ""  # code of the error that the client got
    prompt_tokens: int = 0
    completion_tokens: int = 0
    num_chunks: int = 0
    first_token_s: float | None = None  # since the request began
    started_s: float = field(default=0.0)  # clock of the event loop

    @property
    def log_id(self) -> str:
        """The name under which stages log this request."""
        return f"{self.request_id} {self.traceparent}" if self.traceparent else self.request_id


def record_of(scope: Scope) -> RequestRecord:
    """The record of the request that `scope` belongs to."""
    record: RequestRecord = scope[_SCOPE_KEY]
    return record


def attach(scope: Scope, record: RequestRecord) -> None:
    """Put a record where the inner layers find it."""
    scope[_SCOPE_KEY] = record
