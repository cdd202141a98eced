# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`Transport` over Triton's gRPC API: one bidirectional stream per request, spread over a few TCP connections.

Works on the protobuf messages themselves: `tritonclient`'s result class would search and copy every tensor again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable
from typing import Any, TypeVar

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tritone.errors import Cancelled, Internal, NotFound, Overloaded, TritoneError
from tritone.gateway.transport import Chunk, ChunkStream, GenerationCall, ModelState, ModelStatus, Transport
from tritone.gateway.wire import build_request, is_final, read_chunk, read_error

Message = TypeVar("Message")

# Messages are unbounded because stages bound them. A gRPC server closes a connection whose client pings it more often
# than every five minutes while nothing flows, which a request waiting in a queue does not deserve.
_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.use_local_subchannel_pool", 1),  # without it all channels share one TCP connection
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
_CONTROL_TIMEOUT_S = 3.0
_RETRY_AFTER_S = 2.0
_MAX_LOGGED_CHARS = 2000

_log = logging.getLogger("tritone.gateway.transport")


class _TritonStream(ChunkStream):
    """One `ModelStreamInfer` call that carries one request."""

    def __init__(self, lane: _Lane, call: GenerationCall) -> None:
        self._lane = lane
        self._model = call.model
        self._is_cancelled = False
        self._has_ended = False
        metadata = (("traceparent", call.traceparent),) if call.traceparent else None
        self._rpc = lane.stub.ModelStreamInfer(
            _once(build_request(call, request_id=uuid.uuid4().hex)), metadata=metadata
        )
        lane.add(self)
        # The lane holds the stream until the server has closed it: a call that is collected before is cancelled.
        self._rpc.add_done_callback(lambda _: lane.remove(self))

    async def __anext__(self) -> Chunk:
        if self._has_ended:
            raise StopAsyncIteration
        if self._is_cancelled:
            raise Cancelled("the request was cancelled")
        try:
            while True:
                response = await self._rpc.read()
                if response is grpc.aio.EOF:
                    raise await self._end_of_stream()
                if response.error_message:
                    self._has_ended = True
                    raise self._error_of(response.error_message)
                answer = response.infer_response
                final = is_final(answer)
                if answer.outputs:
                    self._has_ended = final
                    return read_chunk(answer)
                if final:
                    raise Internal("the inference server ended the answer early")
        except asyncio.CancelledError:
            # grpc.aio reports a cancelled call as CancelledError too; only a cancelled task may stay one.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise Cancelled("the request was cancelled") from None
        except grpc.RpcError as error:
            raise self._translate(error) from None
        except ValueError:
            raise Internal("the inference server sent a chunk that cannot be read") from None

    def cancel(self) -> None:
        # A stream that has ended closes by itself. When a cancel meets that end, the 24.10 server keeps something of
        # the model for ever and can no longer unload it.
        if not self._is_cancelled and not self._has_ended:
            self._is_cancelled = True
            self._rpc.cancel()
            self._lane.remove(self)

    def _error_of(self, text: str) -> TritoneError:
        error = read_error(text)
        if isinstance(error, Internal):  # its words go to the log, where the client's answer has none
            fields = {"model": self._model, "triton": text[:_MAX_LOGGED_CHARS]}
            _log.error("the inference server reported an error", extra={"fields": fields})
        return error

    async def _end_of_stream(self) -> TritoneError:
        """Why the server closed the stream before a final chunk."""
        if self._is_cancelled:
            return Cancelled("the request was cancelled")
        status = await self._rpc.code()
        if status is grpc.StatusCode.OK:
            return Internal("the inference server ended the answer early")
        return _from_status(status)

    def _translate(self, error: grpc.RpcError) -> TritoneError:
        if self._is_cancelled:
            return Cancelled("the request was cancelled")
        return _from_status(error.code())


class _Lane:
    """One TCP connection and the streams open on it."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._streams: set[_TritonStream] = set()

    @property
    def num_streams(self) -> int:
        return len(self._streams)

    def add(self, stream: _TritonStream) -> None:
        self._streams.add(stream)

    def remove(self, stream: _TritonStream) -> None:
        self._streams.discard(stream)

    async def close(self) -> None:
        for stream in tuple(self._streams):
            stream.cancel()
        await self._channel.close()


class TritonTransport(Transport):
    """Talks to one tritonserver. Connections are made on first use, inside the running event loop."""

    def __init__(self, address: str, *, num_channels: int = 2) -> None:
        self._address = address
        self._num_channels = num_channels
        self._lanes: list[_Lane] = []

    def open(self, call: GenerationCall) -> ChunkStream:
        return _TritonStream(min(self._connected(), key=lambda lane: lane.num_streams), call)

    async def is_ready(self) -> bool:
        try:
            answer = await self._ask(
                self._stub().ServerReady(service_pb2.ServerReadyRequest(), timeout=_CONTROL_TIMEOUT_S)
            )
        except TritoneError:
            return False
        return bool(answer.ready)

    async def models(self) -> list[ModelStatus]:
        request = service_pb2.RepositoryIndexRequest()
        index = await self._ask(self._stub().RepositoryIndex(request, timeout=_CONTROL_TIMEOUT_S))
        return [_read_status(entry) for entry in index.models]

    async def parameters(self, model: str) -> dict[str, str]:
        request = service_pb2.ModelConfigRequest(name=model)
        answer = await self._ask(self._stub().ModelConfig(request, timeout=_CONTROL_TIMEOUT_S))
        return {key: value.string_value for key, value in answer.config.parameters.items()}

    async def close(self) -> None:
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            await lane.close()

    def _connected(self) -> list[_Lane]:
        if not self._lanes:
            self._lanes = [_Lane(self._address) for _ in range(self._num_channels)]
        return self._lanes

    def _stub(self) -> Any:
        return self._connected()[0].stub

    @staticmethod
    async def _ask(rpc: Awaitable[Message]) -> Message:
        try:
            return await rpc
        except grpc.RpcError as error:
            raise _from_status(error.code()) from None


async def _once(request: Any) -> Any:
    yield request


def _read_status(entry: Any) -> ModelStatus:
    state = ModelState(entry.state) if entry.state in ModelState.__members__ else ModelState.UNAVAILABLE
    # A model that was unloaded on purpose says "unloaded"; one that was never loaded says nothing.
    has_failed = state is ModelState.UNAVAILABLE and entry.reason not in ("", "unloaded")
    return ModelStatus(entry.name, state, has_failed)


def _from_status(status: grpc.StatusCode) -> TritoneError:
    """Our error for a gRPC status. The server's text stays out of it."""
    if status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED):
        return Overloaded("the inference server cannot be reached, try again", retry_after_s=_RETRY_AFTER_S)
    if status is grpc.StatusCode.NOT_FOUND:
        return NotFound("the inference server does not have this model")
    return Internal("the inference server failed to process the request")
