# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Persistent inputs of decode passes, at fixed addresses so that graphs can be replayed over them."""

from __future__ import annotations

import torch

from tritone.backends.ar.paged_attention import StepTensors
from tritone.backends.ar.step_batch import SpanView, StepBatch


class DecodeInputs:
    """A host image, pinned on a GPU machine, and its device copy.

    Host memory is written by `fill` and read by the transfer it starts; the caller waits for the step's tokens before
    it fills again, so no transfer ever sees a half-written image.
    """

    def __init__(self, max_rows: int, max_blocks: int, device: torch.device) -> None:
        is_pinned = device.type == "cuda"
        self._host_fields = torch.zeros(4, max_rows, dtype=torch.int32, pin_memory=is_pinned)
        self._host_tables = torch.zeros(max_rows, max_blocks, dtype=torch.int32, pin_memory=is_pinned)
        self._field_image = self._host_fields.numpy()
        self._table_image = self._host_tables.numpy()
        self._field_image[2] = -1
        # Token ids, positions, slots, KV limits.
        self._fields = torch.empty(4, max_rows, dtype=torch.int32, device=device)
        self._fields.copy_(self._host_fields)
        self._tables = torch.zeros(max_rows, max_blocks, dtype=torch.int32, device=device)
        self._rows = torch.arange(max_rows, dtype=torch.int32, device=device)
        self._ones = torch.ones(max_rows, dtype=torch.int32, device=device)
        self._block_lists: list[list[int] | None] = [None] * max_rows
        self._num_copied = [0] * max_rows

    def fill(self, batch: StepBatch, spans: list[SpanView], num_padded: int) -> None:
        """Copy single-token spans in; the rows after them, up to `num_padded`, become padding."""
        fields, tables = self._field_image, self._table_image
        count = len(spans)
        tokens = [span.first_token for span in spans]
        fields[0, :count] = [batch.token_ids[token] for token in tokens]
        fields[1, :count] = [batch.positions[token] for token in tokens]
        fields[2, :count] = [batch.slots[token] for token in tokens]
        fields[3, :count] = [span.first_position + 1 for span in spans]
        fields[:2, count:num_padded] = 0
        fields[2, count:num_padded] = -1
        fields[3, count:num_padded] = 0
        is_table_new = False
        for index, span in enumerate(spans):
            # A row keeps its list and only appends to it, so what was copied once stays true.
            if self._block_lists[index] is not span.blocks:
                self._block_lists[index], self._num_copied[index] = span.blocks, 0
            known = self._num_copied[index]
            if known < len(span.blocks):
                tables[index, known : len(span.blocks)] = span.blocks[known:]
                self._num_copied[index] = len(span.blocks)
                is_table_new = True
        self._fields.copy_(self._host_fields, non_blocking=True)
        if is_table_new:
            self._tables[:num_padded].copy_(self._host_tables[:num_padded], non_blocking=True)

    def token_ids(self, num_rows: int) -> torch.Tensor:
        """[B] int32."""
        return self._fields[0, :num_rows]

    def tensors(self, num_rows: int) -> StepTensors:
        """Views for a pass of `num_rows` rows, each row a tile of one token."""
        return StepTensors(
            positions=self._fields[1, :num_rows],
            slots=self._fields[2, :num_rows],
            rows=self._rows[:num_rows],
            kv_limits=self._fields[3, :num_rows],
            block_tables=self._tables[:num_rows],
            tile_starts=self._rows[:num_rows],
            tile_lengths=self._ones[:num_rows],
            tile_tokens=1,
        )
