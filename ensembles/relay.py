# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The rules of relaying, once for every orchestrator: accepted chunk, handles, cancel, errors, order, final once.

An orchestrator subclasses `RelayModel` and writes `route`; it never touches Triton's requests or responses.
Knows nothing of what the chunks say.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tritone.backends.core import protocol
from tritone.backends.core.call_gate import CallGate
from tritone.backends.core.chunk import Chunk, text_array
from tritone.backends.core.decoupled_model import DecoupledModel
from tritone.backends.core.protocol import ChunkKind
from tritone.backends.core.triton_sender import TritonSender
from tritone.errors import Cancelled, Internal, Overloaded, TritoneError, from_wire

logger = logging.getLogger(__name__)

STREAM_ENDED_EARLY = "a stage of this pipeline stopped before the answer was complete"


class StageChunk:
    """One response of a stage: its tensors, and its kind and details read on demand."""

    def __init__(self, response: Any) -> None:
        self.tensors: dict[str, Any] = {tensor.name(): tensor for tensor in response.output_tensors()}

    @property
    def kind(self) -> ChunkKind:
        return ChunkKind(self._text(protocol.CHUNK_KIND.name))

    @property
    def details(self) -> dict[str, Any]:
        details: dict[str, Any] = json.loads(self._text(protocol.DETAILS.name))
        return details

    def _text(self, name: str) -> str:
        value: bytes = self.tensors[name].as_numpy().reshape(-1)[0]
        return value.decode()


class StageCall:
    """One call of a stage. Owns the stage's handle, and passes a cancel on as soon as that is known."""

    def __init__(self, pb_utils: Any, gate: CallGate, model: str, timeout_s: float) -> None:
        self._pb_utils = pb_utils
        self._gate = gate
        self._model = model
        self._timeout_us = int(timeout_s * 1e6)
        self._lock = threading.Lock()
        self._handle: str | None = None
        self._is_cancelled = False

    def run(self, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Iterator[StageChunk]:
        """Yield the stage's chunks, ACCEPTED included. Raises the stage's error."""
        responses = self._execute({**params, protocol.ACCEPT_KEY: True}, arrays)
        error: TritoneError | None = None
        is_at_end = False
        try:
            for response in responses:
                if response.has_error():
                    error = from_wire(response.error().message())
                    continue
                chunk = StageChunk(response)
                # The empty response that only carries Triton's final flag.
                if not chunk.tensors:
                    continue
                if chunk.kind is ChunkKind.FAILED:
                    error = from_wire(json.dumps(chunk.details))
                    continue
                if self._handle is None and chunk.kind is ChunkKind.ACCEPTED:
                    self._learn_handle(chunk.details["handle"])
                yield chunk
            is_at_end = True
        finally:
            # Letting go of an iterator before its end blocks until the stage ends by itself. One that has ended must
            # not be iterated again: it starts from its first response.
            if not is_at_end:
                self.cancel()
                for _ in responses:
                    pass
            self._gate.hold(responses)
        if error is not None:
            try:
                raise error
            finally:
                # Else the exception and this frame hold each other, and Triton's objects with them.
                del error

    def cancel(self) -> None:
        """Ask the stage to stop, now or when it has said its handle."""
        with self._lock:
            self._is_cancelled = True
            handle = self._handle
        if handle is not None:
            self._send_cancel(handle)

    def _learn_handle(self, handle: str) -> None:
        with self._lock:
            self._handle = handle
            is_cancelled = self._is_cancelled
        if is_cancelled:
            self._send_cancel(handle)

    def _send_cancel(self, handle: str) -> None:
        responses = self._execute({protocol.CANCEL_KEY: handle}, {})
        for response in responses:
            if response.has_error():
                logger.error("%s refused a cancel", self._model)
        self._gate.hold(responses)

    def _execute(self, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Iterator[Any]:
        tensors = {protocol.PARAMS.name: text_array(json.dumps(params)), **arrays}
        request = self._pb_utils.InferenceRequest(
            model_name=self._model,
            requested_output_names=[spec.name for spec in protocol.THINKER_OUTPUTS],
            inputs=[self._pb_utils.Tensor(name, array) for name, array in tensors.items()],
            timeout=self._timeout_us,
        )
        responses: Iterator[Any] = self._gate.call(lambda: request.exec(decoupled=True))
        return responses


class ClientStream:
    """A client's request inside an orchestrator. Owns its end; used from one thread but `cancel`."""

    def __init__(
        self, pb_utils: Any, gate: CallGate, sender: TritonSender, handle: str, stage_timeout_s: float
    ) -> None:
        self._pb_utils = pb_utils
        self._gate = gate
        self._sender = sender
        self._handle = handle
        self._stage_timeout_s = stage_timeout_s
        self._calls: list[StageCall] = []
        self._lock = threading.Lock()
        self.is_cancelled = False
        self.is_ended = False

    def call(
        self, model: str, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]
    ) -> Iterator[StageChunk]:
        """Call a stage; a cancel of this stream reaches it. Yields its chunks, ACCEPTED included."""
        call = StageCall(self._pb_utils, self._gate, model, self._stage_timeout_s)
        with self._lock:
            if self.is_cancelled:
                raise Cancelled("cancelled before the stage was called")
            self._calls.append(call)
        try:
            yield from call.run(params, arrays)
        finally:
            with self._lock:
                self._calls.remove(call)

    def accept(self) -> None:
        """Tell the client its handle."""
        self._sender.send_chunk(Chunk(ChunkKind.ACCEPTED, details={"handle": self._handle}), is_final=False)

    def forward(self, chunk: StageChunk, *, is_final: bool) -> None:
        """Send a stage's chunk on under this stream's own number. Tensors are passed, not copied."""
        passed = [tensor for name, tensor in chunk.tensors.items() if name != protocol.CHUNK_INDEX.name]
        self.is_ended = is_final
        self._sender.send_tensors(passed, is_final=is_final)

    def fail(self, error: TritoneError) -> None:
        """End with an error, unless the stream has ended."""
        if not self.is_ended:
            self.is_ended = True
            self._sender.send_error(error)

    def cancel(self) -> None:
        """Stop every stage that works for this stream. Called from another thread."""
        with self._lock:
            self.is_cancelled = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()


class RelayModel(DecoupledModel):
    """Base of every orchestrator. A subclass writes `route`.

    Settings: `stages` (role → model name), `max_streams`, `stage_timeout_s`. `route` runs in a thread of its own for
    each request, ends the stream with `forward(..., is_final=True)` or an exception, and iterates every call to its
    end. A stream that `route` leaves open ends with `Internal`.
    """

    def load(self, settings: dict[str, Any], args: dict[str, str]) -> None:
        """Prepare the stream table. The threads come with the first request: calls from older ones hang."""
        self.stages: dict[str, str] = settings["stages"]
        # One thread each; a stage bounds its own queue, this only keeps threads from growing without end.
        self._max_streams = int(settings["max_streams"])
        self._stage_timeout_s = float(settings["stage_timeout_s"])
        self._streams: dict[str, ClientStream] = {}
        self._workers = ThreadPoolExecutor(self._max_streams, thread_name_prefix="stream")
        self._cancels = ThreadPoolExecutor(4, thread_name_prefix="cancel")

    def begin(self, handle: str, params: dict[str, Any], request: Any, sender: TritonSender) -> None:
        """Give the request its thread, or refuse it when all are taken."""
        if len(self._streams) >= self._max_streams:
            raise Overloaded(f"all {self._max_streams} streams of this pipeline are in use", retry_after_s=1.0)
        arrays = {}
        input_ids = self.pb_utils.get_input_tensor_by_name(request, protocol.INPUT_IDS.name)
        if input_ids is not None:
            # A copy: the request's own memory is released when `execute` returns.
            arrays[protocol.INPUT_IDS.name] = np.array(input_ids.as_numpy(), dtype=np.int32)
        stream = ClientStream(self.pb_utils, self.gate, sender, handle, self._stage_timeout_s)
        self._streams[handle] = stream
        self.live.add(handle, sender)
        self._workers.submit(self._run, handle, stream, params, arrays)

    def cancel(self, handle: str) -> None:
        """Pass a cancel on to the stages, from a thread that may wait for them."""
        stream = self._streams.get(handle)
        if stream is not None:
            self._cancels.submit(stream.cancel)

    def unload(self) -> None:
        """Cancel what runs and end the threads."""
        for handle in list(self._streams):
            self.cancel(handle)
        self._cancels.shutdown(wait=True)
        self._workers.shutdown(wait=False, cancel_futures=True)

    def route(
        self, stream: ClientStream, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]
    ) -> None:
        """Serve one request: call stages, forward chunks."""
        raise NotImplementedError

    def _run(
        self,
        handle: str,
        stream: ClientStream,
        params: dict[str, Any],
        arrays: dict[str, np.ndarray[Any, Any]],
    ) -> None:
        outcome = "ok_total"
        try:
            self.route(stream, params, arrays)
            if not stream.is_ended:
                raise Internal(STREAM_ENDED_EARLY)
        except TritoneError as error:
            outcome = "cancelled_total" if isinstance(error, Cancelled) else "failed_total"
            self._fail(stream, error)
        except Exception:
            logger.exception("relaying request %s failed", handle)
            outcome = "failed_total"
            self._fail(stream, Internal("the request could not be relayed"))
        finally:
            self.live.remove(handle)
            self._streams.pop(handle, None)
            self.metrics.count(outcome)

    def _fail(self, stream: ClientStream, error: TritoneError) -> None:
        try:
            stream.cancel()
            stream.fail(error)
        except Exception:
            logger.exception("an error could not be sent to a client")
