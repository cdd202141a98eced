# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The stage's end of a link: where the chunks of an orchestrator's calls go, and where its cancels come from.

An orchestrator opens a call through Triton (BLS) and names its link in `params`; the stage answers that call at once
and sends everything after on the link, a Unix socket between the two processes.

Why not as responses of the BLS call: in the 24.10 stub a thread that waits for a further response holds the lock of
its iterator while it waits for the interpreter, the stub's own thread holds the map of iterators while it waits for
that lock, and a thread that begins a call holds the interpreter while it waits for the map. Seen on a real server with
32 streams, with the interpreter of the orchestrator busy: all stand still for ever. A call with one response never
waits inside an iterator. A link also costs a tenth of the processor time of a BLS response, carries a cancel without
another call, and its end tells at once that the process on the other side has died.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from tritone.backends.core import protocol
from tritone.backends.core.chunk import Chunk, chunk_arrays, failed_chunk
from tritone.backends.core.frames import FrameKind, encode, head, read_frame
from tritone.errors import Cancelled, InvalidRequest, TritoneError

logger = logging.getLogger(__name__)

ADDRESS_KEY = "address"
CALL_KEY = "call"
BUFFER_BYTES = 1 << 20
# A caller that reads nothing for so long stands still: its calls are given up, so that others are served.
SEND_TIMEOUT_S = 5.0

_ADDRESS = re.compile(r"[0-9a-f]{32}")
_CREDENTIALS = struct.Struct("3i")
_TIMEVAL = struct.Struct("ll")


def socket_name(address: str) -> str:
    """The name in Linux's abstract namespace, which leaves no file behind."""
    return f"\0tritone-link-{address}"


def is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end runs under our user."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(credentials)[1]
    return user == os.geteuid()


class LinkSender:
    """A `ResponseSender` over a link, for one call. Owns the numbers of its chunks."""

    def __init__(self, link: _Link, call: int, handle: str) -> None:
        self._link = link
        self._call = call
        self.handle = handle
        self._next_index = 0
        self.was_cancelled = False

    def is_cancelled(self) -> bool:
        """Whether the caller cancelled or has gone."""
        return self.was_cancelled or self._link.is_closed

    def send_chunk(self, chunk: Chunk, *, is_final: bool) -> None:
        """Send one chunk under the next number."""
        self.send_arrays(chunk_arrays(chunk), is_final=is_final)

    def send_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]], *, is_final: bool) -> None:
        """Send the arrays of a chunk, all but its number. Raises `Cancelled` when the caller has gone."""
        number = np.array([self._next_index], dtype=np.int32)
        kind = FrameKind.FINAL if is_final else FrameKind.CHUNK
        frame = encode(self._call, kind, {protocol.CHUNK_INDEX.name: number, **arrays})
        if is_final:
            self._link.forget(self._call)
        self._link.send(frame)
        self._next_index += 1

    def send_error(self, error: TritoneError) -> None:
        """Send `error` as the last chunk."""
        self.send_chunk(failed_chunk(error), is_final=True)

    def abandon(self) -> None:
        """The call was refused: nothing will be sent."""
        self._link.forget(self._call)


class _Link:
    """One connection to one orchestrator, and the calls it waits for."""

    def __init__(self, connection: socket.socket, on_cancel: Callable[[str], object]) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        # Of sending alone: the reader waits as long as it takes.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(int(SEND_TIMEOUT_S), 0))
        self._connection = connection
        self._on_cancel = on_cancel
        self._sending = threading.Lock()
        self._calls: dict[int, LinkSender] = {}
        self.is_closed = False
        threading.Thread(target=self._read, name="link", daemon=True).start()

    def open(self, call: int, handle: str) -> LinkSender:
        """Answer for `call` from here on."""
        sender = self._calls[call] = LinkSender(self, call, handle)
        try:
            self.send(head(call, FrameKind.OPEN))
        except Cancelled:
            self.forget(call)
            raise
        return sender

    def forget(self, call: int) -> None:
        self._calls.pop(call, None)

    def send(self, frame: bytes) -> None:
        with self._sending:
            if self.is_closed:
                raise Cancelled("the caller has gone")
            try:
                self._connection.sendall(frame)
            except OSError:
                # Part of the frame may have left, so nothing can follow.
                self.close()
                raise Cancelled("the caller has gone") from None

    def close(self) -> None:
        """End the connection; the reader cancels what is left."""
        self.is_closed = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        with self._connection, self._connection.makefile("rb") as stream:
            self._obey(stream)
        self.is_closed = True
        for sender in list(self._calls.values()):
            self._cancel(sender)

    def _obey(self, stream: BinaryIO) -> None:
        try:
            while (frame := read_frame(stream)) is not None:
                sender = self._calls.get(frame.call)
                if sender is not None and frame.kind is FrameKind.CANCEL:
                    self._cancel(sender)
        except (OSError, ValueError):
            logger.warning("a link to an orchestrator broke")

    def _cancel(self, sender: LinkSender) -> None:
        # A call that is not registered yet shows the flag to the watcher of live requests.
        sender.was_cancelled = True
        try:
            self._on_cancel(sender.handle)
        except Exception:
            logger.exception("a cancel failed")


class StageLinks:
    """Owns a stage's links, one for each orchestrator that has called. `open` is called from one thread."""

    def __init__(self, on_cancel: Callable[[str], object]) -> None:
        self._on_cancel = on_cancel
        self._links: dict[str, _Link] = {}

    def open(self, target: object, handle: str) -> LinkSender:
        """The sender for the call that `target`, the value of `params.link`, names."""
        address = target.get(ADDRESS_KEY) if isinstance(target, dict) else None
        call = target.get(CALL_KEY) if isinstance(target, dict) else None
        if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
            raise InvalidRequest("'link' must name the link of an orchestrator", field=protocol.LINK_KEY)
        if isinstance(call, bool) or not isinstance(call, int) or not 0 <= call < 1 << 63:
            raise InvalidRequest("'link' must name a call", field=protocol.LINK_KEY)
        return self._link(address).open(call, handle)

    def close(self) -> None:
        """End every link."""
        for link in self._links.values():
            link.close()
        self._links.clear()

    def _link(self, address: str) -> _Link:
        self._links = {name: link for name, link in self._links.items() if not link.is_closed}
        if address not in self._links:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(socket_name(address))
                if not is_ours(connection):
                    raise OSError("another user's socket")
            except OSError:
                connection.close()
                raise InvalidRequest("there is no such link", field=protocol.LINK_KEY) from None
            self._links[address] = _Link(connection, self._on_cancel)
        return self._links[address]
