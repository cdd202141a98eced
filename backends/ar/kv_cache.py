# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The memory behind the KV blocks. Which row holds which block is the block pool's business."""

from __future__ import annotations

import math
import os

import numpy as np
import torch

from tritone.backends.ar.settings import EngineSettings
from tritone.backends.models.decoder_config import DecoderConfig
from tritone.errors import InvalidRequest

CPU_MEMORY_SHARE = 0.25
# The weights are not loaded yet when this is asked.
CUDA_MEMORY_SHARE = 0.7


class KvCache:
    """Keys and values of every layer and slot. Slot = block · block_tokens + offset.

    A head-major layer is `[2 Hkv, slots, D]`, key heads first: the KV of neighbouring blocks is a strided view, which
    CPU attention reads in place. Otherwise it is `[2, slots, Hkv, D]`: one token's heads lie together, as the paged
    kernels load them.
    """

    def __init__(
        self,
        config: DecoderConfig,
        num_blocks: int,
        block_tokens: int,
        dtype: torch.dtype,
        device: torch.device,
        *,
        is_head_major: bool,
    ) -> None:
        self.num_blocks = num_blocks
        self.block_tokens = block_tokens
        slots, heads, size = num_blocks * block_tokens, config.num_kv_heads, config.head_dim
        shape = (2 * heads, slots, size) if is_head_major else (2, slots, heads, size)
        # Zeros, not empty: a padded row of a GPU bucket reads slot 0 and must not meet a NaN.
        self.layers = tuple(_zeros(shape, dtype, device) for _ in range(config.num_layers))


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # NumPy asks the system for zero pages, which cost nothing until they are written; torch.zeros writes them all:
    # 20 s and 5.8 GB for a pool of which a few rows are ever used.
    return torch.from_numpy(np.zeros(math.prod(shape) * dtype.itemsize, dtype=np.uint8)).view(dtype).view(shape)


def num_blocks(
    settings: EngineSettings, config: DecoderConfig, context_tokens: int, dtype: torch.dtype, device: torch.device
) -> int:
    """Size of the pool: as told, else enough for `max_rows` full contexts within a share of the free memory."""
    block_bytes = settings.block_tokens * config.kv_bytes_per_token(dtype.itemsize)
    if settings.num_blocks is not None:
        count = settings.num_blocks
    elif settings.kv_cache_bytes is not None:
        count = settings.kv_cache_bytes // block_bytes
    else:
        wanted = settings.max_rows * -(-context_tokens // settings.block_tokens)
        count = min(wanted, _free_bytes(device) // block_bytes)
    if count * settings.block_tokens < context_tokens:
        key = "kv_cache_bytes" if settings.num_blocks is None else "num_blocks"
        least = -(-context_tokens // settings.block_tokens)
        raise InvalidRequest(
            f"engine setting {key}: the KV pool of {count} blocks holds {count * settings.block_tokens} tokens, fewer "
            f"than context_tokens ({context_tokens}); allowed: at least {least} blocks ({least * block_bytes} bytes), "
            f"or a smaller context_tokens",
            field=key,
        )
    return count


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free * CUDA_MEMORY_SHARE)
    return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * CPU_MEMORY_SHARE)
