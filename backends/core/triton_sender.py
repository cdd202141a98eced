# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks and errors as Triton responses. The only place that builds one; `pb_utils` exists in the server alone.

The 24.10 server never delivers to a BLS caller an error that follows another response: the caller waits for ever when
it comes with the final flag, and sees an empty end when it comes before it. So to callers that set `accept`, as BLS
callers may, an error after the first response travels as a FAILED chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from tritone.backends.core import protocol
from tritone.backends.core.chunk import Chunk, chunk_arrays, failed_chunk
from tritone.backends.core.finished_calls import FinishedCalls
from tritone.errors import TRITON_CODES, TritoneError, to_wire


def triton_error(pb_utils: Any, error: TritoneError) -> Any:
    """The `TritonError` that carries `error`."""
    code = getattr(pb_utils.TritonError, TRITON_CODES[type(error)])
    return pb_utils.TritonError(to_wire(error), code)


class TritonSender:
    """A `ResponseSender` over Triton's own sender of one decoupled request. Owns the numbers of its chunks."""

    def __init__(self, pb_utils: Any, sender: Any, finished: FinishedCalls) -> None:
        self._pb_utils = pb_utils
        self._sender = sender
        self._finished = finished
        self._next_index = 0
        # The server frees what `is_cancelled` asks about with the final response, so no question may meet it.
        self._closing = threading.Lock()
        self._is_closed = False
        self.wants_failed_chunk = False

    def is_cancelled(self) -> bool:
        """Whether the client cancelled; false once the final response is sent. A round trip to the server."""
        with self._closing:
            if self._is_closed:
                return False
            mark = self._finished.before_question()
            is_cancelled = bool(self._sender.is_cancelled())
        if not is_cancelled:
            self._finished.after_answer(mark)
        return is_cancelled

    def send_chunk(self, chunk: Chunk, *, is_final: bool) -> None:
        """Send one chunk under the next number; blocks for a round trip to the server process."""
        self.send_arrays(chunk_arrays(chunk), is_final=is_final)

    def send_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]], *, is_final: bool) -> None:
        """Send the arrays of a chunk, all but its number."""
        number = np.array([self._next_index], dtype=np.int32)
        numbered = {protocol.CHUNK_INDEX.name: number, **arrays}
        # The list stays here until the response has left: the stub drops the tensors that the client did not ask for
        # without the interpreter's lock, and must not be the last to hold one.
        tensors = [self._pb_utils.Tensor(name, array) for name, array in numbered.items()]
        response = self._pb_utils.InferenceResponse(output_tensors=tensors)
        if is_final:
            self._close(response)
        else:
            self._sender.send(response)
        self._next_index += 1

    def send_error(self, error: TritoneError) -> None:
        """Send `error` as the final response."""
        if self.wants_failed_chunk and self._next_index > 0:
            self.send_chunk(failed_chunk(error), is_final=True)
            return
        self._close(self._pb_utils.InferenceResponse(error=triton_error(self._pb_utils, error)))

    def _close(self, response: Any) -> None:
        with self._closing:
            self._is_closed = True
            self._sender.send(response, flags=self._pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
