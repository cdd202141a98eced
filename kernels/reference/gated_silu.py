# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""silu(gate) · up, in plain PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def gated_silu(gate_up: torch.Tensor) -> torch.Tensor:
    """[T, 2 I], gate first → [T, I]."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate).mul_(up)
