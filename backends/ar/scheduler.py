# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Plans steps: which rows run how many tokens, who is admitted, who is put back. Pure: no tensors, no clock.

Rows that run come first, oldest first, then waiting rows in order of arrival. A row that finds the pool empty takes
its block from the newest running row, which goes back to the head of the queue and is computed again later; so the
oldest row always advances, and every row becomes the oldest. `running` is ordered by arrival: rows enter it from the
head of the queue, and only ever leave it for that head newest first.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tritone.backends.ar.block_pool import BlockPool
from tritone.backends.ar.row import Row
from tritone.backends.ar.settings import EngineSettings


@dataclass(frozen=True)
class RowSpan:
    """`num_tokens` tokens of `row` from its `num_computed` on. Draws a token if they reach the last known one."""

    row: Row
    num_tokens: int
    is_sampled: bool


@dataclass(frozen=True)
class StepPlan:
    """What one step runs."""

    spans: tuple[RowSpan, ...]
    admitted: tuple[Row, ...]


class Scheduler:
    """Owner of the waiting and running rows and of the block pool."""

    def __init__(self, settings: EngineSettings, pool: BlockPool, *, prefers_runs: bool) -> None:
        """`prefers_runs`: place a row's blocks next to each other where possible."""
        self._pool = pool
        self._block_tokens = settings.block_tokens
        self._max_rows = settings.max_rows
        self._max_step_tokens = settings.max_step_tokens
        self._is_chunked = settings.chunked_prefill
        self._reserves_all = settings.reserve_full_kv
        self._prefers_runs = prefers_runs
        self.waiting: deque[Row] = deque()
        self.running: list[Row] = []
        self.num_recomputes = 0
        self.num_prefix_queries = 0
        self.num_prefix_hits = 0

    def add(self, row: Row) -> None:
        """Queue a new row."""
        self.waiting.append(row)

    def remove(self, row: Row) -> None:
        """Forget a row wherever it is, and release its blocks. A no-op for a row it does not know."""
        if row.is_running:
            self.running.remove(row)
            self._release(row)
        elif row in self.waiting:
            self.waiting.remove(row)

    def plan(self) -> StepPlan:
        """The next step. Blocks for every token of the plan are held when it returns."""
        budget = self._max_step_tokens
        spans: list[RowSpan] = []
        is_short = False
        for row in list(self.running):
            if budget <= 0:
                break
            if not row.is_running:  # put back by an older one
                continue
            num_tokens = self._chunk(row, budget)
            is_short |= not self._grow(row, row.num_computed + num_tokens)
            if not row.is_running:
                break
            spans.append(self._span(row, num_tokens))
            budget -= num_tokens
        admitted: list[Row] = []
        # Putting a row back and admitting one in the same step would only move blocks in circles.
        while not is_short and budget > 0 and self.waiting and len(self.running) < self._max_rows:
            row = self.waiting[0]
            if not self._admit(row):
                break
            num_tokens = self._chunk(row, budget)
            admitted.append(row)
            spans.append(self._span(row, num_tokens))
            budget -= num_tokens
        return StepPlan(tuple(spans), tuple(admitted))

    def computed(self, plan: StepPlan) -> None:
        """The plan has run: its tokens have KV. Full blocks become known to the prefix cache."""
        for span in plan.spans:
            row = span.row
            row.num_computed += span.num_tokens
            full = row.num_computed // self._block_tokens
            if full > row.num_remembered:
                keys = row.full_block_keys(self._block_tokens, row.num_computed)
                for index in range(row.num_remembered, full):
                    self._pool.remember(row.blocks[index], keys[index])
                row.num_remembered = full

    def _chunk(self, row: Row, budget: int) -> int:
        """Tokens of `row` for this step: what fits the budget, or without chunking everything."""
        remaining = row.num_tokens - row.num_computed
        return min(remaining, budget) if self._is_chunked else remaining

    def _span(self, row: Row, num_tokens: int) -> RowSpan:
        return RowSpan(row, num_tokens, row.num_computed + num_tokens == row.num_tokens)

    def _grow(self, row: Row, num_tokens: int) -> bool:
        """Hold blocks for `num_tokens`, putting the newest rows back while there are too few. False if it had to."""
        missing = self._num_blocks(num_tokens) - len(row.blocks)
        if missing <= 0:
            return True
        has_room = True
        while self._pool.num_free < missing:
            has_room = False
            newest = self.running[-1]
            self._put_back(newest)
            if newest is row:
                return False
        row.blocks += self._pool.take(missing, after=row.blocks[-1] if row.blocks else None)
        return has_room

    def _put_back(self, row: Row) -> None:
        self.running.remove(row)
        self._release(row)
        # The newest goes back first, so the head of the queue is always the oldest of those put back.
        self.waiting.appendleft(row)
        self.num_recomputes += 1

    def _release(self, row: Row) -> None:
        self._pool.release(row.blocks)
        row.blocks = []
        row.is_running = False
        row.wish = None
        row.num_computed = 0
        row.num_remembered = 0

    def _admit(self, row: Row) -> bool:
        """Move the head of the queue to the running rows, if the pool has headroom for it."""
        sibling = self._leader(row)
        if sibling is not None and sibling.num_computed < sibling.num_prompt:
            return False
        # The last known token is always computed: its logits are what a step is for.
        keys = row.full_block_keys(self._block_tokens, row.num_tokens - 1)
        shared = self._pool.find(keys)
        total = row.max_total if self._reserves_all else row.num_tokens
        needed = self._num_blocks(total) - len(shared)
        # Each running row may soon want one more block.
        headroom = 0 if self._reserves_all else len(self.running)
        if needed + self._pool.num_unheld(shared) + headroom > self._pool.num_free and self.running:
            return False
        if needed + self._pool.num_unheld(shared) > self._pool.num_free:
            return False
        self.waiting.popleft()
        self.running.append(row)
        row.is_running = True
        self._pool.share(shared)
        row.blocks = shared + self._pool.take(needed, after=self._place(row, shared))
        row.num_computed = len(shared) * self._block_tokens
        row.num_remembered = len(shared)
        if not row.was_admitted:
            row.was_admitted = True
            row.num_cached = row.num_computed
            self.num_prefix_queries += 1
            self.num_prefix_hits += bool(shared)
        return True

    def _leader(self, row: Row) -> Row | None:
        """The running first choice of the same request, whose prompt the others share."""
        if row.choice_index == 0:
            return None
        for other in self.running:
            if other.request_id == row.request_id and other.choice_index == 0:
                return other
        return None

    def _place(self, row: Row, shared: list[int]) -> int | None:
        """Block after which the row's next blocks go."""
        if not self._prefers_runs:
            return None
        if shared and self._pool.is_unheld(shared[-1] + 1):
            return shared[-1]
        wished = [other.wish for other in self.running if other.wish is not None]
        # Room for all the row may become, else for as much as there is now.
        for num_tokens in (row.max_total, row.num_tokens):
            count = self._num_blocks(num_tokens) - len(shared)
            before = self._pool.place(count, wished)
            if before is not None:
                row.wish = range(before + 1, before + 1 + count)
                return before
        return None

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_tokens)
