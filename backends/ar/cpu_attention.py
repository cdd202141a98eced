# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Attention over the paged cache with plain PyTorch on a CPU.

Rows are placed in neighbouring blocks, so a row's KV is normally one strided view and nothing is copied; a row whose
blocks are scattered (a shared prefix, a full pool) is gathered first. The heads that share a KV head are taken as
query positions of one head, so KV is never repeated for a decode row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from tritone.backends.ar.kv_cache import KvCache
from tritone.backends.ar.step_batch import SpanView, StepBatch
from tritone.backends.models.decoder_config import DecoderConfig
from tritone.backends.models.rope import rotation_table
from tritone.backends.models.weights import LayerWeights


@dataclass(frozen=True)
class _Span:
    """One row of the prepared step: queries `[first, last)`, KV slots as a run or as a list."""

    first: int
    last: int
    start: int  # first slot of the run
    stop: int
    slots: torch.Tensor | None  # [kv] int64, where the blocks are scattered
    mask: torch.Tensor | None  # [queries, kv], for a prompt chunk behind other KV


class CpuAttention:
    """Rotates, stores and attends. `prepare` once per step, then `attend` once per layer."""

    def __init__(self, config: DecoderConfig, cache: KvCache, max_position: int) -> None:
        self._config = config
        self._cache = cache
        self._groups = config.num_heads // config.num_kv_heads
        self._table = rotation_table(config.rope, config.head_dim, max_position)
        self._rotation = self._table[:0]
        self._slots = torch.empty(0, dtype=torch.int64)
        self._spans: list[_Span] = []

    def prepare(self, batch: StepBatch) -> None:
        """Take in the next step."""
        self._rotation = self._table[torch.tensor(batch.positions)].unsqueeze(1)
        self._slots = torch.tensor(batch.slots)
        self._spans = [self._span(view) for view in batch.spans]

    def attend(self, index: int, layer: LayerWeights, qkv: torch.Tensor) -> torch.Tensor:
        """[T, (Hq + 2 Hkv) D] → [T, Hq D]."""
        config = self._config
        num_q, num_kv, size = config.num_heads, config.num_kv_heads, config.head_dim
        heads = qkv.view(-1, num_q + 2 * num_kv, size)
        if layer.q_norm is not None and layer.k_norm is not None:
            heads[:, :num_q] = F.rms_norm(heads[:, :num_q], (size,), layer.q_norm, config.rms_norm_eps)
            keys = heads[:, num_q : num_q + num_kv]
            heads[:, num_q : num_q + num_kv] = F.rms_norm(keys, (size,), layer.k_norm, config.rms_norm_eps)
        pairs = torch.view_as_complex(heads.view(-1, num_q + 2 * num_kv, size // 2, 2)[:, : num_q + num_kv])
        pairs.mul_(self._rotation)
        cache = self._cache.layers[index]
        cache.index_copy_(1, self._slots, heads[:, num_q:].transpose(0, 1))
        # The heads that share a KV head, as query positions of one head.
        grouped = heads[:, :num_q].view(-1, num_kv, self._groups, size)
        outputs = [self._attend_row(span, heads, grouped, cache) for span in self._spans]
        return (outputs[0] if len(outputs) == 1 else torch.cat(outputs)).view(-1, num_q * size)

    def _attend_row(self, span: _Span, heads: torch.Tensor, grouped: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        """Output of one row's tokens, `[t, ...]` in the order of heads."""
        keys, values = self._keys_and_values(span, cache)
        if span.last - span.first == 1:
            return F.scaled_dot_product_attention(grouped[span.first : span.last], keys, values)
        if self._groups > 1:
            # PyTorch's grouped form falls back to an unfused kernel here (8 ms against 2 ms for 256 x 512).
            keys, values = (t.repeat_interleave(self._groups, dim=1) for t in (keys, values))
        queries = heads[span.first : span.last, : self._config.num_heads].transpose(0, 1)[None]
        attended = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=span.mask, is_causal=span.mask is None
        )
        return attended[0].transpose(0, 1).reshape(-1, *grouped.shape[1:])

    def _keys_and_values(self, span: _Span, cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Two [1, Hkv, kv, D] of one row."""
        num_kv, size = self._config.num_kv_heads, self._config.head_dim
        if span.slots is not None:
            kv = cache.index_select(1, span.slots)
            return kv[None, :num_kv], kv[None, num_kv:]
        # Two views in one operation each: slicing takes three, and at eight rows half of the time of attention.
        shape, strides = (1, num_kv, span.stop - span.start, size), (0, cache.stride(0), size, 1)
        first = span.start * size
        keys = cache.as_strided(shape, strides, first)
        return keys, cache.as_strided(shape, strides, first + num_kv * cache.stride(0))

    def _span(self, view: SpanView) -> _Span:
        block_tokens = self._cache.block_tokens
        kv_tokens = view.first_position + view.num_tokens
        blocks = view.blocks[: -(-kv_tokens // block_tokens)]
        start = blocks[0] * block_tokens
        slots = None
        if blocks != list(range(blocks[0], blocks[0] + len(blocks))):
            offsets = torch.arange(block_tokens)
            slots = (torch.tensor(blocks)[:, None] * block_tokens + offsets).view(-1)[:kv_tokens]
        mask = None
        if view.num_tokens > 1 and view.first_position > 0:
            mask = torch.full((view.num_tokens, kv_tokens), float("-inf"), dtype=self._cache.layers[0].dtype)
            mask.triu_(view.first_position + 1)
        last = view.first_token + view.num_tokens
        return _Span(view.first_token, last, start, start + kv_tokens, slots, mask)
