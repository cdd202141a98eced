# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A planned step as flat lists of numbers, the form both attention implementations are prepared from."""

from __future__ import annotations

from dataclasses import dataclass

from tritone.backends.ar.scheduler import StepPlan


@dataclass(frozen=True)
class SpanView:
    """Where one row's tokens lie in the flat step, and which KV they see."""

    first_token: int  # index into the flat step
    num_tokens: int
    first_position: int  # position of its first token in the row; num_tokens later ends the visible KV
    blocks: list[int]


@dataclass(frozen=True)
class StepBatch:
    """`T` tokens of `R` rows. All lists but `spans` and `sampled` have one entry per token."""

    token_ids: list[int]
    positions: list[int]
    slots: list[int]  # where each token's KV goes
    spans: list[SpanView]
    sampled: list[int]  # flat indices whose logits are wanted


def step_batch(plan: StepPlan, block_tokens: int) -> StepBatch:
    """Flatten a plan."""
    token_ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    spans: list[SpanView] = []
    sampled: list[int] = []
    for span in plan.spans:
        row, start = span.row, span.row.num_computed
        spans.append(SpanView(len(token_ids), span.num_tokens, start, row.blocks))
        if span.num_tokens == 1:
            token_ids.append(row.token_ids[start])
            positions.append(start)
            slots.append(row.blocks[start // block_tokens] * block_tokens + start % block_tokens)
        else:
            stop = start + span.num_tokens
            token_ids += row.token_ids[start:stop]
            positions += range(start, stop)
            slots += [row.blocks[p // block_tokens] * block_tokens + p % block_tokens for p in range(start, stop)]
        if span.is_sampled:
            sampled.append(len(token_ids) - 1)
    return StepBatch(token_ids, positions, slots, spans, sampled)
