# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Causal attention over a paged KV cache, one token at a time, in plain PyTorch."""

from __future__ import annotations

import torch


def paged_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_tables: torch.Tensor,
    token_rows: torch.Tensor,
    kv_limits: torch.Tensor,
    block_tokens: int,
) -> torch.Tensor:
    """Token `t` attends to the first `kv_limits[t]` tokens of row `token_rows[t]`; a limit of 0 gives zeros.

    `queries` [T, Hq, D]; `keys`, `values` [slots, Hkv, D]; `block_tables` [R, blocks] int32;
    `token_rows`, `kv_limits` [T] int32. Returns [T, Hq, D] in the dtype of `queries`.
    """
    num_tokens, num_heads, size = queries.shape
    groups = num_heads // keys.shape[1]
    out = torch.zeros_like(queries)
    for token in range(num_tokens):
        positions = torch.arange(int(kv_limits[token]), device=queries.device)
        if positions.numel() == 0:
            continue
        blocks = block_tables[token_rows[token].long(), positions // block_tokens].long()
        slots = blocks * block_tokens + positions % block_tokens
        key = keys[slots].float().repeat_interleave(groups, dim=1)  # [kv, Hq, D]
        value = values[slots].float().repeat_interleave(groups, dim=1)
        scores = torch.einsum("hd,khd->hk", queries[token].float(), key) * size**-0.5
        out[token] = torch.einsum("hk,khd->hd", scores.softmax(dim=-1), value).to(out.dtype)
    return out
