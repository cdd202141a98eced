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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tritone.backends.core import protocol
from tritone.backends.core.chunk import Chunk, text_array
from tritone.backends.core.decoupled_model import DecoupledModel
from tritone.backends.core.finished_calls import FinishedCalls
from tritone.backends.core.outbox import ResponseSender
from tritone.backends.core.protocol import ChunkKind
from tritone.ensembles.stage_link import RELOAD_S, STREAM_ENDED_EARLY, OrchestratorLinks, StageChunk
from tritone.errors import (
    Cancelled,
    Internal,
    InvalidRequest,
    NotFound,
    Overloaded,
    TritoneError,
    Unsupported,
    carries_wire,
    from_wire,
)

logger = logging.getLogger(__name__)

STAGE_AWAY = "a stage of this pipeline is not there, try again"


class StageCall:
    """One call of a stage: opened through Triton, answered on a link. A cancel reaches the stage at any time."""

    def __init__(
        self,
        pb_utils: Any,
        finished: FinishedCalls,
        links: OrchestratorLinks,
        model: str,
        timeout_s: float,
    ) -> None:
        self._pb_utils = pb_utils
        self._finished = finished
        self._model = model
        self._timeout_us = int(timeout_s * 1e6)
        self._linked = links.open(timeout_s)

    def run(self, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Iterator[StageChunk]:
        """Yield the stage's chunks, ACCEPTED included. Raises the stage's error."""
        try:
            self._open({**params, protocol.ACCEPT_KEY: True, protocol.LINK_KEY: self._linked.target}, arrays)
            for chunk in self._linked:
                if chunk.kind is ChunkKind.FAILED:
                    raise from_wire(json.dumps(chunk.details))
                yield chunk
        finally:
            self._linked.close()

    def cancel(self) -> None:
        """Ask the stage to stop, now or as soon as it has taken the call."""
        self._linked.cancel()

    def _open(self, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hand the request to the stage. Raises its refusal."""
        tensors = {protocol.PARAMS.name: text_array(json.dumps(params)), **arrays}
        request = self._pb_utils.InferenceRequest(
            model_name=self._model,
            requested_output_names=[spec.name for spec in protocol.THINKER_OUTPUTS],
            inputs=[self._pb_utils.Tensor(name, array) for name, array in tensors.items()],
            timeout=self._timeout_us,
        )
        responses = request.exec(decoupled=True)
        refusal: str | None = None
        # To its end: an iterator that is let go of earlier blocks, and the stub never frees it.
        for response in responses:
            if response.has_error():
                refusal = response.error().message()
        self._finished.hold(responses)
        if refusal is None:
            return
        if carries_wire(refusal):
            raise from_wire(refusal)
        # Triton's own words: the stage was never asked, for it died or is being loaded again.
        logger.warning("%s cannot be called: %s", self._model, refusal)
        raise Overloaded(STAGE_AWAY, retry_after_s=RELOAD_S)


class ClientStream:
    """A client's request inside an orchestrator. Owns its end; used from one thread but `cancel`."""

    def __init__(
        self, handle: str, sender: ResponseSender, new_call: Callable[[str], StageCall]
    ) -> None:
        self._handle = handle
        self._sender = sender
        self._new_call = new_call
        self._calls: list[StageCall] = []
        self._lock = threading.Lock()
        self.is_cancelled = False
        self.has_begun = False
        self.is_ended = False

    def call(
        self, model: str, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]
    ) -> Iterator[StageChunk]:
        """Call a stage; a cancel of this stream reaches it. Yields its chunks, ACCEPTED included."""
        with self._lock:
            if self.is_cancelled:
                raise Cancelled("cancelled before the stage was called")
            call = self._new_call(model)
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
        """Send a stage's chunk on under this stream's own number."""
        passed = {name: array for name, array in chunk.arrays.items() if name != protocol.CHUNK_INDEX.name}
        self.has_begun = True
        self.is_ended = is_final
        self._sender.send_arrays(passed, is_final=is_final)

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
        self._links = OrchestratorLinks()

    def begin(self, handle: str, params: dict[str, Any], request: Any, sender: ResponseSender) -> None:
        """Give the request its thread, or refuse it when all are taken."""
        if len(self._streams) >= self._max_streams:
            raise Overloaded(f"all {self._max_streams} streams of this pipeline are in use", retry_after_s=1.0)
        arrays = {}
        input_ids = self.pb_utils.get_input_tensor_by_name(request, protocol.INPUT_IDS.name)
        if input_ids is not None:
            # A copy: the request's own memory is released when `execute` returns.
            arrays[protocol.INPUT_IDS.name] = np.array(input_ids.as_numpy(), dtype=np.int32)
        stream = ClientStream(handle, sender, self._new_call)
        self._streams[handle] = stream
        self.live.add(handle, sender)
        self._workers.submit(self._run, handle, stream, params, arrays)

    def cancel(self, handle: str) -> None:
        """Pass a cancel on to the stages."""
        stream = self._streams.get(handle)
        if stream is not None:
            stream.cancel()

    def unload(self) -> None:
        """Cancel what runs and end the threads."""
        for handle in list(self._streams):
            self.cancel(handle)
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._links.close()

    def route(
        self, stream: ClientStream, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]
    ) -> None:
        """Serve one request: call stages, forward chunks."""
        raise NotImplementedError

    def _new_call(self, model: str) -> StageCall:
        return StageCall(self.pb_utils, self.finished, self._links, model, self._stage_timeout_s)

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
            outcome = _outcome(error, has_begun=stream.has_begun)
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


def _outcome(error: TritoneError, *, has_begun: bool) -> str:
    """The counter of a request that ended with `error`. Refused before its first chunk, it was rejected."""
    if isinstance(error, Cancelled):
        return "cancelled_total"
    is_refusal = isinstance(error, InvalidRequest | NotFound | Unsupported | Overloaded)
    return "rejected_total" if is_refusal and not has_begun else "failed_total"
