# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding in interleaved form.

Checkpoints rotate dimension i with i + D/2. We permute the rows of the query and key weights once at load, so that the
two sit side by side: the rotation is then one complex multiplication, and scores are unchanged because queries and
keys are permuted alike.
"""

from __future__ import annotations

import math

import torch

from tritone.backends.models.decoder_config import RopeConfig


def inverse_frequencies(rope: RopeConfig, head_dim: int) -> torch.Tensor:
    """[D/2] float32 angular step per position."""
    frequencies = 1.0 / (rope.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float) / head_dim))
    if rope.type == "linear":
        return frequencies / rope.values["factor"]
    if rope.type == "llama3":
        return _llama3(frequencies, rope)
    return frequencies


def _llama3(frequencies: torch.Tensor, rope: RopeConfig) -> torch.Tensor:
    factor, low, high = (rope.values[key] for key in ("factor", "low_freq_factor", "high_freq_factor"))
    trained = rope.values["original_max_position_embeddings"]
    wavelength = 2 * math.pi / frequencies
    # Short waves stay, long waves are stretched, those between are blended.
    blend = (trained / wavelength - low) / (high - low)
    blended = (1 - blend) * frequencies / factor + blend * frequencies
    is_long = wavelength > trained / low
    is_short = wavelength < trained / high
    return torch.where(is_long, frequencies / factor, torch.where(is_short, frequencies, blended))


def rotation_table(rope: RopeConfig, head_dim: int, num_positions: int) -> torch.Tensor:
    """[P, D/2] complex64: cos + i·sin of every position and frequency."""
    angles = torch.arange(num_positions, dtype=torch.float)[:, None] * inverse_frequencies(rope, head_dim)
    return torch.complex(angles.cos(), angles.sin())


def interleaved_order(head_dim: int) -> torch.Tensor:
    """[D] int64: where each interleaved dimension comes from: 0, D/2, 1, D/2 + 1, …"""
    return torch.arange(head_dim).view(2, head_dim // 2).t().reshape(-1)
