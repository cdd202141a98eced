# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A stage without weights that says numbers and fails on command. Runs inside Triton: see `fault_command`."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from faults.fault_command import BEGIN, CANCEL, LIBRARY_TEXT, SEND, STEP, FaultCommand, hold_interpreter, read_command

from tritone.backends.core import protocol
from tritone.backends.core.chunk import Chunk, chunk_arrays
from tritone.backends.core.decoupled_model import DecoupledModel
from tritone.backends.core.outbox import Outbox, ResponseSender
from tritone.backends.core.protocol import ChunkKind, FinishReason
from tritone.errors import LEAVES, Cancelled, Internal, Overloaded, TritoneError

logger = logging.getLogger(__name__)

_BY_CODE = {leaf.code: leaf for leaf in LEAVES}


class FaultStage(DecoupledModel):
    """Inputs: `params` with a prompt that holds a `FaultCommand`. Outputs: the chunk tensors of `THINKER_OUTPUTS`."""

    def load(self, settings: dict[str, Any], args: dict[str, str]) -> None:
        """`slots` requests speak at once, `waiting` more wait; `raise_in` is load or unload."""
        self._raise_in = settings.get("raise_in", "")
        if self._raise_in == "load":
            raise RuntimeError(LIBRARY_TEXT)
        self._places = int(settings["slots"]) + int(settings["waiting"])
        self._slots = threading.Semaphore(int(settings["slots"]))
        self._outbox = Outbox()
        self._stops: dict[str, threading.Event] = {}
        self._commands: dict[str, FaultCommand] = {}

    def begin(self, handle: str, params: dict[str, Any], request: Any, sender: ResponseSender) -> None:
        """Refuse, or start a thread that speaks."""
        command = read_command(params)
        if command.raise_in == BEGIN:
            raise RuntimeError(LIBRARY_TEXT)
        if command.refuse:
            raise _BY_CODE[command.refuse]("refused on command")
        if command.hang_in == BEGIN:
            time.sleep(command.hang_s)
        if command.at < 0:
            _crash(command.crash)
        if len(self._stops) >= self._places:
            raise Overloaded(f"all {self._places} places are taken", retry_after_s=1.0)
        stop = self._stops[handle] = threading.Event()
        self._commands[handle] = command
        self._outbox.open(handle, FaultSender(sender, command))
        if params.get(protocol.ACCEPT_KEY):
            self._outbox.put(handle, Chunk(ChunkKind.ACCEPTED, details={"handle": handle}))
        self.live.add(handle, sender)
        threading.Thread(target=self._speak, args=(handle, command, stop), daemon=True).start()

    def cancel(self, handle: str) -> None:
        """End the request at once; its thread ends at its next look."""
        command = self._commands.get(handle)
        if command is not None and command.raise_in == CANCEL:
            self._outbox.fail(handle, Internal("the cancel failed on command"))
            raise RuntimeError(LIBRARY_TEXT)
        self._outbox.fail(handle, Cancelled("the client went away"))
        stop = self._stops.get(handle)
        if stop is not None:
            stop.set()

    def unload(self) -> None:
        """End what is open, and raise when ordered."""
        for handle in self._outbox.open_handles():
            self.cancel(handle)
        self._outbox.stop(1.0)
        if self._raise_in == "unload":
            raise RuntimeError(LIBRARY_TEXT)

    def _speak(self, handle: str, command: FaultCommand, stop: threading.Event) -> None:
        outcome = "ok_total"
        try:
            while not self._slots.acquire(timeout=0.02):
                if stop.is_set():
                    return
            try:
                self._say(handle, command, stop)
            finally:
                self._slots.release()
        except TritoneError as error:
            outcome = "failed_total"
            self._outbox.fail(handle, error)
        except Exception:
            logger.exception("speaking failed")
            outcome = "failed_total"
            self._outbox.fail(handle, Internal("the request could not be computed"))
        finally:
            if not (command.never_final and not stop.is_set()):
                self.live.remove(handle)
            self._stops.pop(handle, None)
            self._commands.pop(handle, None)
            self.metrics.count("cancelled_total" if stop.is_set() else outcome)

    def _say(self, handle: str, command: FaultCommand, stop: threading.Event) -> None:
        if command.delay_ms and stop.wait(command.delay_ms / 1000):
            return
        for index in range(command.chunks):
            if index == command.at:
                self._strike(command)
            self._outbox.put(handle, Chunk(ChunkKind.TEXT, text=command.number(index), token_ids=(index,)))
            is_pause = command.interval_ms and index % command.coalesce == command.coalesce - 1
            if stop.is_set() or (is_pause and stop.wait(command.interval_ms / 1000)):
                return
        if command.never_final:
            stop.wait()
            return
        self._outbox.put(handle, Chunk(ChunkKind.TEXT, finish_reason=FinishReason.STOP))
        usage = {"prompt_tokens": 1, "completion_tokens": command.chunks, "cached_tokens": 0}
        self._outbox.put(handle, Chunk(ChunkKind.DONE, details={"usage": usage}), is_final=True)

    def _strike(self, command: FaultCommand) -> None:
        if command.crash:
            _crash(command.crash)
        if command.hang_in == STEP:
            time.sleep(command.hang_s)
        if command.hog_s:
            hold_interpreter(command.hog_s)
        if command.raise_in == STEP:
            raise RuntimeError(LIBRARY_TEXT)
        if command.fail:
            raise _BY_CODE[command.fail]("failed on command")


class FaultSender:
    """The request's own sender, which raises, hangs or breaks the protocol in the text chunk that says `at`."""

    def __init__(self, sender: ResponseSender, command: FaultCommand) -> None:
        self._sender = sender
        self._command = command

    def is_cancelled(self) -> bool:
        """As the real one."""
        return self._sender.is_cancelled()

    def send_chunk(self, chunk: Chunk, *, is_final: bool) -> None:
        """As the real one, but for the ordered fault."""
        command = self._command
        if chunk.kind is ChunkKind.ACCEPTED and command.malformed == "handle":
            chunk = Chunk(ChunkKind.ACCEPTED, details={"handel": 5})
        if command.at in chunk.token_ids and chunk.kind is ChunkKind.TEXT:
            if command.raise_in == SEND:
                raise RuntimeError(LIBRARY_TEXT)
            if command.hang_in == SEND:
                time.sleep(command.hang_s)
            if command.malformed:
                self._break(chunk)
                return
        self._sender.send_chunk(chunk, is_final=is_final)

    def send_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]], *, is_final: bool) -> None:
        """As the real one."""
        self._sender.send_arrays(arrays, is_final=is_final)

    def send_error(self, error: TritoneError) -> None:
        """As the real one."""
        self._sender.send_error(error)

    def _break(self, chunk: Chunk) -> None:
        arrays = chunk_arrays(chunk)
        kind = protocol.CHUNK_KIND.name
        if self._command.malformed == "kind":
            arrays[kind] = np.array([b"nonsense"], dtype=np.object_)
        elif self._command.malformed == "no_kind":
            del arrays[kind]
        elif self._command.malformed == "details":
            arrays[kind] = np.array([ChunkKind.FAILED.encode()], dtype=np.object_)
            arrays[protocol.DETAILS.name] = np.array([b"{"], dtype=np.object_)
        elif self._command.malformed == "wrong_dtype":
            arrays[kind] = np.array([7], dtype=np.int32)
        elif self._command.malformed == "no_tensors":
            arrays = {}
        self._sender.send_arrays(arrays, is_final=False)


def _crash(how: str) -> None:
    if how == "exit":
        os._exit(3)
    if how:
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(5)
