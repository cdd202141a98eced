# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`Transport` over Triton's gRPC API: one bidirectional stream per request, spread over a few TCP connections.

Works on the protobuf messages themselves: `tritonclient`'s result class would search and copy every tensor again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tritone.ensembles.protocol import CANCEL_KEY, ChunkKind
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
# How long a cancelled stream may take to be accepted, so that it can be asked to end, and then to end.
_ACCEPT_S = 0.3
_GOODBYE_S = 1.0
_CLOSE_S = 1.5

_log = logging.getLogger("tritone.gateway.transport")


class _TritonStream(ChunkStream):
    """One `ModelStreamInfer` call that carries one request and, when it is cancelled, a second one that says so.

    The 24.10 server does not survive every gRPC cancel: when many meet the ends of their streams, all of it goes down.
    So a stream is asked to end, by the handle that its ACCEPTED chunk gave, and cancelled only when it does not. One
    task reads the call to its end, whoever has gone in the meantime.
    """

    def __init__(self, lane: _Lane, call: GenerationCall) -> None:
        self._lane = lane
        self._model = call.model
        self._handle: str | None = None
        self._is_cancelled = False
        self._has_ended = False
        self._arrived: deque[Chunk | TritoneError] = deque()
        self._loop = asyncio.get_running_loop()
        self._reader: asyncio.Future[None] | None = None
        # What the server hears last: the request to cancel, or nothing.
        self._last_word: asyncio.Future[Any | None] = self._loop.create_future()
        metadata = (("traceparent", call.traceparent),) if call.traceparent else None
        self._rpc = lane.stub.ModelStreamInfer(self._requests(call), metadata=metadata)
        lane.add(self)
        # The lane holds the task until the server has closed the stream.
        self._task = self._loop.create_task(self._read())
        lane.keep(self._task)

    async def __anext__(self) -> Chunk:
        while True:
            if self._is_cancelled:
                raise Cancelled("the request was cancelled")
            if self._arrived:
                arrived = self._arrived.popleft()
                if isinstance(arrived, TritoneError):
                    raise arrived
                return arrived
            if self._has_ended:
                raise StopAsyncIteration
            self._reader = self._loop.create_future()
            try:
                await self._reader
            except asyncio.CancelledError:
                self.cancel()
                raise
            finally:
                self._reader = None

    def cancel(self) -> None:
        if self._is_cancelled or self._has_ended:
            return
        self._is_cancelled = True
        self._lane.remove(self)
        self._wake()
        self._say_goodbye()
        # A call that is not accepted has nothing to be asked by.
        self._loop.call_later(_GOODBYE_S if self._handle else _ACCEPT_S, self.abort)

    def abort(self) -> None:
        """Cancel the gRPC call itself, unless it has ended."""
        if not self._has_ended:
            self._is_cancelled = True
            self._wake()
            self._rpc.cancel()

    async def _requests(self, call: GenerationCall) -> AsyncIterator[Any]:
        yield build_request(call, request_id=uuid.uuid4().hex)
        last_word = await self._last_word
        if last_word is not None:
            yield last_word

    def _say_goodbye(self) -> None:
        if self._handle is not None and not self._last_word.done():
            params = json.dumps({CANCEL_KEY: self._handle}).encode()
            call = GenerationCall(self._model, params)
            self._last_word.set_result(build_request(call, request_id=uuid.uuid4().hex))

    async def _read(self) -> None:
        """Read the call to its end."""
        try:
            while (response := await self._rpc.read()) is not grpc.aio.EOF:
                if not self._has_ended:
                    self._take(response)
            if not self._has_ended:
                self._end(await self._end_of_stream())
        except grpc.RpcError as error:
            self._end(_from_status(error.code()))
        except asyncio.CancelledError:
            # grpc.aio reports a cancelled call so.
            self._end(Cancelled("the request was cancelled"))
        finally:
            self._lane.remove(self)
            if not self._last_word.done():
                self._last_word.set_result(None)

    def _take(self, response: Any) -> None:
        if response.error_message:
            self._end(self._error_of(response.error_message))
            return
        answer = response.infer_response
        final = is_final(answer)
        if not answer.outputs:
            if final:
                self._end(Internal("the inference server ended the answer early"))
            return
        try:
            chunk = read_chunk(answer)
        except TritoneError as error:
            self._end(error)
            return
        except ValueError:
            self._end(Internal("the inference server sent a chunk that cannot be read"))
            if not final:
                self._rpc.cancel()
            return
        self._arrived.append(chunk)
        if chunk.kind is ChunkKind.ACCEPTED:
            self._learn_handle(chunk)
        if final:
            self._end(None)
        self._wake()

    def _learn_handle(self, chunk: Chunk) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            self._handle = str(json.loads(chunk.details)["handle"])
        if self._is_cancelled:
            self._say_goodbye()

    def _end(self, error: TritoneError | None) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        if error is not None:
            self._arrived.append(error)
        if not self._last_word.done():
            self._last_word.set_result(None)
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _error_of(self, text: str) -> TritoneError:
        error = read_error(text)
        if isinstance(error, Internal):  # its words go to the log, where the client's answer has none
            fields = {"model": self._model, "triton": text[:_MAX_LOGGED_CHARS]}
            _log.error("the inference server reported an error", extra={"fields": fields})
        return error

    async def _end_of_stream(self) -> TritoneError:
        """Why the server closed the stream before a final chunk."""
        status = await self._rpc.code()
        if status is grpc.StatusCode.OK:
            return Internal("the inference server ended the answer early")
        return _from_status(status)


class _Lane:
    """One TCP connection and the streams open on it."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._streams: set[_TritonStream] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def num_streams(self) -> int:
        return len(self._streams)

    def add(self, stream: _TritonStream) -> None:
        self._streams.add(stream)

    def remove(self, stream: _TritonStream) -> None:
        self._streams.discard(stream)

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold a stream's reading task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for stream in tuple(self._streams):
            stream.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        await self._channel.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)


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
