# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Runs one planned step of the network: plan in, logits of the sampled rows out. Knows nothing of requests."""

from __future__ import annotations

import logging
from typing import Protocol

import torch

from tritone.backends.ar.cpu_attention import CpuAttention
from tritone.backends.ar.kv_cache import KvCache
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.ar.step_batch import StepBatch
from tritone.backends.models.checkpoint import Checkpoint
from tritone.backends.models.decoder import Decoder

logger = logging.getLogger(__name__)


class Runner(Protocol):
    """One device's way to run a step."""

    def run(self, batch: StepBatch) -> torch.Tensor:
        """[R, V] float32 logits of `batch.sampled`, in order. The caller may overwrite them."""


class CpuRunner:
    """Plain PyTorch, every step alike."""

    def __init__(self, decoder: Decoder, cache: KvCache, max_position: int) -> None:
        self._decoder = decoder
        self._attention = CpuAttention(decoder.config, cache, max_position)

    def run(self, batch: StepBatch) -> torch.Tensor:
        """[R, V] float32 logits of `batch.sampled`."""
        self._attention.prepare(batch)
        hidden = self._decoder.embed(torch.tensor(batch.token_ids))
        hidden = self._decoder.forward(hidden, self._attention)
        if len(batch.sampled) != len(batch.token_ids):
            hidden = hidden[batch.sampled]
        return self._decoder.logits(hidden)


def make_runner(
    checkpoint: Checkpoint,
    settings: EngineSettings,
    num_blocks: int,
    max_position: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Runner:
    """Load the weights, lay out the cache and choose, once, how steps are run on `device`."""
    config = checkpoint.decoder_config
    is_cpu = device.type == "cpu"
    weights = checkpoint.load_weights(dtype, device)
    cache = KvCache(config, num_blocks, settings.block_tokens, dtype, device, is_head_major=is_cpu)
    if is_cpu:
        logger.info("attention: PyTorch on the CPU")
        return CpuRunner(Decoder(config, weights), cache, max_position)
    # Imports triton, which a CPU install may lack.
    from tritone.backends.ar.paged_runner import PagedRunner
    from tritone.kernels.gated_silu import gated_silu

    return PagedRunner(Decoder(config, weights, gated_silu), cache, max_position, settings)
