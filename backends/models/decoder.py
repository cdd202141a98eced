# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The dense decoder of Llama and Qwen3: embeddings in, hidden states out, logits on request.

It knows neither batching nor caches: the tokens of a step lie flat in `[T, H]`, and an `Attention` object rotates,
stores and attends. The two families differ only in Qwen3's norm of queries and keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F

from tritone.backends.models.decoder_config import DecoderConfig
from tritone.backends.models.rms_norm import make_rms_norm
from tritone.backends.models.weights import DecoderWeights, LayerWeights
from tritone.kernels.reference.gated_silu import gated_silu


class Attention(Protocol):
    """Attention over one prepared step."""

    def attend(self, index: int, layer: LayerWeights, qkv: torch.Tensor) -> torch.Tensor:
        """`qkv` [T, (Hq + 2 Hkv) D] of layer `index` → [T, Hq D]. May overwrite `qkv`."""


class Decoder:
    """Runs the layers on flat tokens. Stateless: everything that lasts longer than a call belongs to others."""

    def __init__(
        self,
        config: DecoderConfig,
        weights: DecoderWeights,
        activation: Callable[[torch.Tensor], torch.Tensor] = gated_silu,
    ) -> None:
        """`activation` maps gate and up, [T, 2 I], to [T, I]: the plain form or a kernel."""
        self.config = config
        self.weights = weights
        self._activation = activation
        self._norm = make_rms_norm(config.hidden_size, config.rms_norm_eps, weights.final_norm.device)

    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """[T] int → [T, H]."""
        return F.embedding(token_ids, self.weights.embedding)

    def forward(self, hidden: torch.Tensor, attention: Attention) -> torch.Tensor:
        """[T, H] embeddings → [T, H] hidden states after the final norm. `hidden` is overwritten."""
        norm = self._norm
        for index, layer in enumerate(self.weights.layers):
            qkv = torch.mm(norm(hidden, layer.input_norm), layer.qkv)
            # addmm_ adds the residual inside the multiplication.
            hidden.addmm_(attention.attend(index, layer, qkv), layer.output)
            gate_up = torch.mm(norm(hidden, layer.post_norm), layer.gate_up)
            hidden.addmm_(self._activation(gate_up), layer.down)
        return norm(hidden, self.weights.final_norm)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[R, H] hidden states → [R, V] float32."""
        return torch.mm(hidden, self.weights.lm_head).float()
