# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The paged runner against the CPU runner on one tiny checkpoint. Run as a script: `… FOLDER cpu|cuda`.

On "cpu" the kernels run in Triton's interpreter (TRITON_INTERPRET=1), without graphs.
"""

from __future__ import annotations

import sys

import torch

from tritone.backends.ar.kv_cache import KvCache
from tritone.backends.ar.paged_runner import PagedRunner
from tritone.backends.ar.runner import CpuRunner, Runner
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.ar.step_batch import SpanView, StepBatch
from tritone.backends.models.checkpoint import Checkpoint
from tritone.backends.models.decoder import Decoder
from tritone.kernels.gated_silu import gated_silu

BLOCK, BLOCKS, CONTEXT = 4, 24, 64
# Steps of (row, number of tokens); a row's blocks are scattered.
STEPS = ([(0, 9), (1, 1)], [(0, 1), (1, 18), (2, 5)], [(0, 1), (1, 1), (2, 1)], [(1, 1)], [(0, 1), (2, 7)])
TABLES = ([5, 2, 9, 11], [0, 1, 3, 4, 6, 7], [20, 19, 18, 17])


def run_steps(runner: Runner) -> list[torch.Tensor]:
    """Logits of every sampled token, step by step."""
    generator = torch.Generator().manual_seed(5)
    done = [0, 0, 0]
    logits = []
    for step in STEPS:
        ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        spans: list[SpanView] = []
        sampled: list[int] = []
        for row, count in step:
            spans.append(SpanView(len(ids), count, done[row], TABLES[row]))
            places = range(done[row], done[row] + count)
            ids += torch.randint(0, 250, (count,), generator=generator).tolist()
            positions += places
            slots += [TABLES[row][place // BLOCK] * BLOCK + place % BLOCK for place in places]
            sampled.append(len(ids) - 1)
            done[row] += count
        logits.append(runner.run(StepBatch(ids, positions, slots, spans, sampled)).cpu().clone())
    return logits


def main(folder: str, device_name: str) -> None:
    checkpoint = Checkpoint.resolve(folder)
    config, cpu, device = checkpoint.decoder_config, torch.device("cpu"), torch.device(device_name)
    cache = KvCache(config, BLOCKS, BLOCK, torch.float32, cpu, is_head_major=True)
    plain = Decoder(config, checkpoint.load_weights(torch.float32, cpu))
    with torch.inference_mode():
        expected = run_steps(CpuRunner(plain, cache, CONTEXT))
        for deterministic in (False, True):
            settings = EngineSettings(
                max_rows=3, max_step_tokens=26, block_tokens=BLOCK, num_blocks=BLOCKS, deterministic=deterministic
            )
            paged_cache = KvCache(config, BLOCKS, BLOCK, torch.float32, device, is_head_major=False)
            decoder = Decoder(config, checkpoint.load_weights(torch.float32, device), gated_silu)
            seen = run_steps(PagedRunner(decoder, paged_cache, CONTEXT, settings))
            for mine, theirs in zip(seen, expected, strict=True):
                torch.testing.assert_close(mine, theirs, atol=2e-4, rtol=2e-4)
    print("all equal")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
