# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The orchestrator's end of its links to stages: chunks in, cancels out, and a clear end when a stage dies.

Knows nothing of Triton or of what the chunks say. `backends/core/link.py` is the other end and says why links exist.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import queue
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from tritone.backends.core import protocol
from tritone.backends.core.frames import Arrays, Frame, FrameKind, decode, head, read_frame
from tritone.backends.core.link import ADDRESS_KEY, BUFFER_BYTES, CALL_KEY, is_ours, socket_name
from tritone.backends.core.protocol import ChunkKind
from tritone.errors import Internal, Overloaded

logger = logging.getLogger(__name__)

STREAM_ENDED_EARLY = "a stage of this pipeline stopped before the answer was complete"
# What the loading of a stage that died may take.
RELOAD_S = 5.0
STAGE_TOO_SLOW = "a stage of this pipeline took too long"


class StageChunk:
    """One chunk of a stage: its arrays, and its kind and details read on demand."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    @property
    def kind(self) -> ChunkKind:
        return ChunkKind(self._text(protocol.CHUNK_KIND.name))

    @property
    def details(self) -> dict[str, Any]:
        details: dict[str, Any] = json.loads(self._text(protocol.DETAILS.name))
        return details

    def _text(self, name: str) -> str:
        value: bytes = self.arrays[name].reshape(-1)[0]
        return value.decode()


class LinkedCall:
    """One call of a stage. Read by one thread; `cancel` may come from any."""

    def __init__(self, links: OrchestratorLinks, number: int, timeout_s: float) -> None:
        self._links = links
        self._number = number
        self._deadline_s = time.monotonic() + timeout_s
        self._frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._stage: _StageEnd | None = None
        self._is_cancelled = False
        self._has_ended = False

    @property
    def target(self) -> dict[str, Any]:
        """What tells the stage where its chunks go."""
        return {ADDRESS_KEY: self._links.address, CALL_KEY: self._number}

    def __iter__(self) -> Iterator[StageChunk]:
        """Chunks up to the last. Raises `Overloaded` when the stage dies, `Internal` when it takes too long."""
        while not self._has_ended:
            try:
                frame = self._frames.get(timeout=max(0.0, self._deadline_s - time.monotonic()))
            except queue.Empty:
                raise Internal(STAGE_TOO_SLOW) from None
            if frame is None:
                self._has_ended = True
                # It is loaded again meanwhile.
                raise Overloaded(STREAM_ENDED_EARLY, retry_after_s=RELOAD_S)
            self._has_ended = frame.kind is FrameKind.FINAL
            yield StageChunk(decode(frame.body))

    def cancel(self) -> None:
        """Ask the stage to stop, now or as soon as it has taken the call."""
        with self._lock:
            self._is_cancelled = True
            stage = self._stage
        if stage is not None:
            stage.cancel(self._number)

    def close(self) -> None:
        """Forget the call; a stage that still works for it is told to stop."""
        if not self._has_ended:
            self.cancel()
        self._links.forget(self._number)

    def take(self, frame: Frame, stage: _StageEnd) -> None:
        """A frame from the stage's end; called by the thread that reads it."""
        if frame.kind is not FrameKind.OPEN:
            self._frames.put(frame)
            return
        with self._lock:
            self._stage = stage
            is_cancelled = self._is_cancelled
        if is_cancelled:
            stage.cancel(self._number)

    def lose(self, stage: _StageEnd) -> None:
        """The stage at that end has gone."""
        if self._stage is stage:
            self._frames.put(None)


class _StageEnd:
    """One connection from one stage."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._sending = threading.Lock()

    def cancel(self, number: int) -> None:
        # A stage that has gone needs no cancel, and its reader sees that it has.
        with self._sending, contextlib.suppress(OSError):
            self.connection.sendall(head(number, FrameKind.CANCEL))


class OrchestratorLinks:
    """Owns the socket that stages connect to, and the calls that are open."""

    def __init__(self) -> None:
        # Nobody can guess it, and other users are turned away besides.
        self.address = secrets.token_hex(16)
        self._calls: dict[int, LinkedCall] = {}
        self._numbers = itertools.count()
        self._ends: set[_StageEnd] = set()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(socket_name(self.address))
        self._listener.listen()
        threading.Thread(target=self._accept, name="links", daemon=True).start()

    def open(self, timeout_s: float) -> LinkedCall:
        """A call to hand to a stage; close it in the end."""
        number = next(self._numbers)
        call = self._calls[number] = LinkedCall(self, number, timeout_s)
        return call

    def forget(self, number: int) -> None:
        """Frames for that call are dropped from now on."""
        self._calls.pop(number, None)

    def close(self) -> None:
        """End every connection; stages cancel what they do for us."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in list(self._ends):
            with contextlib.suppress(OSError):
                end.connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if not is_ours(connection):
                connection.close()
                continue
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            threading.Thread(target=self._read, args=(connection,), name="link", daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        end = _StageEnd(connection)
        self._ends.add(end)
        try:
            with connection, connection.makefile("rb") as stream:
                while (frame := read_frame(stream)) is not None:
                    call = self._calls.get(frame.call)
                    if call is not None:
                        call.take(frame, end)
        except (OSError, ValueError):
            logger.warning("a link to a stage broke")
        finally:
            self._ends.discard(end)
            for call in list(self._calls.values()):
                call.lose(end)
