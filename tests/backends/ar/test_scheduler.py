# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Invariants of planner and pool under arbitrary traffic."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tritone.backends.ar.block_pool import BlockPool, block_key
from tritone.backends.ar.request import SamplingParams
from tritone.backends.ar.row import Row
from tritone.backends.ar.scheduler import Scheduler
from tritone.backends.ar.settings import EngineSettings

BLOCK = 4
MAX_TOTAL = 40


def make_row(request_id: int, prompt: list[int], num_output: int, choice: int = 0) -> Row:
    nothing: Any = None  # the planner looks at neither text nor grammar
    return Row(
        request_id=request_id, choice_index=choice, seed=0, sampling=SamplingParams(), stop_ids=frozenset(),
        token_ids=list(prompt), num_prompt=len(prompt), max_total=len(prompt) + num_output, salt=b"s",
        detokenizer=nothing, guide=None,
    )  # fmt: skip


requests = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 10), st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=12
)


@settings(max_examples=150, deadline=None)
@given(
    traffic=requests,
    num_blocks=st.integers(MAX_TOTAL // BLOCK, 30),
    max_rows=st.integers(1, 6),
    extra_budget=st.integers(0, 20),
    chunked=st.booleans(),
    reserve=st.booleans(),
    runs=st.booleans(),
    cancels=st.sets(st.integers(0, 11)),
)
def test_every_row_ends_and_nothing_leaks(
    traffic: list[tuple[int, int, int, int]], num_blocks: int, max_rows: int, extra_budget: int, chunked: bool,
    reserve: bool, runs: bool, cancels: set[int],
) -> None:  # fmt: skip
    engine = EngineSettings(
        block_tokens=BLOCK, max_rows=max_rows, max_step_tokens=max_rows + extra_budget, chunked_prefill=chunked,
        reserve_full_kv=reserve,
    )  # fmt: skip
    pool = BlockPool(num_blocks)
    scheduler = Scheduler(engine, pool, prefers_runs=runs)
    # Prompts of the same kind share a prefix.
    rows = [
        make_row(request_id, [kind] * length, outputs, choice)
        for request_id, (length, outputs, choices, kind) in enumerate(traffic)
        for choice in range(choices)
    ]
    pending = list(rows)
    finished: list[Row] = []
    for step in range(2000):
        for _ in range(2):
            if pending:
                scheduler.add(pending.pop(0))
        if step in cancels and scheduler.running:
            victim = scheduler.running[-1]
            scheduler.remove(victim)
            finished.append(victim)
        oldest = scheduler.running[0] if scheduler.running else None
        before = oldest.num_computed if oldest else 0
        plan = scheduler.plan()
        if not plan.spans:
            assert not scheduler.running
            if not scheduler.waiting and not pending:
                break
            continue
        total = sum(span.num_tokens for span in plan.spans)
        if chunked:
            assert total <= engine.max_step_tokens
        assert len({id(span.row) for span in plan.spans}) == len(plan.spans)
        assert len(scheduler.running) <= max_rows
        held = [block for row in scheduler.running for block in row.blocks]
        assert pool.num_held == len(set(held))
        for span in plan.spans:
            assert span.row.is_running
            assert span.num_tokens >= 1
            assert len(span.row.blocks) * BLOCK >= span.row.num_computed + span.num_tokens
            # What this step writes, no other row may see.
            end = span.row.num_computed + span.num_tokens
            written = span.row.blocks[span.row.num_computed // BLOCK : -(-end // BLOCK)]
            assert all(held.count(block) == 1 for block in written)
        if reserve:
            assert scheduler.num_recomputes == 0
        scheduler.computed(plan)
        if oldest is not None:
            assert oldest.num_computed > before, "the oldest row starves"
        for span in plan.spans:
            if span.is_sampled:
                span.row.token_ids.append(100 + span.row.num_tokens)
                if span.row.num_tokens >= span.row.max_total:
                    scheduler.remove(span.row)
                    finished.append(span.row)
    else:
        raise AssertionError("rows are left over")
    assert len(finished) == len(rows)
    assert pool.num_held == 0
    assert pool.num_free == num_blocks


def test_equal_keys_mean_equal_prefixes() -> None:
    first = block_key(b"s", [1, 2, 3, 4])
    assert block_key(b"s", [1, 2, 3, 4]) == first
    assert block_key(b"t", [1, 2, 3, 4]) != first
    assert block_key(b"s", [1, 2, 3, 5]) != first
    assert block_key(first, [1, 2]) != block_key(block_key(b"t", [1, 2, 3, 4]), [1, 2])


def test_the_least_recently_used_content_goes_first() -> None:
    pool = BlockPool(4)
    old = pool.take(2)
    new = pool.take(2)
    for block, key in zip(old + new, (b"a", b"b", b"c", b"d"), strict=True):
        pool.remember(block, key)
    pool.release(old)
    pool.release(new)
    assert pool.find([b"a", b"b"]) == old
    # Of the older pair its end goes first, so that its beginning can still be shared.
    assert pool.take(1) == [old[1]]
    assert pool.find([b"a", b"b"]) == [old[0]]
    pool.share([old[0]])
    assert pool.take(1) == [new[1]]
    pool.release([old[0]])
    assert pool.find([b"a"]) == [old[0]]


def test_rows_are_placed_next_to_each_other() -> None:
    engine = EngineSettings(block_tokens=BLOCK, max_rows=4, max_step_tokens=64)
    pool = BlockPool(40)
    scheduler = Scheduler(engine, pool, prefers_runs=True)
    rows = [make_row(i, [i] * 5, 30) for i in range(4)]
    for row in rows:
        scheduler.add(row)
    while scheduler.waiting or scheduler.running:
        plan = scheduler.plan()
        scheduler.computed(plan)
        for span in plan.spans:
            row = span.row
            assert row.blocks == list(range(row.blocks[0], row.blocks[0] + len(row.blocks)))
            row.token_ids.append(7)
            if row.num_tokens >= row.max_total:
                scheduler.remove(row)
