# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Causal attention over a paged KV cache, for decode rows and prompt chunks, in the Triton language.

A program takes one tile (neighbouring tokens of one row), one KV head with all query heads that share it, and one
split of the KV. Splits have a fixed length, so which numbers are added in which order depends on a token's position
alone: not on the batch, nor on how a prompt was cut into chunks of the same tile length.
"""

# Triton functions take untyped pointers.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _attend(
    p_q, p_k, p_v, p_tables, p_rows, p_limits, p_starts, p_lengths, p_out, p_partial, p_lse,
    stride_q_token, stride_q_head, stride_kv_slot, stride_kv_head, stride_table, stride_out_token, stride_out_head,
    scale_log2, num_heads, num_splits,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, SIZE_PAD: tl.constexpr, BLOCK_TOKENS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPLIT: tl.constexpr, IS_SPLIT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    i_tile = tl.program_id(0)
    i_head = tl.program_id(1)
    i_split = tl.program_id(2)
    first = tl.load(p_starts + i_tile)
    length = tl.load(p_lengths + i_tile)
    i_m = tl.arange(0, BLOCK_M)
    i_d = tl.arange(0, SIZE_PAD)
    token = first + i_m // GROUPS
    head = i_head * GROUPS + i_m % GROUPS
    is_query = i_m < length * GROUPS
    is_dim = i_d < SIZE
    limit = tl.load(p_limits + token, mask=is_query, other=0)
    longest = tl.max(limit, axis=0)
    begin = i_split * SPLIT
    end = tl.minimum(longest, begin + SPLIT) if IS_SPLIT else longest
    row = tl.load(p_rows + first).to(tl.int64)
    at_query = token.to(tl.int64)[:, None] * stride_q_token + head[:, None] * stride_q_head + i_d[None, :]
    b_q = tl.load(p_q + at_query, mask=is_query[:, None] & is_dim[None, :], other=0.0)

    b_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    b_sum = tl.zeros([BLOCK_M], tl.float32)
    b_acc = tl.zeros([BLOCK_M, SIZE_PAD], tl.float32)
    for start in range(begin, end, BLOCK_N):
        position = start + tl.arange(0, BLOCK_N)
        is_kv = position < end
        block = tl.load(p_tables + row * stride_table + position // BLOCK_TOKENS, mask=is_kv, other=0).to(tl.int64)
        slot = block * BLOCK_TOKENS + position % BLOCK_TOKENS
        at_kv = slot[:, None] * stride_kv_slot + i_head * stride_kv_head + i_d[None, :]
        b_k = tl.load(p_k + at_kv, mask=is_kv[:, None] & is_dim[None, :], other=0.0)
        b_v = tl.load(p_v + at_kv, mask=is_kv[:, None] & is_dim[None, :], other=0.0)
        scores = tl.dot(b_q, tl.trans(b_k), input_precision=PRECISION) * scale_log2
        scores = tl.where(position[None, :] < limit[:, None], scores, float("-inf"))
        new_max = tl.maximum(b_max, tl.max(scores, axis=1))
        # A row that has seen nothing keeps -inf; subtracting it from itself would be NaN.
        base = tl.where(new_max == float("-inf"), 0.0, new_max)
        shrink = tl.exp2(b_max - base)
        weights = tl.exp2(scores - base[:, None])
        b_sum = b_sum * shrink + tl.sum(weights, axis=1)
        b_acc = b_acc * shrink[:, None] + tl.dot(weights.to(b_v.dtype), b_v, input_precision=PRECISION)
        b_max = new_max

    b_acc = b_acc / tl.where(b_sum > 0.0, b_sum, 1.0)[:, None]
    if IS_SPLIT:
        at = (token.to(tl.int64) * num_heads + head) * num_splits + i_split
        lse = tl.where(b_sum > 0.0, b_max + tl.log2(tl.where(b_sum > 0.0, b_sum, 1.0)), float("-inf"))
        tl.store(p_lse + at, lse, mask=is_query)
        tl.store(p_partial + at[:, None] * SIZE + i_d[None, :], b_acc, mask=is_query[:, None] & is_dim[None, :])
    else:
        at_out = token.to(tl.int64)[:, None] * stride_out_token + head[:, None] * stride_out_head + i_d[None, :]
        tl.store(p_out + at_out, b_acc.to(p_out.dtype.element_ty), mask=is_query[:, None] & is_dim[None, :])


@triton.jit
def _merge(
    p_partial, p_lse, p_starts, p_limits, p_out,
    stride_out_token, stride_out_head, num_heads, num_splits,
    SIZE: tl.constexpr, SIZE_PAD: tl.constexpr, SPLITS_PAD: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    token = tl.load(p_starts + tl.program_id(0)).to(tl.int64)
    i_head = tl.program_id(1)
    i_s = tl.arange(0, SPLITS_PAD)
    i_d = tl.arange(0, SIZE_PAD)
    is_used = i_s * SPLIT < tl.load(p_limits + token)
    at = (token * num_heads + i_head) * num_splits + i_s
    lse = tl.load(p_lse + at, mask=is_used, other=float("-inf"))
    highest = tl.max(lse, axis=0)
    weights = tl.where(is_used, tl.exp2(lse - tl.where(highest == float("-inf"), 0.0, highest)), 0.0)
    mask = is_used[:, None] & (i_d[None, :] < SIZE)
    parts = tl.load(p_partial + at[:, None] * SIZE + i_d[None, :], mask=mask, other=0.0)
    total = tl.sum(weights, axis=0)
    merged = tl.sum(parts * weights[:, None], axis=0) / tl.where(total > 0.0, total, 1.0)
    at_out = token * stride_out_token + i_head * stride_out_head + i_d
    tl.store(p_out + at_out, merged.to(p_out.dtype.element_ty), mask=i_d < SIZE)


def paged_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_tables: torch.Tensor,
    token_rows: torch.Tensor,
    kv_limits: torch.Tensor,
    block_tokens: int,
    *,
    tile_starts: torch.Tensor,
    tile_lengths: torch.Tensor,
    tile_tokens: int,
    max_kv: int,
    split_tokens: int = 512,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Token `t` attends to the first `kv_limits[t]` tokens of row `token_rows[t]`; a limit of 0 gives zeros.

    `queries` [T, Hq, D]; `keys`, `values` [slots, Hkv, D]; `block_tables` [R, blocks] int32;
    `token_rows`, `kv_limits` [T] int32. Tile `i` is the `tile_lengths[i]` ≤ `tile_tokens` tokens from
    `tile_starts[i]` (int32), all of one row. `max_kv` bounds every limit; where tiles are single tokens, longer KV is
    split. Tokens outside all tiles are not written. Returns `out` [T, Hq, D].
    """
    num_tokens, num_heads, size = queries.shape
    num_kv_heads = keys.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_heads} query heads do not share {num_kv_heads} KV heads evenly")
    if queries.stride(-1) != 1 or keys.stride(-1) != 1 or keys.stride() != values.stride():
        raise ValueError("queries, keys and values need unit stride in D; keys and values the same strides")
    if split_tokens % 64:
        raise ValueError(f"split_tokens is {split_tokens}, not a multiple of 64")
    out = torch.empty_like(queries, memory_format=torch.contiguous_format) if out is None else out
    groups = num_heads // num_kv_heads
    num_splits = triton.cdiv(max_kv, split_tokens) if tile_tokens == 1 else 1
    is_split = num_splits > 1
    partial = lse = out
    if is_split:
        partial = torch.empty(num_tokens, num_heads, num_splits, size, dtype=torch.float32, device=queries.device)
        lse = torch.empty(num_tokens, num_heads, num_splits, dtype=torch.float32, device=queries.device)
    size_pad = max(16, triton.next_power_of_2(size))
    block_m = max(16, triton.next_power_of_2(tile_tokens * groups))
    num_tiles = tile_starts.numel()
    _attend[(num_tiles, num_kv_heads, num_splits)](
        queries, keys, values, block_tables, token_rows, kv_limits, tile_starts, tile_lengths, out, partial, lse,
        queries.stride(0), queries.stride(1), keys.stride(0), keys.stride(1), block_tables.stride(0),
        out.stride(0), out.stride(1),
        size**-0.5 * 1.4426950408889634, num_heads, num_splits,
        GROUPS=groups, SIZE=size, SIZE_PAD=size_pad, BLOCK_TOKENS=block_tokens,
        BLOCK_M=block_m, BLOCK_N=32 if size_pad > 128 or queries.dtype is torch.float32 else 64,
        SPLIT=split_tokens, IS_SPLIT=is_split,
        PRECISION="ieee" if queries.dtype is torch.float32 else "tf32",
        num_warps=4,
    )  # fmt: skip
    if is_split:
        _merge[(num_tiles, num_heads)](
            partial, lse, tile_starts, kv_limits, out,
            out.stride(0), out.stride(1), num_heads, num_splits,
            SIZE=size, SIZE_PAD=size_pad, SPLITS_PAD=triton.next_power_of_2(num_splits), SPLIT=split_tokens,
        )  # fmt: skip
    return out
