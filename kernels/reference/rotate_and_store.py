# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Norm and rotation of queries and keys, and storing of keys and values, in plain PyTorch."""

from __future__ import annotations

import torch


def rotate_and_store(
    heads: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    slots: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    q_norm: torch.Tensor | None,
    k_norm: torch.Tensor | None,
    eps: float,
) -> None:
    """Rotate the queries in `heads` in place; write rotated keys and plain values to the cache.

    `heads` [T, Hq + 2 Hkv, D]; `table` [P, D/2, 2] float32 of cosine and sine; `positions`, `slots` [T], a negative
    slot is not stored; `keys`, `values` [slots, Hkv, D]; `q_norm`, `k_norm` [D] or both None.
    """
    num_kv = keys.shape[1]
    num_q = heads.shape[1] - 2 * num_kv
    rotated = heads[:, : num_q + num_kv].float()
    if q_norm is not None and k_norm is not None:
        scale = (rotated.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
        weight = torch.cat([q_norm.expand(num_q, -1), k_norm.expand(num_kv, -1)]).float()
        rotated = (rotated * scale).to(heads.dtype).float() * weight
        rotated = rotated.to(heads.dtype).float()
    cosine, sine = table[positions.long()][:, None].unbind(dim=-1)
    even, odd = rotated[..., 0::2], rotated[..., 1::2]
    turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)
    heads[:, :num_q] = turned[:, :num_q].to(heads.dtype)
    stored = slots >= 0
    keys[slots[stored].long()] = turned[stored, num_q:].to(keys.dtype)
    values[slots[stored].long()] = heads[stored, num_q + num_kv :].to(values.dtype)
