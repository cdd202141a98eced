# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One request, by each way a client has, and what came back in one form for all of them."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import tritonclient.grpc as triton
from faults.fault_command import FaultCommand
from faults.registry import PipelineUnderTest

from tritone.errors import from_wire
from tritone.tools.stack import Stack

HANG_S = 60.0
AFTER_FINAL_S = 0.2  # how long a stream is watched for what must not come


@dataclass
class Outcome:
    """What a client saw."""

    text: str = ""
    code: str | None = None  # of the error
    status: int | None = None  # of HTTP
    finals: int = 1
    after_final: int = 0
    indices: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    raw: str = ""


def call_triton(address: str, model: str, params: dict[str, Any], *, request_id: str = "") -> Outcome:
    """A request on a gRPC stream, read beyond its final response."""
    text = triton.InferInput("params", [1], "BYTES")
    text.set_data_from_numpy(np.array([json.dumps(params).encode()], dtype=np.object_))
    arrived: queue.Queue[tuple[Any, Any]] = queue.Queue()
    seen = Outcome(finals=0)
    with triton.InferenceServerClient(address) as client:
        client.start_stream(lambda result, error: arrived.put((result, error)))
        client.async_stream_infer(model, [text], request_id=request_id, enable_empty_final_response=True)
        timeout_s = HANG_S
        while True:
            try:
                result, error = arrived.get(timeout=timeout_s)
            except queue.Empty:
                break
            seen.after_final += bool(seen.finals)
            if error is not None:
                # An error is final: Triton sends no flag with it.
                seen.finals += 1
                seen.raw += error.message()
                seen.code = from_wire(error.message()).code
            else:
                _read(seen, result)
            timeout_s = AFTER_FINAL_S if seen.finals else HANG_S
        client.stop_stream()
    return seen


def _read(seen: Outcome, result: Any) -> None:
    response = result.get_response()
    seen.finals += response.parameters["triton_final_response"].bool_param
    tensors = {output.name: result.as_numpy(output.name).reshape(-1)[0] for output in response.outputs}
    if not tensors:
        return
    seen.indices.append(int(tensors["chunk_index"]))
    seen.text += tensors["text"].decode() if "text" in tensors else ""
    seen.raw += str(tensors)
    if tensors.get("chunk_kind") == b"failed":
        seen.code = from_wire(tensors["details"].decode()).code


def call_gateway(
    stack: Stack,
    pipeline: PipelineUnderTest,
    command: FaultCommand,
    *,
    stream: bool,
    headers: dict[str, str] | None = None,
) -> Outcome:
    """A request to the gateway."""
    body = pipeline.body_of(command) | {"stream": stream}
    answer = httpx.post(stack.gateway.url + pipeline.route, json=body, headers=headers, timeout=HANG_S)
    seen = Outcome(status=answer.status_code, headers=dict(answer.headers), raw=answer.text)
    if not answer.headers["content-type"].startswith("text/event-stream"):
        whole = answer.json()
        if "error" in whole:
            seen.code = whole["error"]["code"]
        else:
            seen.text = pipeline.text_of(whole)
        return seen
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    seen.finals = lines.count("[DONE]")
    for line in lines:
        if line == "[DONE]":
            continue
        event = json.loads(line)
        if "error" in event:
            seen.code = event["error"]["code"]
            seen.finals += 1
        else:
            seen.after_final += bool(seen.code)
            seen.text += pipeline.text_of(event)
    return seen


Way = Callable[[Stack, PipelineUnderTest, FaultCommand], Outcome]

WAYS: dict[str, Way] = {
    "orchestrator": lambda stack, pipeline, command: call_triton(
        stack.server.grpc_address, pipeline.name, pipeline.params_of(command)
    ),
    "stage": lambda stack, pipeline, command: call_triton(
        stack.server.grpc_address, pipeline.stages[0], pipeline.params_of(command)
    ),
    "gateway": lambda stack, pipeline, command: call_gateway(stack, pipeline, command, stream=False),
    "gateway_stream": lambda stack, pipeline, command: call_gateway(stack, pipeline, command, stream=True),
}


def wait_until(is_so: Callable[[], bool], timeout_s: float) -> float:
    """Seconds until `is_so`. Raises AssertionError when that takes longer than `timeout_s`."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < timeout_s, "waited too long"
        time.sleep(0.02)
    return time.monotonic() - began
