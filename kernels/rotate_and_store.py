# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Norm and rotation of queries and keys, and storing of keys and values, in one launch (Triton language)."""

# Triton functions take untyped pointers.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _rotate_and_store(
    p_heads, p_table, p_positions, p_slots, p_keys, p_values, p_q_norm, p_k_norm,
    stride_token, stride_head, stride_slot, stride_kv_head, eps,
    NUM_Q: tl.constexpr, NUM_KV: tl.constexpr, HALF: tl.constexpr, HALF_PAD: tl.constexpr, HAS_NORM: tl.constexpr,
):  # fmt: skip
    i_token = tl.program_id(0).to(tl.int64)
    i_head = tl.program_id(1)
    i_half = tl.arange(0, HALF_PAD)
    mask = i_half < HALF
    slot = tl.load(p_slots + i_token).to(tl.int64)
    # Bounds rather than `mask & condition`: the interpreter of triton 3.9 takes no mask made from a scalar condition.
    stored = i_half < tl.where(slot >= 0, HALF, 0)
    p_in = p_heads + i_token * stride_token + i_head * stride_head
    even = tl.load(p_in + 2 * i_half, mask=mask, other=0.0)
    odd = tl.load(p_in + 2 * i_half + 1, mask=mask, other=0.0)
    dtype = even.dtype
    if i_head >= NUM_Q + NUM_KV:
        p_value = p_values + slot * stride_slot + (i_head - NUM_Q - NUM_KV) * stride_kv_head
        tl.store(p_value + 2 * i_half, even, mask=stored)
        tl.store(p_value + 2 * i_half + 1, odd, mask=stored)
    else:
        # New names: a variable must not change its type inside a run-time branch.
        b_even = even.to(tl.float32)
        b_odd = odd.to(tl.float32)
        if HAS_NORM:
            is_query = i_half < tl.where(i_head < NUM_Q, HALF, 0)
            is_key = i_half < tl.where(i_head < NUM_Q, 0, HALF)
            even_weight = tl.load(p_q_norm + 2 * i_half, mask=is_query, other=0.0).to(tl.float32)
            even_weight += tl.load(p_k_norm + 2 * i_half, mask=is_key, other=0.0).to(tl.float32)
            odd_weight = tl.load(p_q_norm + 2 * i_half + 1, mask=is_query, other=0.0).to(tl.float32)
            odd_weight += tl.load(p_k_norm + 2 * i_half + 1, mask=is_key, other=0.0).to(tl.float32)
            scale = tl.rsqrt((tl.sum(b_even * b_even, axis=0) + tl.sum(b_odd * b_odd, axis=0)) / (2 * HALF) + eps)
            # Rounded where the plain form rounds, so that both give the same numbers.
            b_even = ((b_even * scale).to(dtype).to(tl.float32) * even_weight).to(dtype).to(tl.float32)
            b_odd = ((b_odd * scale).to(dtype).to(tl.float32) * odd_weight).to(dtype).to(tl.float32)
        p_angle = p_table + tl.load(p_positions + i_token).to(tl.int64) * (2 * HALF) + 2 * i_half
        cosine = tl.load(p_angle, mask=mask, other=0.0)
        sine = tl.load(p_angle + 1, mask=mask, other=0.0)
        turned_even = (b_even * cosine - b_odd * sine).to(dtype)
        turned_odd = (b_even * sine + b_odd * cosine).to(dtype)
        if i_head < NUM_Q:
            tl.store(p_in + 2 * i_half, turned_even, mask=mask)
            tl.store(p_in + 2 * i_half + 1, turned_odd, mask=mask)
        else:
            p_key = p_keys + slot * stride_slot + (i_head - NUM_Q) * stride_kv_head
            tl.store(p_key + 2 * i_half, turned_even, mask=stored)
            tl.store(p_key + 2 * i_half + 1, turned_odd, mask=stored)


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
    num_kv, size = keys.shape[1], keys.shape[2]
    num_q = heads.shape[1] - 2 * num_kv
    if keys.stride() != values.stride() or keys.stride(-1) != 1 or heads.stride(-1) != 1:
        raise ValueError("heads, keys and values need unit stride in D; keys and values the same strides")
    if not table.is_contiguous() or table.dtype is not torch.float32:
        raise ValueError("table must be contiguous float32")
    has_norm = q_norm is not None and k_norm is not None
    _rotate_and_store[(heads.shape[0], heads.shape[1])](
        heads, table, positions, slots, keys, values,
        q_norm if q_norm is not None else heads, k_norm if k_norm is not None else heads,
        heads.stride(0), heads.stride(1), keys.stride(0), keys.stride(1), eps,
        NUM_Q=num_q, NUM_KV=num_kv, HALF=size // 2, HALF_PAD=triton.next_power_of_2(size // 2), HAS_NORM=has_norm,
        num_warps=1,
    )  # fmt: skip
