# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The table of requests a stage has accepted and not yet finished, and the one thread that looks for cancels.

Knows neither Triton nor the engine: a request is a handle and something with `is_cancelled()`.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from typing import Protocol

logger = logging.getLogger(__name__)

# `is_cancelled()` is a round trip to the server through one thread per instance, so it is asked rarely.
POLL_INTERVAL_S = 0.1


class CancelSource(Protocol):
    """Where a client's cancellation shows: Triton's response sender."""

    def is_cancelled(self) -> bool: ...


def mint_handle() -> str:
    """A fresh 128-bit id in hex. Client-chosen ids never key anything."""
    return secrets.token_hex(16)


class LiveRequests:
    """Owns the accepted requests of one stage. All methods may be called from any thread.

    Guarantees: `on_cancel` is called at most once per handle, never after `remove`d, and within about
    `POLL_INTERVAL_S` of the client's cancellation. Callers promise that `on_cancel` returns quickly.
    """

    def __init__(self, on_cancel: Callable[[str], None]) -> None:
        self._on_cancel = on_cancel
        self._sources: dict[str, CancelSource] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, handle: str, source: CancelSource) -> None:
        """Begin to watch `source`."""
        with self._lock:
            self._sources[handle] = source
            # Started with the first request, not before: calls into Triton from a thread that is older than the
            # first request are known to hang.
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="cancel-watcher", daemon=True)
                self._watcher.start()

    def remove(self, handle: str) -> bool:
        """Forget a request; false when it was not (or no longer) known."""
        with self._lock:
            return self._sources.pop(handle, None) is not None

    def cancel(self, handle: str) -> bool:
        """Cancel by handle, as a second request asks; false when the handle is unknown."""
        if not self.remove(handle):
            return False
        self._on_cancel(handle)
        return True

    def stop(self) -> None:
        """End the watcher thread."""
        self._stopping.set()
        with self._lock:
            thread = self._watcher
        if thread is not None:
            thread.join(timeout=2.0)

    def _watch(self) -> None:
        while not self._stopping.wait(POLL_INTERVAL_S):
            # A call of its own, so that nothing here holds a sender while the thread waits: the server does not let
            # a model go while one is alive.
            self._poll()

    def _poll(self) -> None:
        with self._lock:
            watched = list(self._sources.items())
        for handle, source in watched:
            try:
                if source.is_cancelled():
                    self.cancel(handle)
            except Exception:
                # One broken sender must not leave every other request without a watcher.
                logger.exception("cancel check of request %s failed", handle)
                self.remove(handle)
