# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers, the two forms of an error, and no question to the server at or after the final response."""

from __future__ import annotations

import json
import threading
import weakref
from typing import Any

import pytest
from doubles.fake_triton import InferenceResponse, PbUtils, Sender

from tritone.backends.core.chunk import Chunk
from tritone.backends.core.finished_calls import FinishedCalls
from tritone.backends.core.protocol import ChunkKind
from tritone.backends.core.triton_sender import TritonSender
from tritone.errors import Cancelled, InvalidRequest

TEXT = Chunk(ChunkKind.TEXT, text="x", token_ids=(1,))
DONE = Chunk(ChunkKind.DONE)


@pytest.mark.parametrize("wants_failed_chunk", [False, True])
@pytest.mark.parametrize("num_before", [0, 2])
def test_an_error_after_a_response_is_a_chunk_for_those_who_asked(wants_failed_chunk: bool, num_before: int) -> None:
    triton = Sender()
    sender = TritonSender(PbUtils(), triton, FinishedCalls())
    sender.wants_failed_chunk = wants_failed_chunk
    for _ in range(num_before):
        sender.send_chunk(TEXT, is_final=False)
    sender.send_error(InvalidRequest("no", field="messages"))
    assert triton.finals == 1
    if wants_failed_chunk and num_before:
        assert not triton.errors()
        assert triton.values("chunk_kind")[-1] == "failed"
        assert triton.values("chunk_index") == [0, 1, 2]
        assert json.loads(triton.values("details")[-1])["code"] == "invalid_request"
    else:
        assert [error["field"] for error in triton.errors()] == ["messages"]


@pytest.mark.parametrize("end", ["chunk", "error"])
def test_no_question_reaches_triton_at_or_after_the_final_response(end: str) -> None:
    """The server has freed by then what the question is about."""
    is_sending, may_finish = threading.Event(), threading.Event()

    class SlowSender(Sender):
        is_inside_final = False

        def is_cancelled(self) -> bool:
            assert not self.is_inside_final
            return super().is_cancelled()

        def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
            if flags:
                self.is_inside_final = True
                is_sending.set()
                may_finish.wait(5)
            super().send(response, flags)

    triton = SlowSender()
    sender = TritonSender(PbUtils(), triton, FinishedCalls())
    assert not sender.is_cancelled()

    def finish() -> None:
        if end == "chunk":
            sender.send_chunk(DONE, is_final=True)
        else:
            sender.send_error(Cancelled("gone"))

    answers: list[Any] = []
    sending = threading.Thread(target=finish)
    sending.start()
    assert is_sending.wait(5)
    asking = threading.Thread(target=lambda: answers.append(sender.is_cancelled()))
    asking.start()
    asking.join(0.2)
    may_finish.set()
    sending.join(5)
    asking.join(5)
    assert answers == [False] and triton.finals == 1
    assert not sender.is_cancelled()


def test_finished_calls_are_let_go_of_after_a_question_that_followed_them() -> None:
    class Iterator:
        pass

    finished, triton = FinishedCalls(), Sender()
    sender = TritonSender(PbUtils(), triton, finished)
    first, second = Iterator(), Iterator()
    gone = weakref.ref(first)
    finished.hold(first)
    del first
    assert gone() is not None

    def hold_meanwhile() -> bool:
        finished.hold(second)
        return False

    triton.is_cancelled = hold_meanwhile  # type: ignore[method-assign]
    assert not sender.is_cancelled()
    assert gone() is None and len(finished) == 1
    finished.clear()
    assert len(finished) == 0


def test_a_cached_answer_lets_go_of_nothing() -> None:
    """Triton answers from memory once a request is cancelled, so its answer says nothing of the stub's thread."""
    finished, triton = FinishedCalls(), Sender()
    triton.is_cancelled_by_client = True
    finished.hold(object())
    assert TritonSender(PbUtils(), triton, finished).is_cancelled()
    assert len(finished) == 1
