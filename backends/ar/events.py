# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the engine tells its owner: chunks, ends, failures and statistics. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from tritone.backends.core.protocol import FinishReason
from tritone.errors import TritoneError


@dataclass(frozen=True)
class TopLogprob:
    """One candidate token and its log-probability under the model, before any penalty or temperature."""

    token: str
    id: int
    logprob: float
    bytes: tuple[int, ...]


@dataclass(frozen=True)
class TokenLogprobs:
    """Log-probability of one emitted token, with the most likely candidates."""

    token: str
    id: int
    logprob: float
    bytes: tuple[int, ...]
    top: tuple[TopLogprob, ...]


@dataclass(frozen=True)
class TokenChunk:
    """New text and tokens of one choice. `text` holds whole characters; it may lag behind `token_ids`."""

    request_id: int
    choice_index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason | None
    logprobs: tuple[TokenLogprobs, ...] | None


@dataclass(frozen=True)
class RequestDone:
    """Every choice of the request has ended."""

    request_id: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    queue_s: float
    first_token_s: float
    total_s: float


@dataclass(frozen=True)
class RequestFailed:
    """The request ended without completing; nothing follows."""

    request_id: int
    error: TritoneError


Event = TokenChunk | RequestDone | RequestFailed


@dataclass(frozen=True)
class EngineStatistics:
    """A snapshot. Counters grow from 0 since the engine was made; `heartbeat_s` is `time.monotonic()` of the loop."""

    running_rows: int
    waiting_requests: int
    kv_blocks_used: int
    kv_blocks_total: int
    prompt_tokens: int
    generated_tokens: int
    cached_tokens: int
    prefix_queries: int
    prefix_hits: int
    steps: int
    recomputes: int
    requests_done: int
    requests_failed: int
    requests_cancelled: int
    heartbeat_s: float
