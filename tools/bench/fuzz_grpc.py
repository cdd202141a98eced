# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to the models themselves through Triton's gRPC port: types, shapes, counts, names, params.

What must hold: each request ends with an error or a final response in time, and a good one works afterwards.
"""

from __future__ import annotations

import asyncio
import json
import random
import struct
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritone.tools.bench.fuzz import Announce, Fuzz, Part

_CLIENTS = 4
_HANG_S = 30.0
_GOOD_EVERY = 100
_DTYPES = ("BYTES", "INT32", "INT64", "FP32", "FP16", "BOOL", "UINT8", "", "STRING", "bytes")
_SHAPES: tuple[list[int], ...] = (
    [1],
    [0],
    [-1],
    [],
    [1, 1],
    [2],
    [1 << 31],
    [1 << 62],
    [-(1 << 62)],
    [1 << 32, 1 << 32],
    [1] * 100,
)
_FIELDS = (
    "prompt messages temperature top_p n stop seed logit_bias response_format cancel accept log_id logprobs "
    "stop_token_ids tools unknown chat_template_kwargs"
).split()
_PARAMS: dict[str, Any] = {"prompt": "a", "max_tokens": 1}


def _bytes_tensor(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def build(rng: random.Random, model: str) -> Any:
    """One request, broken at up to three places."""
    from tritonclient.grpc import service_pb2

    request = service_pb2.ModelInferRequest(model_name=model, id=rng.choice(["", "1", "same", "x" * 2000]))
    request.parameters["triton_enable_empty_final_response"].bool_param = True
    tensors: list[tuple[str, str, list[int], bytes]] = [("params", "BYTES", [1], _bytes_tensor(_params(rng)))]
    if rng.random() < 0.3:
        ids = [rng.choice([0, 1, -1, 5, 1 << 30, -(1 << 31)]) for _ in range(rng.choice([1, 3, 2000]))]
        tensors.append(("input_ids", "INT32", [len(ids)], struct.pack(f"<{len(ids)}i", *ids)))
    for _ in range(rng.randint(0, 3)):
        _break(rng, request, tensors)
    for name, dtype, shape, data in tensors:
        request.inputs.add(name=name, datatype=dtype, shape=shape)
        request.raw_input_contents.append(data)
    if rng.random() < 0.1 and request.raw_input_contents:
        del request.raw_input_contents[-1]
    if rng.random() < 0.1:
        request.raw_input_contents.append(rng.randbytes(8))
    return request


def _params(rng: random.Random) -> bytes:
    odd: list[Any] = [None, True, -1, 1 << 70, 1e308, "x", [], {}, [None], "\u0000", "x" * 5000, {"a": {"b": []}}]
    params = dict(_PARAMS)
    for _ in range(rng.randint(0, 2)):
        params[rng.choice(_FIELDS)] = rng.choice(odd)
    text = json.dumps(params).encode()
    kind = rng.randrange(12)
    if kind == 0:
        return rng.choice([b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"prompt":NaN}', b'{"a":' * 5000, b"[" * 100_000])
    if kind == 1:
        position = rng.randrange(len(text))
        return text[:position] + rng.randbytes(3) + text[position + 1 :]
    return text


def _break(rng: random.Random, request: Any, tensors: list[tuple[str, str, list[int], bytes]]) -> None:
    index = rng.randrange(len(tensors)) if tensors else -1
    kind = rng.randrange(10)
    if kind == 0 and index >= 0:
        del tensors[index]
    elif kind == 1:
        tensors.append((rng.choice(["unknown", "", "params", "x" * 300, "text"]), "INT32", [1], b"\0\0\0\0"))
    elif kind == 2 and index >= 0:
        name, _, shape, data = tensors[index]
        tensors[index] = (name, rng.choice(_DTYPES), shape, data)
    elif kind == 3 and index >= 0:
        name, dtype, _, data = tensors[index]
        tensors[index] = (name, dtype, rng.choice(_SHAPES), data)
    elif kind == 4 and index >= 0:
        name, dtype, shape, data = tensors[index]
        changed = rng.choice(
            [b"", data[:3], data[:-1], data + b"\0", struct.pack("<I", 0xFFFFFFFF) + data[4:], data * 3]
        )
        tensors[index] = (name, dtype, shape, changed)
    elif kind == 5:
        key = rng.choice(
            ["sequence_id", "sequence_start", "priority", "timeout", "triton_final_response", "headers", "x"]
        )
        request.parameters[key].int64_param = rng.choice([0, 1, -1, 1 << 62])
    elif kind == 6:
        request.model_version = rng.choice(["1", "2", "-1", "x", "../1", "9" * 50])
    elif kind == 7:
        request.model_name = rng.choice([request.model_name, "", "../x", "nope", "x" * 3000, "a\0b"])
    elif kind == 8:
        request.outputs.add(name=rng.choice(["text", "nope", "", "text"]))
    elif kind == 9 and index >= 0:
        tensors[index] = (*tensors[index][:3], rng.randbytes(rng.choice([1, 64, 70_000])))


async def fuzz_grpc(part: Part, fuzz: Fuzz, address: str, pipeline: str, announce: Announce) -> None:
    """Send `fuzz.cases` requests to the orchestrator and as many to its stage."""
    import grpc
    from tritonclient.grpc import service_pb2_grpc

    models = (pipeline, f"{pipeline}_thinker")
    plan = iter([(model, number) for number in range(fuzz.cases) for model in models])
    deadline = time.monotonic() + fuzz.seconds
    options = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)

        async def client() -> None:
            for model, number in plan:
                if time.monotonic() > deadline:
                    return
                request = build(random.Random(f"{fuzz.seed} {model} {number}"), model)
                answer = await _send(stub, request)
                part.num_cases += 1
                part.answers[answer] += 1
                if answer in ("hangs", "UNAVAILABLE"):
                    part.faults.append(f"{model} #{number}: {answer}")
                if part.num_cases % _GOOD_EVERY == 0:
                    announce(f"gRPC … {part.num_cases} of {2 * fuzz.cases}, {len(part.faults)} faults")
                    for name in models:
                        if (good := await _send(stub, _good(name))) != "final":
                            part.faults.append(f"a good request to {name} after {model} #{number}: {good}")

        await asyncio.gather(*(client() for _ in range(_CLIENTS)))


def _good(model: str) -> Any:
    from tritonclient.grpc import service_pb2

    request = service_pb2.ModelInferRequest(model_name=model)
    request.parameters["triton_enable_empty_final_response"].bool_param = True
    request.inputs.add(name="params", datatype="BYTES", shape=[1])
    request.raw_input_contents.append(_bytes_tensor(json.dumps(_PARAMS).encode()))
    return request


async def _send(stub: Any, request: Any) -> str:
    """How a request ended: "final", "error", a gRPC status, or "hangs"."""
    import grpc

    async def once() -> Any:
        yield request

    rpc = stub.ModelStreamInfer(once())
    try:
        async with asyncio.timeout(_HANG_S):
            while (message := await rpc.read()) is not grpc.aio.EOF:
                if message.error_message:
                    return "error"
                parameters = message.infer_response.parameters
                if "triton_final_response" in parameters and parameters["triton_final_response"].bool_param:
                    return "final"
            status = await rpc.code()
            return "ended" if status is grpc.StatusCode.OK else str(status.name)
    except TimeoutError:
        rpc.cancel()
        return "hangs"
    except grpc.RpcError as error:
        return str(error.code().name)
