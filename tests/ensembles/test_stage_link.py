# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Both ends of a link in one process: chunks, cancels at every moment, and what happens when an end goes."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tritone.backends.core import link
from tritone.backends.core.chunk import Chunk
from tritone.backends.core.link import StageLinks, socket_name
from tritone.backends.core.protocol import ChunkKind
from tritone.ensembles.stage_link import STAGE_TOO_SLOW, STREAM_ENDED_EARLY, OrchestratorLinks
from tritone.errors import Cancelled, Internal, InvalidRequest, Overloaded, from_wire

HANG_S = 10.0
TEXT = Chunk(ChunkKind.TEXT, text="x", token_ids=(1,))
DONE = Chunk(ChunkKind.DONE, details={"usage": {}})


class Ends:
    """A stage and an orchestrator, and the handles that were cancelled."""

    def __init__(self) -> None:
        self.cancelled: queue.Queue[str] = queue.Queue()
        self.stage = StageLinks(self.cancelled.put)
        self.orchestrator = OrchestratorLinks()


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.stage.close()
    ends.orchestrator.close()


def test_chunks_arrive_numbered_up_to_the_last(ends: Ends) -> None:
    call = ends.orchestrator.open(HANG_S)
    sender = ends.stage.open(call.target, "h")
    for _ in range(3):
        sender.send_chunk(TEXT, is_final=False)
    sender.send_chunk(DONE, is_final=True)
    chunks = list(call)
    assert [chunk.kind for chunk in chunks] == [ChunkKind.TEXT] * 3 + [ChunkKind.DONE]
    assert [int(chunk.arrays["chunk_index"][0]) for chunk in chunks] == [0, 1, 2, 3]
    assert chunks[-1].details == {"usage": {}}
    call.close()
    assert ends.cancelled.empty()


def test_many_calls_share_a_link_and_keep_apart(ends: Ends) -> None:
    calls = [ends.orchestrator.open(HANG_S) for _ in range(20)]
    senders = [ends.stage.open(call.target, str(number)) for number, call in enumerate(calls)]

    def speak(number: int) -> None:
        for _ in range(20):
            senders[number].send_chunk(Chunk(ChunkKind.TEXT, text=str(number)), is_final=False)
        senders[number].send_chunk(DONE, is_final=True)

    threads = [threading.Thread(target=speak, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for number, call in enumerate(calls):
        chunks = list(call)
        assert {chunk.arrays["text"][0].decode() for chunk in chunks[:-1]} == {str(number)}
        assert len(chunks) == 21


def test_an_error_is_the_last_chunk(ends: Ends) -> None:
    call = ends.orchestrator.open(HANG_S)
    ends.stage.open(call.target, "h").send_error(Overloaded("full", retry_after_s=3))
    [chunk] = call
    assert chunk.kind is ChunkKind.FAILED
    error = from_wire('{"code"' + chunk.arrays["details"][0].decode().partition('{"code"')[2])
    assert isinstance(error, Overloaded) and error.retry_after_s == 3


@pytest.mark.parametrize("is_early", [True, False])
def test_a_cancel_reaches_the_stage_before_and_after_it_takes_the_call(ends: Ends, is_early: bool) -> None:
    call = ends.orchestrator.open(HANG_S)
    if is_early:
        call.cancel()
    sender = ends.stage.open(call.target, "h")
    if not is_early:
        call.cancel()
    assert ends.cancelled.get(timeout=HANG_S) == "h"
    assert sender.is_cancelled()
    sender.send_error(Cancelled("gone"))
    assert [chunk.kind for chunk in call] == [ChunkKind.FAILED]


def test_closing_a_call_that_runs_cancels_it(ends: Ends) -> None:
    call = ends.orchestrator.open(HANG_S)
    ends.stage.open(call.target, "h").send_chunk(TEXT, is_final=False)
    next(iter(call))
    call.close()
    assert ends.cancelled.get(timeout=HANG_S) == "h"


def test_a_stage_that_dies_ends_its_calls_and_no_others(ends: Ends) -> None:
    other = StageLinks(ends.cancelled.put)
    lost, kept = ends.orchestrator.open(HANG_S), ends.orchestrator.open(HANG_S)
    ends.stage.open(lost.target, "lost").send_chunk(TEXT, is_final=False)
    survivor = other.open(kept.target, "kept")
    chunks = iter(lost)
    next(chunks)
    ends.stage.close()
    with pytest.raises(Overloaded, match=STREAM_ENDED_EARLY):
        next(chunks)
    survivor.send_chunk(DONE, is_final=True)
    assert [chunk.kind for chunk in kept] == [ChunkKind.DONE]
    other.close()


def test_an_orchestrator_that_dies_cancels_its_calls(ends: Ends) -> None:
    call = ends.orchestrator.open(HANG_S)
    sender = ends.stage.open(call.target, "h")
    sender.send_chunk(TEXT, is_final=False)
    next(iter(call))
    ends.orchestrator.close()
    assert ends.cancelled.get(timeout=HANG_S) == "h"
    assert sender.is_cancelled()
    with pytest.raises(Cancelled):
        sender.send_chunk(TEXT, is_final=False)
    # The next orchestrator is another one.
    ends.orchestrator = OrchestratorLinks()
    again = ends.orchestrator.open(HANG_S)
    ends.stage.open(again.target, "again").send_chunk(DONE, is_final=True)
    assert len(list(again)) == 1


def test_a_stage_that_says_nothing_takes_too_long(ends: Ends) -> None:
    call = ends.orchestrator.open(0.1)
    ends.stage.open(call.target, "h")
    with pytest.raises(Internal, match=STAGE_TOO_SLOW):
        next(iter(call))
    call.close()
    assert ends.cancelled.get(timeout=HANG_S) == "h"


def test_a_reader_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hung orchestrator must not hold the stage's one sending thread for ever."""
    monkeypatch.setattr(link, "SEND_TIMEOUT_S", 1.0)
    address = "0" * 32
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_name(address))
        listener.listen()
        cancelled: queue.Queue[str] = queue.Queue()
        stage = StageLinks(cancelled.put)
        sender = stage.open({"address": address, "call": 1}, "h")
        began = time.monotonic()
        with pytest.raises(Cancelled):
            while True:
                sender.send_chunk(Chunk(ChunkKind.TEXT, text="x" * 100_000), is_final=False)
        assert time.monotonic() - began < HANG_S
        assert cancelled.get(timeout=HANG_S) == "h"


def test_another_users_process_is_turned_away(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    call = ends.orchestrator.open(HANG_S)
    with pytest.raises(InvalidRequest):
        ends.stage.open(call.target, "h")


BAD_TARGETS: list[Any] = [
    None,
    "x",
    {},
    {"address": "0" * 32},
    {"address": "0" * 32, "call": 0},
    {"address": "../x", "call": 0},
    {"address": "0" * 31 + "\0", "call": 0},
    {"address": "0" * 32, "call": True},
    {"address": "0" * 32, "call": -1},
    {"address": "0" * 32, "call": 1 << 64},
]


@pytest.mark.parametrize("target", BAD_TARGETS, ids=range(len(BAD_TARGETS)))
def test_targets_that_are_no_link_are_refused(ends: Ends, target: Any) -> None:
    with pytest.raises(InvalidRequest):
        ends.stage.open(target, "h")
