# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Odd shapes of the decoder kernels against their references. Run as a script with a device: `… cpu` or `… cuda`."""

from __future__ import annotations

import sys

import torch

from tritone.kernels import gated_silu as gated_silu_kernel
from tritone.kernels import paged_attention as attention_kernel
from tritone.kernels import rotate_and_store as rotate_kernel
from tritone.kernels.reference import gated_silu as gated_silu_reference
from tritone.kernels.reference import paged_attention as attention_reference
from tritone.kernels.reference import rotate_and_store as rotate_reference

TOLERANCE = {torch.float32: 2e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def check_attention(
    device: str, dtype: torch.dtype, heads: int, kv_heads: int, size: int, block_tokens: int,
    spans: list[tuple[int, int]], tile_tokens: int, split_tokens: int,
) -> None:  # fmt: skip
    """`spans` is (first position, number of tokens) per row; a negative position is a padded token with limit 0."""
    generator = torch.Generator().manual_seed(heads * 1000 + size)
    longest = max(max(0, first + count) for first, count in spans)
    num_blocks = -(-longest // block_tokens)
    order = torch.randperm(num_blocks * len(spans), generator=generator)
    tables = order.view(len(spans), num_blocks).to(torch.int32).to(device)
    slots = num_blocks * len(spans) * block_tokens
    # Keys and values lie interleaved, as in the cache, and beyond every limit there are NaNs.
    cache = torch.full((2, slots, kv_heads, size), float("nan"))
    rows: list[int] = []
    limits: list[int] = []
    starts: list[int] = []
    lengths: list[int] = []
    for row, (first, count) in enumerate(spans):
        for position in range(max(0, first + count)):
            slot = int(tables[row, position // block_tokens]) * block_tokens + position % block_tokens
            cache[:, slot] = torch.randn(2, kv_heads, size, generator=generator)
        for begin in range(0, count, tile_tokens):
            starts.append(len(limits) + begin)
            lengths.append(min(tile_tokens, count - begin))
        rows += [row] * count
        limits += [max(0, first + i + 1) if first >= 0 else 0 for i in range(count)]
    num_tokens = len(limits)
    cache = cache.to(dtype).to(device)
    fused = torch.randn(num_tokens, heads + 2 * kv_heads, size, generator=generator).to(dtype).to(device)
    queries = fused[:, :heads]
    numbers = [torch.tensor(values, dtype=torch.int32, device=device) for values in (rows, limits, starts, lengths)]
    out = torch.full((num_tokens, heads, size), float("nan"), dtype=dtype, device=device)
    attention_kernel.paged_attention(
        queries, cache[0], cache[1], tables, numbers[0], numbers[1], block_tokens,
        tile_starts=numbers[2], tile_lengths=numbers[3], tile_tokens=tile_tokens, max_kv=max(1, longest),
        split_tokens=split_tokens, out=out,
    )  # fmt: skip
    expected = attention_reference.paged_attention(
        queries, cache[0], cache[1], tables, numbers[0], numbers[1], block_tokens
    )
    torch.testing.assert_close(out, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def check_rotation(device: str, dtype: torch.dtype, heads: int, kv_heads: int, size: int, has_norm: bool) -> None:
    generator = torch.Generator().manual_seed(size)
    num_tokens = 5
    angles = torch.rand(11, size // 2, generator=generator) * 6
    table = torch.stack([angles.cos(), angles.sin()], dim=-1).contiguous().to(device)
    positions = torch.tensor([0, 10, 3, 3, 7], dtype=torch.int32, device=device)
    slots = torch.tensor([4, 0, -1, 9, 2], dtype=torch.int32, device=device)
    fused = torch.randn(num_tokens, heads + 2 * kv_heads, size, generator=generator).to(dtype).to(device)
    norms = [torch.rand(size, generator=generator).to(dtype).to(device) if has_norm else None for _ in range(2)]
    results = []
    for function in (rotate_kernel.rotate_and_store, rotate_reference.rotate_and_store):
        mine = fused.clone()
        cache = torch.full((2, 12, kv_heads, size), 7.0, dtype=dtype, device=device)
        function(mine, table, positions, slots, cache[0], cache[1], norms[0], norms[1], 1e-6)
        results.append((mine[:, :heads], cache))
    for seen, expected in zip(*results, strict=True):
        torch.testing.assert_close(seen, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def check_gate(device: str, dtype: torch.dtype, num_tokens: int, inner: int) -> None:
    gate_up = torch.randn(num_tokens, 2 * inner, generator=torch.Generator().manual_seed(inner)).to(dtype).to(device)
    seen, expected = gated_silu_kernel.gated_silu(gate_up), gated_silu_reference.gated_silu(gate_up)
    torch.testing.assert_close(seen, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def main(device: str) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        # Triton's interpreter multiplies the bit patterns of bfloat16 matrices.
        if device != "cpu" or dtype is not torch.bfloat16:
            decode = [(0, 1), (16, 1), (-1, 1), (63, 1), (130, 1)]
            check_attention(device, dtype, 9, 3, 64, 16, decode, 1, 64)
            check_attention(device, dtype, 8, 8, 24, 4, decode, 1, 512)
            check_attention(device, dtype, 16, 2, 128, 32, [(100, 1), (5, 1)], 1, 64)
            chunks = [(0, 1), (0, 17), (7, 33), (90, 5)]
            check_attention(device, dtype, 6, 2, 16, 8, chunks, 16, 512)
            check_attention(device, dtype, 3, 1, 40, 16, chunks, 4, 512)
        for has_norm in (False, True):
            check_rotation(device, dtype, 6, 2, 16, has_norm)
            check_rotation(device, dtype, 3, 1, 40, has_norm)
        check_gate(device, dtype, 3, 1500)
        check_gate(device, dtype, 1, 7)
    print("all passed")


if __name__ == "__main__":
    main(sys.argv[1])
