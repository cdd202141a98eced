# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The fault matrix: every fault by every way a client has. Each ends its own request, clearly and once, and no other.

Covers reliability T24, T27, T31, T45, T46 and T49 on the real server, relay and gateway.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
import tritonclient.grpc as triton
from faults.calls import HANG_S, WAYS, Outcome, call_gateway, call_triton, wait_until
from faults.fault_command import BEGIN, MALFORMED, ROUTE, SEND, STEP, FaultCommand
from faults.registry import FAULTS, PIPELINES, PipelineUnderTest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tritone.tools.stack import Stack

# What a client may never read: of libraries, of our own source, of the machine.
SECRETS = ("secret", "deadbeef", "Traceback", "site-packages", ".py")
SLOW = 30.0  # between chunks, so that the first has left before the fault strikes

FAULT_CASES: dict[str, tuple[FaultCommand, str]] = {
    "begin": (FaultCommand(raise_in=BEGIN), "internal"),
    "step": (FaultCommand(raise_in=STEP, interval_ms=SLOW), "internal"),
    "step_at_once": (FaultCommand(raise_in=STEP, at=0), "internal"),
    "send": (FaultCommand(raise_in=SEND, interval_ms=SLOW), "internal"),
    **{
        f"refuse_{code}": (FaultCommand(refuse=code), code)
        for code in ("invalid_request", "not_found", "unsupported", "overloaded")
    },
    **{f"fail_{code}": (FaultCommand(fail=code, interval_ms=SLOW), code) for code in ("invalid_request", "internal")},
}
MALFORMED_CASES = {kind: FaultCommand(malformed=kind, interval_ms=SLOW) for kind in MALFORMED}
STATUSES = {"internal": 500, "invalid_request": 400, "not_found": 404, "unsupported": 400, "overloaded": 503}


def is_whole(outcome: Outcome, command: FaultCommand) -> bool:
    """Whether it is the right answer, ended once, with nothing after the end and no gap in the numbers."""
    return (
        outcome.code is None
        and outcome.text == command.answer()
        and (outcome.finals, outcome.after_final) == (1, 0)
        and outcome.indices == list(range(len(outcome.indices)))
    )


@pytest.fixture(scope="module", autouse=True)
def neighbour(faults: Stack) -> Iterator[None]:
    """Requests of somebody else that run through the whole matrix: all of them must come out whole."""
    command = FaultCommand(chunks=30, interval_ms=30)
    stop, bad = threading.Event(), list[Outcome]()

    def ask() -> None:
        while not stop.is_set():
            outcome = WAYS["orchestrator"](faults, FAULTS, command)
            if not is_whole(outcome, command):
                bad.append(outcome)

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    stop.set()
    thread.join(HANG_S)
    assert not thread.is_alive() and not bad


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", FAULT_CASES)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_a_fault_ends_its_request_once_and_clearly(
    faults: Stack, pipeline: PipelineUnderTest, case: str, way: str
) -> None:
    command, code = FAULT_CASES[case]
    outcome = WAYS[way](faults, pipeline, command)
    assert outcome.code == code, outcome
    assert (outcome.finals, outcome.after_final) == (1, 0), outcome
    assert outcome.indices == list(range(len(outcome.indices)))
    assert command.answer().startswith(outcome.text)
    assert not any(secret in outcome.raw for secret in SECRETS)
    if way == "gateway" or (way == "gateway_stream" and (command.refuse or command.raise_in == BEGIN)):
        assert outcome.status == STATUSES[code]
        assert (code == "overloaded") == ("retry-after" in outcome.headers)
    good = FaultCommand()
    assert is_whole(WAYS[way](faults, pipeline, good), good)


@pytest.mark.parametrize("way", ["orchestrator", "gateway", "gateway_stream"])
@pytest.mark.parametrize("malformed", MALFORMED)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_a_chunk_that_breaks_the_protocol_is_an_internal_error(
    faults: Stack, pipeline: PipelineUnderTest, malformed: str, way: str
) -> None:
    outcome = WAYS[way](faults, pipeline, MALFORMED_CASES[malformed])
    if malformed == "handle":
        # The orchestrator has no use for the stage's handle.
        assert is_whole(outcome, MALFORMED_CASES[malformed])
        return
    assert outcome.code == "internal", outcome
    assert (outcome.finals, outcome.after_final) == (1, 0), outcome
    assert not any(secret in outcome.raw for secret in SECRETS)
    good = FaultCommand()
    assert is_whole(WAYS[way](faults, pipeline, good), good)


@pytest.mark.parametrize("way", ["orchestrator", "gateway", "gateway_stream"])
def test_an_exception_of_the_orchestrator_is_an_internal_error(faults: Stack, way: str) -> None:
    outcome = WAYS[way](faults, FAULTS, FaultCommand(raise_in=ROUTE))
    assert outcome.code == "internal"
    assert (outcome.finals, outcome.after_final) == (1, 0), outcome
    assert not any(secret in outcome.raw for secret in SECRETS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "command",
    [
        FaultCommand(hang_in=BEGIN, hang_s=0.5),
        FaultCommand(hang_in=STEP, hang_s=0.5),
        FaultCommand(hang_in=SEND, hang_s=0.5),
        FaultCommand(hog_s=0.5),
        FaultCommand(hog_relay_s=2.0),  # reliability T46
    ],
    ids=lambda command: command.hang_in or ("hog" if command.hog_s else "hog_relay"),
)
def test_a_process_that_stands_still_for_a_while_loses_nothing(faults: Stack, command: FaultCommand, way: str) -> None:
    assert is_whole(WAYS[way](faults, FAULTS, command), command)


@pytest.mark.parametrize("way", WAYS)
def test_five_hundred_chunks_arrive_in_order(faults: Stack, way: str) -> None:
    command = FaultCommand(chunks=500, interval_ms=1, coalesce=4)
    outcome = WAYS[way](faults, FAULTS, command)
    assert is_whole(outcome, command)
    if outcome.indices:
        assert len(outcome.indices) > 20


@pytest.mark.parametrize("way", WAYS)
def test_large_chunks_arrive_whole(faults: Stack, way: str) -> None:
    command = FaultCommand(chunks=5, interval_ms=SLOW, chunk_bytes=1_000_000)
    assert is_whole(WAYS[way](faults, FAULTS, command), command)


@pytest.mark.parametrize("request_id", ["", "same"])
@pytest.mark.parametrize("way", ["triton", "gateway"])
def test_two_users_with_one_id_get_their_own_answers(faults: Stack, way: str, request_id: str) -> None:
    commands = [FaultCommand(chunks=20 + user, chunk_bytes=user, interval_ms=10) for user in range(2)]
    outcomes: dict[int, Outcome] = {}

    def ask(user: int) -> None:
        if way == "triton":
            params = FAULTS.params_of(commands[user]) | {"log_id": request_id}
            address = faults.server.grpc_address
            outcomes[user] = call_triton(address, FAULTS.name, params, request_id=request_id)
        else:
            headers = {"x-request-id": request_id, "x-client-request-id": request_id}
            outcomes[user] = call_gateway(faults, FAULTS, commands[user], stream=True, headers=headers)

    threads = [threading.Thread(target=ask, args=(user,)) for user in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert all(is_whole(outcomes[user], commands[user]) for user in range(2))


BAD_BODIES: list[dict[str, Any]] = [
    {"messages": []},
    {"messages": "hello"},
    {"messages": [{"role": "nobody", "content": "x"}]},
    {"messages": [{"role": "user"}]},
    {"messages": [{"role": "user", "content": "x"}], "max_tokens": -1},
    {"messages": [{"role": "user", "content": "x"}], "temperature": "hot"},
    {"messages": [{"role": "user", "content": "x"}], "model": "nothing"},
    {"messages": [{"role": "user", "content": "x"}], "model": "../faults"},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]},
    {"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "yaml"}},
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda body: str(len(str(body))))
def test_a_good_request_after_a_bad_one_does_not_notice(faults: Stack, body: dict[str, Any]) -> None:
    answer = httpx.post(faults.gateway.url + FAULTS.route, json={"model": "faults"} | body, timeout=HANG_S)
    assert 400 <= answer.status_code < 500
    good = FaultCommand()
    assert is_whole(call_gateway(faults, FAULTS, good, stream=True), good)


def infer(faults: Stack, change: Any) -> str:
    """Triton's words about a request whose message `change` has spoilt, and those of its status; empty when it is good.

    Triton answers on the stream with a text alone, and with a status where it cannot read the message.
    """
    request = service_pb2.ModelInferRequest(model_name=FAULTS.name)
    request.inputs.add(name="params", datatype="BYTES", shape=[1])
    request.raw_input_contents.append(b"\x02\x00\x00\x00{}")
    change(request)
    with grpc.insecure_channel(faults.server.grpc_address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        answers = stub.ModelStreamInfer(iter([request]), timeout=HANG_S)
        try:
            return next((answer.error_message for answer in answers if answer.error_message), "")
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"


def _type(request: Any) -> None:
    request.inputs[0].datatype = "INT32"
    request.raw_input_contents[0] = b"\x01\x00\x00\x00"


def _shape(request: Any) -> None:
    request.inputs[0].shape[:] = [2]
    request.raw_input_contents[0] = b"\x02\x00\x00\x00{}" * 2


def _rank(request: Any) -> None:
    request.inputs[0].shape[:] = [1, 1]


def _negative(request: Any) -> None:
    request.inputs[0].shape[:] = [-1]


def _huge(request: Any) -> None:
    request.inputs[0].shape[:] = [1 << 62]


def _short(request: Any) -> None:
    request.raw_input_contents[0] = b"\xff\xff\xff\x7f{}"


def _missing(request: Any) -> None:
    del request.inputs[:]
    del request.raw_input_contents[:]


def _extra(request: Any) -> None:
    request.inputs.add(name="nothing", datatype="INT32", shape=[1])
    request.raw_input_contents.append(b"\x01\x00\x00\x00")


def _ids(request: Any) -> None:
    request.inputs.add(name="input_ids", datatype="INT32", shape=[-5])
    request.raw_input_contents.append(b"")


@pytest.mark.parametrize("change", [_type, _shape, _rank, _negative, _huge, _short, _missing, _extra, _ids])
def test_a_tensor_that_does_not_fit_the_model_is_refused(faults: Stack, change: Any) -> None:
    words = infer(faults, change)
    assert words
    assert not any(secret in words for secret in SECRETS)
    good = FaultCommand()
    assert is_whole(WAYS["orchestrator"](faults, FAULTS, good), good)


def test_a_client_that_asks_for_some_outputs_gets_those(faults: Stack) -> None:
    """The stub drops the other tensors without the interpreter's lock, so it must not be the last to hold them."""
    got: list[Any] = []
    done = threading.Event()

    def take(result: Any, error: Any) -> None:
        got.append(error or {output.name for output in result.get_response().outputs})
        if error or result.get_response().parameters["triton_final_response"].bool_param:
            done.set()

    for model in (FAULTS.name, *FAULTS.stages):
        got.clear()
        done.clear()
        with triton.InferenceServerClient(faults.server.grpc_address) as client:
            text = triton.InferInput("params", [1], "BYTES")
            params = json.dumps(FAULTS.params_of(FaultCommand(chunks=50, interval_ms=2))).encode()
            text.set_data_from_numpy(np.array([params], dtype=np.object_))
            client.start_stream(take)
            client.async_stream_infer(model, [text], outputs=[triton.InferRequestedOutput("chunk_index")])
            assert done.wait(HANG_S)
            client.stop_stream()
        assert all(names <= {"chunk_index"} for names in got)


def test_a_model_that_fails_to_load_or_unload_harms_no_other(faults: Stack) -> None:
    good = FaultCommand()
    with triton.InferenceServerClient(faults.server.grpc_address) as client:
        with pytest.raises(triton.InferenceServerException):
            client.load_model("broken_load_thinker")
        assert is_whole(WAYS["gateway"](faults, FAULTS, good), good)
        client.load_model("broken_unload_thinker")
        client.unload_model("broken_unload_thinker")
        wait_until(lambda: not client.is_model_ready("broken_unload_thinker"), HANG_S)
        client.load_model("broken_unload_thinker")
        client.unload_model("broken_unload_thinker")
    assert is_whole(WAYS["gateway"](faults, FAULTS, good), good)
