# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The state of one row (one choice of one request) and of the request around it. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field

from tritone.backends.ar.block_pool import block_key
from tritone.backends.ar.detokenizer import Detokenizer
from tritone.backends.ar.guidance import Guide
from tritone.backends.ar.request import GenerationRequest, SamplingParams
from tritone.backends.core.protocol import FinishReason


@dataclass(eq=False)
class Row:
    """One choice. `token_ids` is prompt and output; KV exists for the first `num_computed` of them."""

    request_id: int
    choice_index: int
    seed: int
    sampling: SamplingParams
    stop_ids: frozenset[int]  # ids that end the row, end-of-text included unless ignored
    token_ids: list[int]
    num_prompt: int
    max_total: int  # prompt + max_tokens, within the context
    salt: bytes  # first parent key of the prefix cache
    detokenizer: Detokenizer
    guide: Guide | None
    # Filled by the scheduler.
    num_computed: int = 0
    is_running: bool = False
    blocks: list[int] = field(default_factory=list)
    wish: range | None = None  # blocks the row would like to grow into
    keys: list[bytes] = field(default_factory=list)  # of the full blocks of token_ids, as far as needed
    num_remembered: int = 0  # leading blocks whose keys the pool knows
    num_cached: int = 0  # prompt tokens found in the prefix cache at first admission
    was_admitted: bool = False
    # Filled by the sampler and engine.
    finish_reason: FinishReason | None = None

    @property
    def num_tokens(self) -> int:
        """Known tokens, prompt and output."""
        return len(self.token_ids)

    @property
    def num_output(self) -> int:
        """Output tokens so far."""
        return len(self.token_ids) - self.num_prompt

    def full_block_keys(self, block_tokens: int, num_tokens: int) -> list[bytes]:
        """Keys of the full blocks within the first `num_tokens` tokens."""
        count = num_tokens // block_tokens
        while len(self.keys) < count:
            start = len(self.keys) * block_tokens
            parent = self.keys[-1] if self.keys else self.salt
            self.keys.append(block_key(parent, self.token_ids[start : start + block_tokens]))
        return self.keys[:count]


@dataclass(eq=False)
class Request:
    """A submitted request, its rows and its times (`time.monotonic()`)."""

    request_id: int
    generation: GenerationRequest
    rows: list[Row]
    submitted_s: float
    admitted_s: float | None = None
    first_token_s: float | None = None
    open_rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.open_rows = len(self.rows)
