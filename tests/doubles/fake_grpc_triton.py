# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server that speaks Triton's protocol and answers from a script: for tests of the gateway's transport."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tritone.ensembles.protocol import (
    CHOICE_INDEX,
    CHUNK_INDEX,
    CHUNK_KIND,
    DETAILS,
    FINISH_REASON,
    TEXT,
    TOKEN_IDS,
)
from tritone.gateway.transport import Chunk


def bytes_tensor(value: bytes) -> bytes:
    """One BYTES element as it travels."""
    return struct.pack("<I", len(value)) + value


def chunk_message(chunk: Chunk, *, is_final: bool) -> Any:
    """The stream message a stage's chunk arrives as. Empty tensors are left out."""
    answer = service_pb2.ModelInferResponse(model_name="m")
    answer.parameters["triton_final_response"].bool_param = is_final

    def add(name: str, datatype: str, length: int, data: bytes) -> None:
        answer.outputs.add(name=name, datatype=datatype, shape=[length])
        answer.raw_output_contents.append(data)

    add(CHUNK_INDEX.name, "INT32", 1, struct.pack("<i", chunk.chunk_index))
    add(CHUNK_KIND.name, "BYTES", 1, bytes_tensor(chunk.kind.value.encode()))
    if chunk.text:
        add(CHOICE_INDEX.name, "INT32", 1, struct.pack("<i", chunk.choice_index))
        add(TEXT.name, "BYTES", 1, bytes_tensor(chunk.text.encode()))
        add(TOKEN_IDS.name, "INT32", chunk.num_tokens, struct.pack(f"<{chunk.num_tokens}i", *range(chunk.num_tokens)))
    if chunk.finish_reason:
        add(FINISH_REASON.name, "BYTES", 1, bytes_tensor(chunk.finish_reason.encode()))
    if chunk.details:
        add(DETAILS.name, "BYTES", 1, bytes_tensor(chunk.details))
    return service_pb2.ModelStreamInferResponse(infer_response=answer)


def error_message(text: str) -> Any:
    """The stream message of an error."""
    return service_pb2.ModelStreamInferResponse(error_message=text)


def empty_final_message() -> Any:
    """A final response without tensors."""
    answer = service_pb2.ModelInferResponse(model_name="m")
    answer.parameters["triton_final_response"].bool_param = True
    return service_pb2.ModelStreamInferResponse(infer_response=answer)


@dataclass
class FakeGrpcTriton(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """Sends `messages` and closes the stream; `hangs` keeps it open after them, `pause_s` waits before each.

    A second request on a stream that is kept open is its cancel: `obeys` makes it end the first.
    """

    messages: Sequence[Any] = ()
    hangs: bool = False
    obeys: bool = False
    pause_s: float = 0.0
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    states: dict[str, tuple[str, str]] = field(default_factory=dict)  # model → state, reason
    requests: list[Any] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    num_cancelled: int = 0
    port: int = 0
    _server: Any = None

    async def start(self) -> str:
        """Listen on a free port; gives the address."""
        self._server = grpc.aio.server()
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()
        return f"127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Stop at once."""
        await self._server.stop(None)

    async def ServerReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerReadyResponse(ready=True)

    async def RepositoryIndex(self, request: Any, context: Any) -> Any:
        index = service_pb2.RepositoryIndexResponse()
        for name, (state, reason) in self.states.items():
            index.models.add(name=name, version="1", state=state, reason=reason)
        return index

    async def ModelConfig(self, request: Any, context: Any) -> Any:
        if request.name not in self.configs:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such model at /srv/models")
        answer = service_pb2.ModelConfigResponse()
        for key, value in self.configs[request.name].items():
            answer.config.parameters[key].string_value = value
        return answer

    async def ModelStreamInfer(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        try:
            self.metadata.append({key: value for key, value in context.invocation_metadata()})
            self.requests.append(await anext(request_iterator))
            for message in self.messages:
                if self.pause_s:
                    await asyncio.sleep(self.pause_s)
                yield message
            if self.hangs and self.obeys:
                self.requests.append(await anext(request_iterator))
                yield empty_final_message()
            elif self.hangs:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise
