# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The Triton transport against a gRPC server that speaks Triton's protocol."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable

import pytest
from doubles.fake_grpc_triton import (
    FakeGrpcTriton,
    bytes_tensor,
    chunk_message,
    empty_final_message,
    error_message,
)
from doubles.fake_transport import text_script

from tritone.errors import Cancelled, Internal, InvalidRequest, NotFound, Overloaded, TritoneError, to_wire
from tritone.gateway.transport import Chunk, ChunkStream, GenerationCall, ModelState, ModelStatus
from tritone.gateway.triton_transport import TritonTransport

CHUNKS = [step for step in text_script(["Grüße", " 🌍"], accept=True) if isinstance(step, Chunk)]
MESSAGES = [chunk_message(chunk, is_final=chunk is CHUNKS[-1]) for chunk in CHUNKS]
CALL = GenerationCall("m", b'{"prompt":"x"}')


@pytest.fixture
async def triton() -> AsyncIterator[FakeGrpcTriton]:
    server = FakeGrpcTriton(messages=MESSAGES)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def transport(triton: FakeGrpcTriton) -> AsyncIterator[TritonTransport]:
    transport = TritonTransport(f"127.0.0.1:{triton.port}")
    yield transport
    await transport.close()


async def read_all(stream: ChunkStream) -> list[Chunk]:
    return [chunk async for chunk in stream]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(2):
        while not condition():
            await asyncio.sleep(0.005)


async def test_chunks_arrive_as_the_stage_sent_them(transport: TritonTransport) -> None:
    assert await read_all(transport.open(CALL)) == CHUNKS


async def test_the_request_on_the_wire(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    traceparent = f"00-{'a' * 32}-{'b' * 16}-01"
    await read_all(transport.open(GenerationCall("m", b"{}", (1, 2, 3), traceparent)))
    request = triton.requests[0]
    assert request.model_name == "m"
    assert [(tensor.name, tensor.datatype, list(tensor.shape)) for tensor in request.inputs] == [
        ("params", "BYTES", [1]),
        ("input_ids", "INT32", [3]),
    ]
    assert list(request.raw_input_contents) == [bytes_tensor(b"{}"), struct.pack("<3i", 1, 2, 3)]
    assert request.parameters["triton_enable_empty_final_response"].bool_param
    assert triton.metadata[0]["traceparent"] == traceparent


async def test_request_ids_are_minted_and_differ(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    for _ in range(2):
        await read_all(transport.open(CALL))
    first, second = (request.id for request in triton.requests)
    assert first and second and first != second


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (to_wire(InvalidRequest("bad", field="top_k")), InvalidRequest),
        ("in ensemble: " + to_wire(Overloaded("full", retry_after_s=3)), Overloaded),
        ("Request for unknown model: 'm' is not found", NotFound),
        ("Request for unknown model: 'm' version 1 is not at ready state", Overloaded),
        ("Failed to process the request(s): /opt/x.py line 3", Internal),
    ],
)
async def test_errors_keep_their_kind(
    triton: FakeGrpcTriton, transport: TritonTransport, text: str, kind: type[TritoneError]
) -> None:
    triton.messages = [error_message(text)]
    with pytest.raises(kind) as caught:
        await read_all(transport.open(CALL))
    assert "/opt" not in caught.value.message


@pytest.mark.parametrize("tail", [[], [empty_final_message()]])
async def test_an_answer_without_its_end_is_an_error(
    triton: FakeGrpcTriton, transport: TritonTransport, tail: list[object]
) -> None:
    triton.messages = [*MESSAGES[:2], *tail]
    stream = transport.open(CALL)
    assert [await anext(stream), await anext(stream)] == CHUNKS[:2]
    with pytest.raises(Internal):
        await anext(stream)


async def test_a_broken_tensor_is_an_error(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    message = chunk_message(CHUNKS[1], is_final=False)
    message.infer_response.raw_output_contents[1] = struct.pack("<I", 99) + b"x"
    triton.messages = [message]
    with pytest.raises(Internal):
        await read_all(transport.open(CALL))


async def test_cancel_before_the_first_chunk_reaches_the_server(
    triton: FakeGrpcTriton, transport: TritonTransport
) -> None:
    triton.messages, triton.hangs = (), True
    stream = transport.open(CALL)
    reader = asyncio.create_task(read_all(stream))
    await until(lambda: bool(triton.requests))
    stream.cancel()
    stream.cancel()
    with pytest.raises(Cancelled):
        await reader
    await until(lambda: triton.num_cancelled == 1)


async def test_cancel_between_chunks_reaches_the_server(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    triton.messages, triton.hangs = MESSAGES[:2], True
    stream = transport.open(CALL)
    await anext(stream)
    stream.cancel()
    with pytest.raises(Cancelled):
        await anext(stream)
    await until(lambda: triton.num_cancelled == 1)


async def test_a_cancelled_stream_is_asked_to_end(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    """No gRPC cancel: it can take the 24.10 server down."""
    triton.messages, triton.hangs, triton.obeys = MESSAGES[:2], True, True
    stream = transport.open(CALL)
    accepted = await anext(stream)
    await anext(stream)
    stream.cancel()
    with pytest.raises(Cancelled):
        await anext(stream)
    await until(lambda: len(triton.requests) == 2)
    handle = json.loads(accepted.details)["handle"]
    assert json.loads(triton.requests[1].raw_input_contents[0][4:]) == {"cancel": handle}
    await transport.close()
    assert triton.num_cancelled == 0


async def test_a_cancelled_reader_cancels_the_request(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    triton.messages, triton.hangs = (), True
    reader = asyncio.create_task(read_all(transport.open(CALL)))
    await until(lambda: bool(triton.requests))
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await until(lambda: triton.num_cancelled == 1)


async def test_closing_the_transport_cancels_what_runs(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    triton.messages, triton.hangs = (), True
    reader = asyncio.create_task(read_all(transport.open(CALL)))
    await until(lambda: bool(triton.requests))
    await transport.close()
    with pytest.raises(Cancelled):
        await reader


async def test_a_server_that_goes_away_is_overloaded(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    triton.messages, triton.hangs = MESSAGES[:1], True
    stream = transport.open(CALL)
    await anext(stream)
    await triton.stop()
    with pytest.raises(Overloaded) as caught:
        await anext(stream)
    assert caught.value.retry_after_s
    assert not await transport.is_ready()
    with pytest.raises(Overloaded):
        await transport.models()
    with pytest.raises(Overloaded):
        await read_all(transport.open(CALL))


async def test_it_reconnects(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    assert await transport.is_ready()
    await triton.stop()
    assert not await transport.is_ready()
    await triton.start()
    async with asyncio.timeout(5):
        while not await transport.is_ready():
            await asyncio.sleep(0.05)
    assert await read_all(transport.open(CALL)) == CHUNKS


async def test_models_and_their_parameters(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    triton.states = {
        "a": ("READY", ""),
        "b": ("UNAVAILABLE", "unloaded"),
        "c": ("UNAVAILABLE", "Internal: failed to load"),
        "d": ("", ""),
        "e": ("LOADING", ""),
    }
    triton.configs = {"a": {"tritone_role": "stage"}}
    assert await transport.models() == [
        ModelStatus("a", ModelState.READY),
        ModelStatus("b", ModelState.UNAVAILABLE),
        ModelStatus("c", ModelState.UNAVAILABLE, has_failed=True),
        ModelStatus("d", ModelState.UNAVAILABLE),
        ModelStatus("e", ModelState.LOADING),
    ]
    assert await transport.parameters("a") == {"tritone_role": "stage"}
    with pytest.raises(NotFound) as caught:
        await transport.parameters("zz")
    assert "/srv" not in caught.value.message


async def test_streams_spread_over_the_connections(triton: FakeGrpcTriton, transport: TritonTransport) -> None:
    triton.messages, triton.hangs = MESSAGES[:1], True
    streams = [transport.open(CALL) for _ in range(4)]
    for stream in streams:
        await anext(stream)
    assert [lane.num_streams for lane in transport._connected()] == [2, 2]
    for stream in streams:
        stream.cancel()
    assert [lane.num_streams for lane in transport._connected()] == [0, 0]
