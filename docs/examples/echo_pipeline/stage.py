# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Becomes backends/echo/stage.py: one word of the prompt in each chunk. Knows no tokenizer."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tritone.backends.core import protocol
from tritone.backends.core.chunk import Chunk
from tritone.backends.core.decoupled_model import DecoupledModel
from tritone.backends.core.outbox import Outbox, ResponseSender
from tritone.backends.core.protocol import ChunkKind, FinishReason
from tritone.errors import Cancelled, InvalidRequest, Overloaded

MAX_STREAMS = 8


class EchoStage(DecoupledModel):
    """Inputs: `params` with `prompt`. Outputs: the chunk tensors of `THINKER_OUTPUTS`."""

    def load(self, settings: dict[str, Any], args: dict[str, str]) -> None:
        """A setting that cannot be used fails here, and with it the load of the model."""
        delay_ms = settings.get("delay_ms", 0)
        if not isinstance(delay_ms, int) or delay_ms < 0:
            raise InvalidRequest(f"delay_ms is {delay_ms!r}; expected a whole number from 0", field="delay_ms")
        self._delay_s = delay_ms / 1000
        self._outbox = Outbox()
        self._workers = ThreadPoolExecutor(MAX_STREAMS, thread_name_prefix="speaker")
        self._stops: dict[str, threading.Event] = {}

    def begin(self, handle: str, params: dict[str, Any], request: Any, sender: ResponseSender) -> None:
        """Check first, then register: what is raised before `open` is sent to the client by the base class."""
        prompt = params.get("prompt")
        if not isinstance(prompt, str):
            raise InvalidRequest("prompt must be a string", field="prompt")
        if len(self._stops) >= MAX_STREAMS:
            raise Overloaded(f"all {MAX_STREAMS} streams are in use", retry_after_s=1.0)
        stop = self._stops[handle] = threading.Event()
        self._outbox.open(handle, sender)
        if params.get(protocol.ACCEPT_KEY):
            self._outbox.put(handle, Chunk(ChunkKind.ACCEPTED, details={"handle": handle}))
        self.live.add(handle, sender)
        self._workers.submit(self._speak, handle, prompt, stop)

    def cancel(self, handle: str) -> None:
        """The client has gone: the final response is the error, and the worker ends at its next word."""
        self._outbox.fail(handle, Cancelled("the client went away"))
        stop = self._stops.get(handle)
        if stop is not None:
            stop.set()

    def unload(self) -> None:
        """Every open request ends, then the threads."""
        for handle in self._outbox.open_handles():
            self.cancel(handle)
        self._workers.shutdown(wait=True)
        self._outbox.stop(1.0)

    def _speak(self, handle: str, prompt: str, stop: threading.Event) -> None:
        words = re.findall(r"\s*\S+", prompt)
        for word in words:
            if stop.wait(self._delay_s):
                break
            self._outbox.put(handle, Chunk(ChunkKind.TEXT, text=word))
        # What is put after a cancel is dropped.
        self._outbox.put(handle, Chunk(ChunkKind.TEXT, finish_reason=FinishReason.STOP))
        usage = {"prompt_tokens": len(words), "completion_tokens": len(words), "cached_tokens": 0}
        self._outbox.put(handle, Chunk(ChunkKind.DONE, details={"usage": usage}), is_final=True)
        self.live.remove(handle)
        self._stops.pop(handle, None)
