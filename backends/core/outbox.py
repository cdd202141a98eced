# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The one thread that sends a stage's responses, so that chunks of a request leave in order.

What waits for the same request is joined into one chunk: a slow transport makes chunks larger, never the queue
longer. A minimum interval between the text chunks of a request trades smoothness for the cost of a response: one
takes about 1.5 ms of processor time through a BLS hop, which on a small machine the model misses.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from tritone.backends.core.chunk import Chunk, can_join, join
from tritone.backends.core.protocol import ChunkKind
from tritone.errors import Cancelled, Internal, TritoneError

logger = logging.getLogger(__name__)


class ResponseSender(Protocol):
    """One request's way back to its client."""

    def is_cancelled(self) -> bool: ...

    def send_chunk(self, chunk: Chunk, *, is_final: bool) -> None:
        """Number and send one chunk; with `is_final` nothing may follow."""

    def send_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]], *, is_final: bool) -> None:
        """As `send_chunk`, for a chunk that is already arrays, all but its number."""

    def send_error(self, error: TritoneError) -> None:
        """Send an error as the final response."""


class _Pending:
    """What waits for one request."""

    def __init__(self, sender: ResponseSender) -> None:
        self.sender = sender
        self.chunks: list[Chunk] = []
        self.error: TritoneError | None = None
        self.is_last = False
        self.not_before = 0.0  # monotonic time before which plain text waits

    def is_plain_text(self) -> bool:
        """Whether nothing but text of running choices waits."""
        return not self.is_last and all(
            chunk.kind is ChunkKind.TEXT and chunk.finish_reason is None for chunk in self.chunks
        )


class Outbox:
    """Owns the unsent chunks of one stage. Methods may be called from any thread and never block on a send.

    Guarantees: chunks of a request leave in the order they were put; exactly one final response leaves for each opened
    request, on success, error and cancel; what is put after the end is dropped. The first text of a request and the
    end of a choice leave at once, text between them at most every `chunk_interval_s`.
    """

    def __init__(self, chunk_interval_s: float = 0.0) -> None:
        self._chunk_interval_s = chunk_interval_s
        self._requests: dict[str, _Pending] = {}
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._wake = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="response-sender", daemon=True)
        self._thread.start()

    def open(self, handle: str, sender: ResponseSender) -> None:
        """Register a request before anything is put for it."""
        with self._wake:
            self._requests[handle] = _Pending(sender)

    def put(self, handle: str, chunk: Chunk, *, is_final: bool = False) -> None:
        """Queue a chunk. The final one ends the request."""
        with self._wake:
            pending = self._requests.get(handle)
            if pending is None or pending.is_last:
                return
            if pending.chunks and can_join(pending.chunks[-1], chunk):
                pending.chunks[-1] = join(pending.chunks[-1], chunk)
            else:
                pending.chunks.append(chunk)
            pending.is_last = is_final
            self._announce(handle)

    def fail(self, handle: str, error: TritoneError) -> None:
        """End a request with an error, after what already waits for it."""
        with self._wake:
            pending = self._requests.get(handle)
            if pending is None or pending.is_last:
                return
            pending.error = error
            pending.is_last = True
            self._announce(handle)

    def stop(self, timeout_s: float) -> None:
        """Send what waits, then end the thread."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        self._thread.join(timeout=timeout_s)

    def open_handles(self) -> list[str]:
        """Handles of requests that have not had their final response queued."""
        with self._wake:
            return [handle for handle, pending in self._requests.items() if not pending.is_last]

    def _announce(self, handle: str) -> None:
        self._ready[handle] = None
        self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                handle = self._next_due()
            if handle is None:
                return
            # A call of its own: see LiveRequests._watch.
            self._serve(handle)

    def _serve(self, handle: str) -> None:
        with self._wake:
            pending = self._requests[handle]
            if any(chunk.kind is ChunkKind.TEXT for chunk in pending.chunks):
                pending.not_before = time.monotonic() + self._chunk_interval_s
            chunks, pending.chunks = pending.chunks, []
            is_last, error = pending.is_last, pending.error
            if is_last:
                del self._requests[handle]
        try:
            self._send(pending, chunks, error, is_last=is_last)
        except Cancelled:
            # The caller has gone, and with it the way.
            self._drop(handle)
        except Exception:
            logger.exception("sending to request %s failed", handle)
            self._drop(handle)
            # The client must still see an end. A final response that was already taken makes this fail too.
            with contextlib.suppress(Exception):
                pending.sender.send_error(Internal("the response could not be sent"))

    def _drop(self, handle: str) -> None:
        with self._wake:
            self._requests.pop(handle, None)
            self._ready.pop(handle, None)

    def _next_due(self) -> str | None:
        """Wait for a request that may send, longest waiting first; none when the outbox stops. Holds the lock."""
        while True:
            now = time.monotonic()
            wait_s: float | None = None
            for handle in self._ready:
                delay_s = self._requests[handle].not_before - now
                if delay_s <= 0 or self._is_stopping or not self._requests[handle].is_plain_text():
                    del self._ready[handle]
                    return handle
                wait_s = delay_s if wait_s is None else min(wait_s, delay_s)
            if self._is_stopping:
                return None
            self._wake.wait(wait_s)

    def _send(self, pending: _Pending, chunks: list[Chunk], error: TritoneError | None, *, is_last: bool) -> None:
        for position, chunk in enumerate(chunks):
            is_final = is_last and error is None and position == len(chunks) - 1
            pending.sender.send_chunk(chunk, is_final=is_final)
        if error is not None:
            pending.sender.send_error(error)
