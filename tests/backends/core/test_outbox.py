# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Order, joining and the one final response, whatever the transport does."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tritone.backends.core.chunk import Chunk
from tritone.backends.core.outbox import Outbox
from tritone.backends.core.protocol import ChunkKind, FinishReason
from tritone.errors import Cancelled, Internal, TritoneError


class RecordingSender:
    def __init__(self, gate: threading.Event | None = None, fails_at: int | None = None) -> None:
        self.chunks: list[Chunk] = []
        self.errors: list[TritoneError] = []
        self.finals = 0
        self.gate = gate
        self.fails_at = fails_at
        self.ended = threading.Event()

    def is_cancelled(self) -> bool:
        return False

    def send_chunk(self, chunk: Chunk, *, is_final: bool) -> None:
        if self.gate is not None:
            self.gate.wait(10)
        if len(self.chunks) == self.fails_at:
            raise RuntimeError("the transport broke")
        self.chunks.append(chunk)
        self._end(is_final)

    def send_arrays(self, arrays: Any, *, is_final: bool) -> None:
        raise AssertionError("an outbox sends chunks")

    def send_error(self, error: TritoneError) -> None:
        self.errors.append(error)
        self._end(True)

    def _end(self, is_final: bool) -> None:
        assert not self.ended.is_set()
        if is_final:
            self.finals += 1
            self.ended.set()


def text(value: str, choice: int = 0, finish: FinishReason | None = None) -> Chunk:
    return Chunk(ChunkKind.TEXT, choice_index=choice, text=value, token_ids=(ord(value[0]),), finish_reason=finish)


DONE = Chunk(ChunkKind.DONE)


def test_a_blocked_transport_joins_text_and_loses_nothing() -> None:
    gate = threading.Event()
    sender = RecordingSender(gate)
    outbox = Outbox()
    outbox.open("a", sender)
    for letter in "hello":
        outbox.put("a", text(letter))
    outbox.put("a", text("!", finish=FinishReason.STOP))
    outbox.put("a", DONE, is_final=True)
    gate.set()
    assert sender.ended.wait(10)
    outbox.stop(5)
    assert "".join(chunk.text for chunk in sender.chunks) == "hello!"
    assert len(sender.chunks) <= 4
    assert sender.finals == 1


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.sampled_from("xyz")), max_size=40))
def test_requests_never_mix(items: list[tuple[str, int, str]]) -> None:
    senders = {"a": RecordingSender(), "b": RecordingSender()}
    outbox = Outbox()
    for handle, sender in senders.items():
        outbox.open(handle, sender)
    for handle, choice, letter in items:
        outbox.put(handle, text(letter, choice))
    for handle in senders:
        outbox.put(handle, DONE, is_final=True)
    outbox.stop(5)
    for handle, sender in senders.items():
        for choice in (0, 1):
            expected = "".join(letter for to, at, letter in items if (to, at) == (handle, choice))
            assert "".join(c.text for c in sender.chunks if c.choice_index == choice) == expected
        assert sender.finals == 1


def test_nothing_follows_the_end() -> None:
    sender = RecordingSender()
    outbox = Outbox()
    outbox.open("a", sender)
    outbox.put("a", text("x"))
    outbox.fail("a", Cancelled("gone"))
    outbox.put("a", text("y"))
    outbox.fail("a", Internal("again"))
    outbox.stop(5)
    assert len(sender.errors) == 1 and isinstance(sender.errors[0], Cancelled)
    assert [chunk.text for chunk in sender.chunks] == ["x"]


def test_a_broken_send_ends_that_request_alone() -> None:
    broken, healthy = RecordingSender(fails_at=0), RecordingSender()
    outbox = Outbox()
    outbox.open("broken", broken)
    outbox.open("healthy", healthy)
    outbox.put("broken", text("x"))
    assert broken.ended.wait(10)
    outbox.put("broken", DONE, is_final=True)
    outbox.put("healthy", text("x"))
    outbox.put("healthy", DONE, is_final=True)
    outbox.stop(5)
    assert isinstance(broken.errors[0], Internal) and broken.finals == 1
    assert [chunk.text for chunk in healthy.chunks] == ["x", ""]


def test_an_interval_holds_text_back_but_never_the_first_text_or_an_end() -> None:
    sender = RecordingSender()
    outbox = Outbox(chunk_interval_s=30.0)
    outbox.open("a", sender)
    outbox.put("a", Chunk(ChunkKind.ACCEPTED))
    outbox.put("a", text("1"))
    _wait_until(lambda: len(sender.chunks) == 2)
    for letter in "234":
        outbox.put("a", text(letter))
    time.sleep(0.2)
    assert len(sender.chunks) == 2
    outbox.put("a", text("5", finish=FinishReason.LENGTH))
    _wait_until(lambda: len(sender.chunks) == 3)
    outbox.put("a", text("6", choice=1))
    time.sleep(0.2)
    assert len(sender.chunks) == 3
    outbox.put("a", DONE, is_final=True)
    assert sender.ended.wait(5)
    outbox.stop(5)
    assert [chunk.text for chunk in sender.chunks] == ["", "1", "2345", "6", ""]


def test_held_text_leaves_when_its_time_comes_and_when_the_outbox_stops() -> None:
    sender = RecordingSender()
    outbox = Outbox(chunk_interval_s=0.2)
    outbox.open("a", sender)
    for letter in "12":
        outbox.put("a", text(letter))
        _wait_until(lambda: not outbox._ready)
    assert [chunk.text for chunk in sender.chunks] == ["1", "2"]
    outbox.put("a", text("3"))
    outbox.stop(5)
    assert [chunk.text for chunk in sender.chunks] == ["1", "2", "3"]


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(0.02)


def test_the_waiting_sender_thread_holds_no_sender() -> None:
    outbox = Outbox()
    sender = RecordingSender()
    outbox.open("a", sender)
    outbox.put("a", text("1"))
    outbox.put("a", DONE, is_final=True)
    assert sender.ended.wait(5)
    time.sleep(0.1)
    gone = weakref.ref(sender)
    del sender
    assert gone() is None
    outbox.stop(5)
