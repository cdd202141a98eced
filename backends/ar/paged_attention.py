# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Attention over the paged cache on a GPU: two kernels per layer over device tensors that the runner fills."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tritone.backends.ar.kv_cache import KvCache
from tritone.backends.models.decoder_config import DecoderConfig
from tritone.backends.models.rope import rotation_table
from tritone.backends.models.weights import LayerWeights
from tritone.kernels.paged_attention import paged_attention
from tritone.kernels.rotate_and_store import rotate_and_store

SPLIT_TOKENS = 512


@dataclass(frozen=True)
class StepTensors:
    """Device tensors of one step, all int32: `[T]` per token, `[R, blocks]`, `[tiles]`."""

    positions: torch.Tensor
    slots: torch.Tensor  # -1 for a padded token
    rows: torch.Tensor
    kv_limits: torch.Tensor  # 0 for a padded token
    block_tables: torch.Tensor
    tile_starts: torch.Tensor
    tile_lengths: torch.Tensor
    tile_tokens: int


class PagedAttention:
    """Rotates, stores and attends. `prepare` once per step or graph, then `attend` once per layer."""

    def __init__(self, config: DecoderConfig, cache: KvCache, max_position: int) -> None:
        self._config = config
        self._cache = cache
        self._max_position = max_position
        table = rotation_table(config.rope, config.head_dim, max_position)
        self._table = torch.view_as_real(table).contiguous().to(cache.layers[0].device)
        self._step: StepTensors | None = None

    def prepare(self, step: StepTensors) -> None:
        """Use the tensors of `step` from now on. Their contents may change until a kernel reads them."""
        self._step = step

    def attend(self, index: int, layer: LayerWeights, qkv: torch.Tensor) -> torch.Tensor:
        """[T, (Hq + 2 Hkv) D] → [T, Hq D]."""
        config, step = self._config, self._step
        assert step is not None, "prepare comes before attend"
        heads = qkv.view(-1, config.num_heads + 2 * config.num_kv_heads, config.head_dim)
        keys, values = self._cache.layers[index].unbind()
        rotate_and_store(
            heads, self._table, step.positions, step.slots, keys, values, layer.q_norm, layer.k_norm,
            config.rms_norm_eps,
        )  # fmt: skip
        out = paged_attention(
            heads[:, : config.num_heads], keys, values, step.block_tables, step.rows, step.kv_limits,
            self._cache.block_tokens,
            tile_starts=step.tile_starts, tile_lengths=step.tile_lengths, tile_tokens=step.tile_tokens,
            max_kv=self._max_position, split_tokens=SPLIT_TOKENS,
        )  # fmt: skip
        return out.view(-1, config.q_size)
