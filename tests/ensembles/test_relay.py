# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The relay rules: order, own numbers, accepted, errors, cancel at every moment, final once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from doubles.fake_triton import (
    InferenceResponse,
    PbUtils,
    Refusal,
    Request,
    Serve,
    Tensor,
    initialize_args,
)

from tritone.backends.core.chunk import Chunk, chunk_arrays
from tritone.backends.core.protocol import ChunkKind, FinishReason
from tritone.ensembles.smollm2_chat.orchestrator import ChatOrchestrator
from tritone.errors import InvalidRequest, to_wire

SETTINGS = {"stages": {"thinker": "thinker"}, "max_streams": 2, "stage_timeout_s": 60}
ACCEPTED = Chunk(ChunkKind.ACCEPTED, details={"handle": "stage-handle"})
DONE = Chunk(ChunkKind.DONE, details={"usage": {}})


def response(chunk: Chunk, index: int = 7) -> InferenceResponse:
    number = Tensor("chunk_index", np.array([index], dtype=np.int32))
    return InferenceResponse([number, *(Tensor(name, array) for name, array in chunk_arrays(chunk).items())])


def text(value: str) -> Chunk:
    return Chunk(ChunkKind.TEXT, text=value, token_ids=(1,))


def start(serve: Serve) -> tuple[ChatOrchestrator, PbUtils]:
    pb_utils = PbUtils(serve)

    class Model(ChatOrchestrator):
        pass

    Model.pb_utils = pb_utils
    model = Model()
    model.initialize(initialize_args(SETTINGS))
    return model, pb_utils


def answer(*chunks: Chunk) -> Serve:
    return lambda model, params: iter([response(chunk) for chunk in chunks])


def test_chunks_keep_order_under_the_relays_own_numbers() -> None:
    end = Chunk(ChunkKind.TEXT, text="c", token_ids=(3,), finish_reason=FinishReason.STOP)
    model, pb_utils = start(answer(ACCEPTED, text("a"), text("b"), end, DONE))
    request = Request({"prompt": "x", "accept": True})
    model.execute([request])
    assert request.sender.ended.wait(5)
    model.finalize()
    assert request.sender.values("chunk_index") == [0, 1, 2, 3, 4]
    assert request.sender.values("chunk_kind") == ["accepted", "text", "text", "text", "done"]
    assert request.sender.values("text") == ["a", "b", "c"]
    assert request.sender.finals == 1
    # The client's handle is the orchestrator's own, not the stage's.
    assert json.loads(request.sender.values("details")[0])["handle"] != "stage-handle"
    # Ending the model cancels what it still finds, so a cancel may follow.
    assert pb_utils.calls[0] == ("thinker", {"prompt": "x", "accept": True})


def test_a_client_that_did_not_ask_gets_no_accepted_chunk() -> None:
    model, _ = start(answer(ACCEPTED, text("a"), DONE))
    request = Request({"prompt": "x"})
    model.execute([request])
    assert request.sender.ended.wait(5)
    model.finalize()
    assert request.sender.values("chunk_kind") == ["text", "done"]
    assert request.sender.values("chunk_index") == [0, 1]


@pytest.mark.parametrize("before", [(), (ACCEPTED,), (ACCEPTED, text("a"))])
def test_a_stages_error_arrives_as_it_was_and_is_final(before: tuple[Chunk, ...]) -> None:
    wire = to_wire(InvalidRequest("too long", field="messages"))
    failed = Chunk(ChunkKind.FAILED, details=json.loads(wire))
    # A stage that refuses says so through Triton, one that fails later over the link.
    refusal = Refusal(wire)
    model, _ = start(lambda model, params: iter(map(response, [*before, failed])) if before else refusal)
    request = Request({"prompt": "x"})
    model.execute([request])
    assert request.sender.ended.wait(5)
    model.finalize()
    assert [(e["code"], e["field"], e["message"]) for e in request.sender.errors()] == [
        ("invalid_request", "messages", "too long")
    ]
    assert request.sender.finals == 1


@pytest.mark.parametrize("chunks", [(), (ACCEPTED,), (ACCEPTED, text("a"))])
def test_a_stage_that_dies_silently_is_an_error_not_an_empty_answer(chunks: tuple[Chunk, ...]) -> None:
    model, _ = start(answer(*chunks))
    request = Request({"prompt": "x"})
    model.execute([request])
    assert request.sender.ended.wait(5)
    model.finalize()
    assert [error["code"] for error in request.sender.errors()] == ["overloaded"]


def test_an_exception_of_the_relay_says_nothing_of_the_library() -> None:
    def serve(model: str, params: dict[str, Any]) -> Iterator[InferenceResponse]:
        raise RuntimeError("/secret/path exploded")

    model, _ = start(serve)
    request = Request({"prompt": "x"})
    model.execute([request])
    assert request.sender.ended.wait(5)
    model.finalize()
    assert "secret" not in json.dumps(request.sender.errors())


@pytest.mark.parametrize("is_early", [True, False])
def test_cancel_reaches_the_stage_before_and_after_its_handle_is_known(is_early: bool) -> None:
    may_accept, cancelled = threading.Event(), threading.Event()

    def serve(model: str, params: dict[str, Any]) -> Iterator[InferenceResponse]:
        if "cancel" in params:
            assert params == {"cancel": "stage-handle"}
            cancelled.set()
            yield response(DONE)
            return
        if is_early:
            may_accept.wait(5)
        yield response(ACCEPTED)
        if not is_early:
            may_accept.set()
        assert cancelled.wait(5)
        yield response(Chunk(ChunkKind.FAILED, details={"code": "cancelled", "message": "cancelled"}))

    model, _ = start(serve)
    request = Request({"prompt": "x"})
    model.execute([request])
    if not is_early:
        assert may_accept.wait(5)
    request.sender.is_cancelled_by_client = True
    if is_early:
        threading.Timer(0.5, may_accept.set).start()
    assert cancelled.wait(5)
    assert request.sender.ended.wait(5)
    model.finalize()
    assert request.sender.finals == 1 and len(model.live) == 0


def test_more_streams_than_threads_are_refused_with_a_hint() -> None:
    release = threading.Event()

    def serve(model: str, params: dict[str, Any]) -> Iterator[InferenceResponse]:
        release.wait(5)
        yield response(DONE)

    model, _ = start(serve)
    requests = [Request({"prompt": "x"}) for _ in range(3)]
    model.execute(list(requests))
    assert requests[2].sender.errors()[0]["code"] == "overloaded"
    assert requests[2].sender.errors()[0]["retry_after_s"] > 0
    release.set()
    assert all(request.sender.ended.wait(5) for request in requests)
    model.finalize()


BAD_PARAMS = [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"cancel": 5}', b'{"cancel": "a", "prompt": "b"}']


@pytest.mark.parametrize("params", BAD_PARAMS)
def test_bad_params_are_refused_and_the_next_request_is_served(params: bytes) -> None:
    model, _ = start(answer(ACCEPTED, DONE))
    bad, good = Request(params), Request({"prompt": "x"})
    model.execute([bad, good])
    assert bad.sender.errors()[0]["code"] == "invalid_request"
    assert good.sender.ended.wait(5) and not good.sender.errors()
    model.finalize()


def test_input_ids_are_copied_for_the_stage() -> None:
    ids = np.array([1, 2, 3], dtype=np.int32)
    model, _ = start(answer(ACCEPTED, DONE))
    request = Request({}, input_ids=ids)
    model.execute([request])
    assert request.sender.ended.wait(5) and not request.sender.errors()
    model.finalize()


def test_callers_that_asked_for_acceptance_get_late_errors_as_a_chunk() -> None:
    """The 24.10 server loses or hangs on a real error that follows another response of a BLS call."""
    failed = Chunk(ChunkKind.FAILED, details=json.loads(to_wire(InvalidRequest("too long", field="messages"))))
    model, _ = start(answer(ACCEPTED, text("a"), failed))
    request = Request({"prompt": "x", "accept": True})
    model.execute([request])
    assert request.sender.ended.wait(5)
    model.finalize()
    assert not request.sender.errors()
    assert request.sender.values("chunk_kind") == ["accepted", "text", "failed"]
    assert request.sender.values("chunk_index") == [0, 1, 2]
    assert json.loads(request.sender.values("details")[-1])["field"] == "messages"
    assert request.sender.finals == 1
