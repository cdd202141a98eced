# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Runs steps on a GPU: decode rows through CUDA graphs, one per batch bucket, prompt chunks eagerly.

A step with both kinds runs twice, so decode rows always take the same path whoever joins them. With `deterministic`
every pass has one shape, padded: the same matrix kernels run whatever the batch. Also runs in Triton's interpreter on
a CPU, without graphs, which is how its tests reach it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import torch

from tritone.backends.ar.decode_inputs import DecodeInputs
from tritone.backends.ar.kv_cache import KvCache
from tritone.backends.ar.paged_attention import PagedAttention, StepTensors
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.ar.step_batch import SpanView, StepBatch
from tritone.backends.models.decoder import Decoder

logger = logging.getLogger(__name__)

TILE_TOKENS = 16


@dataclass(frozen=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    logits: torch.Tensor  # [B, V] float32, rewritten by each replay


class PagedRunner:
    """Splits a step into its decode and its prompt pass."""

    def __init__(self, decoder: Decoder, cache: KvCache, max_position: int, settings: EngineSettings) -> None:
        self._decoder = decoder
        self._device = decoder.weights.embedding.device
        self._attention = PagedAttention(decoder.config, cache, max_position)
        self._deterministic = settings.deterministic
        self._max_step_tokens = settings.max_step_tokens
        self._max_position = max_position
        self._max_blocks = -(-max_position // cache.block_tokens)
        self._buckets = _buckets(settings.max_rows, only_largest=settings.deterministic)
        self._inputs = DecodeInputs(settings.max_rows, self._max_blocks, self._device)
        self._graphs: dict[int, _Graph] = {}
        self._warm_up()
        if settings.cuda_graphs and self._device.type == "cuda":
            self._capture()
        logger.info("attention: paged kernels on %s, %d CUDA graphs", self._device, len(self._graphs))

    def run(self, batch: StepBatch) -> torch.Tensor:
        """[R, V] float32 logits of `batch.sampled`, in order."""
        singles = [span for span in batch.spans if span.num_tokens == 1]
        chunks = [span for span in batch.spans if span.num_tokens > 1]
        if not chunks:
            return self._run_decode(batch, singles)
        wanted = set(batch.sampled)
        parts: list[torch.Tensor] = []
        order: list[int] = []
        if singles:
            parts.append(self._run_decode(batch, singles))
            order += [span.first_token for span in singles]
        ends = [span.first_token + span.num_tokens - 1 for span in chunks]
        sampled = [end in wanted for end in ends]
        if any(sampled):
            parts.append(self._run_chunks(batch, chunks)[sampled])
            order += [end for end, is_sampled in zip(ends, sampled, strict=True) if is_sampled]
        else:
            self._run_chunks(batch, chunks)
        if not parts:
            return torch.empty(0, self._decoder.config.vocab_size, device=self._device)
        logits = parts[0] if len(parts) == 1 else torch.cat(parts)
        place = {token: index for index, token in enumerate(order)}
        picked = [place[token] for token in batch.sampled]
        return logits if picked == list(range(len(order))) else logits[picked]

    def _run_decode(self, batch: StepBatch, spans: list[SpanView]) -> torch.Tensor:
        """[R, V] logits of single-token spans. A prompt's lone token may be among them, sampled or not."""
        bucket = next(size for size in self._buckets if size >= len(spans))
        self._inputs.fill(batch, spans, bucket)
        captured = self._graphs.get(bucket)
        if captured is None:
            return self._decode_pass(bucket)[: len(spans)]
        captured.graph.replay()
        return captured.logits[: len(spans)]

    def _decode_pass(self, bucket: int) -> torch.Tensor:
        self._attention.prepare(self._inputs.tensors(bucket))
        hidden = self._decoder.embed(self._inputs.token_ids(bucket))
        return self._decoder.logits(self._decoder.forward(hidden, self._attention))

    def _run_chunks(self, batch: StepBatch, spans: list[SpanView]) -> torch.Tensor:
        """[R, V] logits of the last token of each span."""
        flat = [t for span in spans for t in range(span.first_token, span.first_token + span.num_tokens)]
        padding = max(0, self._max_step_tokens - len(flat)) if self._deterministic else 0
        tables = np.zeros((len(spans), self._max_blocks), dtype=np.int32)
        rows: list[int] = []
        starts: list[int] = []
        lengths: list[int] = []
        for index, span in enumerate(spans):
            tables[index, : len(span.blocks)] = span.blocks
            begin = len(rows)
            rows += [index] * span.num_tokens
            for offset in range(0, span.num_tokens, TILE_TOKENS):
                starts.append(begin + offset)
                lengths.append(min(TILE_TOKENS, span.num_tokens - offset))
        positions = [batch.positions[t] for t in flat]
        per_token = (
            [batch.token_ids[t] for t in flat] + [0] * padding,
            positions + [0] * padding,
            [batch.slots[t] for t in flat] + [-1] * padding,
            rows + [0] * padding,
            [position + 1 for position in positions] + [0] * padding,
        )
        numbers = torch.tensor(per_token, dtype=torch.int32).to(self._device)
        tiles = torch.tensor((starts, lengths), dtype=torch.int32).to(self._device)
        self._attention.prepare(
            StepTensors(
                positions=numbers[1],
                slots=numbers[2],
                rows=numbers[3],
                kv_limits=numbers[4],
                block_tables=torch.from_numpy(tables).to(self._device),
                tile_starts=tiles[0],
                tile_lengths=tiles[1],
                tile_tokens=TILE_TOKENS,
            )
        )
        hidden = self._decoder.forward(self._decoder.embed(numbers[0]), self._attention)
        ends = torch.tensor(np.cumsum([span.num_tokens for span in spans]) - 1, device=self._device)
        return self._decoder.logits(hidden[ends])

    def _warm_up(self) -> None:
        """Compile the kernels and let cuBLAS set itself up, on padding alone."""
        for bucket in self._buckets:
            self._decode_pass(bucket)
        tokens = [0] * min(TILE_TOKENS + 1, self._max_step_tokens, self._max_position)
        if len(tokens) > 1:
            # Slots of -1 store nothing: the cache stays as it is.
            slots, span = [-1] * len(tokens), SpanView(0, len(tokens), 0, [0])
            self._run_chunks(StepBatch(tokens, list(range(len(tokens))), slots, [span], []), [span])
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _capture(self) -> None:
        """One graph per bucket, largest first, so that the smaller ones fit into its memory."""
        pool = torch.cuda.graph_pool_handle()
        for bucket in reversed(self._buckets):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                logits = self._decode_pass(bucket)
            self._graphs[bucket] = _Graph(graph, logits)
        torch.cuda.synchronize(self._device)


def _buckets(max_rows: int, *, only_largest: bool) -> tuple[int, ...]:
    """Batch sizes to pad to: 1, 2, 4, 8, then steps of 8, up to `max_rows`."""
    if only_largest:
        return (max_rows,)
    sizes = {size for size in (1, 2, 4, *range(8, max_rows, 8)) if size < max_rows}
    return (*sorted(sizes), max_rows)
