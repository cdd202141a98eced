# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A plain Triton client against the orchestrator and against the stage behind it: the stage contract on the wire."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from doubles.triton_client import triton_stream

from tritone.errors import Cancelled, InvalidRequest
from tritone.tools.stack import Stack

MODELS = ["smollm2_chat", "smollm2_chat_thinker"]
CHAT = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "temperature": 0}


def run(stack: Stack, model: str, params: Any, **more: Any) -> list[dict[str, Any]]:
    with triton_stream(stack.server.grpc_address, model, params, **more) as stream:
        return list(stream)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("accept", [True, False])
def test_chunks_are_numbered_typed_and_final_once(stack: Stack, model: str, accept: bool) -> None:
    chunks = run(stack, model, CHAT | {"accept": accept, "max_tokens": 32, "log_id": "same"})
    assert [chunk["chunk_index"] for chunk in chunks] == list(range(len(chunks)))
    kinds = [chunk["chunk_kind"] for chunk in chunks]
    assert kinds == ["accepted"] * accept + ["text"] * (len(kinds) - 1 - accept) + ["done"]
    assert [chunk["is_final"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert "Paris" in "".join(chunk.get("text", "") for chunk in chunks)
    assert [chunk["finish_reason"] for chunk in chunks if "finish_reason" in chunk] == ["stop"]
    ids = [token for chunk in chunks for token in chunk.get("token_ids", [])]
    usage = json.loads(chunks[-1]["details"])["usage"]
    assert usage["completion_tokens"] == len(ids)


@pytest.mark.parametrize("model", MODELS)
def test_token_ids_can_be_the_prompt(stack: Stack, model: str) -> None:
    chunks = run(stack, model, {"max_tokens": 4, "temperature": 0}, input_ids=[504, 3575, 282])
    assert json.loads(chunks[-1]["details"])["usage"]["prompt_tokens"] == 3


BAD_PARAMS: list[tuple[Any, dict[str, Any], str]] = [
    (b"not json", {}, "params"),
    (b"[1]", {}, "params"),
    (b"\xff\xfe", {}, "params"),
    ({}, {}, ""),
    ({"prompt": ""}, {}, "prompt"),
    ({"prompt": 5}, {}, "prompt"),
    ({"prompt": "x", "messages": []}, {}, ""),
    ({"prompt": "x", "colour": 1}, {}, "colour"),
    ({"prompt": "x", "temperature": "hot"}, {}, "temperature"),
    ({"prompt": "x", "max_tokens": True}, {}, "max_tokens"),
    ({"prompt": "x", "top_k": 1.5}, {}, "top_k"),
    ({"prompt": "x", "seed": 2**70}, {}, "seed"),
    ({"prompt": "x", "stop": [""]}, {}, "stop"),
    ({"max_tokens": 1}, {"input_ids": [-1]}, "input_ids"),
    ({"max_tokens": 1}, {"input_ids": [10**9]}, "input_ids"),
    ({"max_tokens": 1}, {"input_ids": []}, "input_ids"),
    ({"prompt": "x"}, {"input_ids": [1]}, "input_ids"),
    ({"cancel": 3}, {}, "cancel"),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("params", "more", "field"), BAD_PARAMS, ids=range(len(BAD_PARAMS)))
def test_bad_params_name_the_field_and_the_next_request_is_right(
    stack: Stack, model: str, params: Any, more: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        run(stack, model, params, **more)
    if field:
        assert caught.value.field is not None and caught.value.field.startswith(field)
    good = run(stack, model, {"prompt": "The capital of France is", "max_tokens": 4, "temperature": 0})
    assert "Paris" in "".join(chunk.get("text", "") for chunk in good)


@pytest.mark.parametrize("model", MODELS)
def test_wrong_dtype_or_shape_is_refused_by_triton(stack: Stack, model: str) -> None:
    tensor = triton.InferInput("params", [1], "INT32")
    tensor.set_data_from_numpy(np.array([1], dtype=np.int32))
    results: list[Any] = []
    with triton.InferenceServerClient(stack.server.grpc_address) as client:
        client.start_stream(lambda result, error: results.append(error))
        client.async_stream_infer(model, [tensor])
        client.stop_stream()
    assert len(results) == 1 and "data-type" in str(results[0])
    assert run(stack, model, {"prompt": "x", "max_tokens": 1})


@pytest.mark.parametrize("model", MODELS)
def test_a_second_request_cancels_by_handle(stack: Stack, model: str) -> None:
    params = {"prompt": "x", "ignore_eos": True, "max_tokens": 2000, "accept": True}
    with triton_stream(stack.server.grpc_address, model, params) as stream:
        accepted = stream.next()
        assert accepted is not None
        handle = json.loads(accepted["details"])["handle"]
        [answer] = run(stack, model, {"cancel": handle})
        assert json.loads(answer["details"]) == {"cancelled": True}
        with pytest.raises(Cancelled):
            list(stream)
    [again] = run(stack, model, {"cancel": handle})
    assert json.loads(again["details"]) == {"cancelled": False}


def test_equal_and_empty_request_ids_do_not_meet(stack: Stack) -> None:
    """B06: two callers with the same id, or none, each get their own answer."""
    address = stack.server.grpc_address
    for log_id in ("", "a"):
        first = {"prompt": "1, 2, 3, 4, 5, 6,", "max_tokens": 4, "temperature": 0, "log_id": log_id}
        second = first | {"prompt": "The capital of France is"}
        with (
            triton_stream(address, "smollm2_chat", first) as one,
            triton_stream(address, "smollm2_chat", second) as two,
        ):
            texts = ["".join(chunk.get("text", "") for chunk in stream) for stream in (one, two)]
        assert "7" in texts[0] and "Paris" in texts[1]
