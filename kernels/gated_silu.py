# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""silu(gate) · up, in one launch (Triton language)."""

# Triton functions take untyped pointers.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _gated_silu(p_in, p_out, inner, stride_in, stride_out, BLOCK: tl.constexpr):
    i_token = tl.program_id(0).to(tl.int64)
    i_inner = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i_inner < inner
    gate = tl.load(p_in + i_token * stride_in + i_inner, mask=mask, other=0.0)
    up = tl.load(p_in + i_token * stride_in + inner + i_inner, mask=mask, other=0.0)
    wide = gate.to(tl.float32)
    # Rounded after the activation, as two PyTorch operations round.
    active = (wide / (1.0 + tl.exp(-wide))).to(gate.dtype)
    product = (active.to(tl.float32) * up.to(tl.float32)).to(gate.dtype)
    tl.store(p_out + i_token * stride_out + i_inner, product, mask=mask)


def gated_silu(gate_up: torch.Tensor) -> torch.Tensor:
    """[T, 2 I], gate first → [T, I]."""
    num_tokens, inner = gate_up.shape[0], gate_up.shape[1] // 2
    if gate_up.stride(-1) != 1:
        raise ValueError("gate_up needs unit stride in its last dimension")
    out = torch.empty(num_tokens, inner, dtype=gate_up.dtype, device=gate_up.device)
    block = 1024
    _gated_silu[(num_tokens, triton.cdiv(inner, block))](
        gate_up, out, inner, gate_up.stride(0), out.stride(0), BLOCK=block
    )
    return out
