# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A cancel is seen once, soon, and never by a request that has ended."""

from __future__ import annotations

import re
import threading
import time
import weakref

from tritone.backends.core.live_requests import LiveRequests, mint_handle


class Source:
    def __init__(self, *, is_broken: bool = False) -> None:
        self.flag = False
        self.is_broken = is_broken

    def is_cancelled(self) -> bool:
        if self.is_broken:
            raise RuntimeError("no answer")
        return self.flag


def test_handles_are_128_bits_and_differ() -> None:
    handles = {mint_handle() for _ in range(1000)}
    assert len(handles) == 1000 and all(re.fullmatch("[0-9a-f]{32}", handle) for handle in handles)


def test_client_cancel_is_noticed_once_beside_a_broken_neighbour() -> None:
    seen: list[str] = []
    noticed = threading.Event()

    def on_cancel(handle: str) -> None:
        seen.append(handle)
        noticed.set()

    live = LiveRequests(on_cancel)
    source = Source()
    live.add("broken", Source(is_broken=True))
    live.add("a", source)
    live.add("ended", ended := Source())
    live.remove("ended")
    ended.flag = True
    source.flag = True
    assert noticed.wait(5)
    time.sleep(0.3)
    live.stop()
    assert seen == ["a"] and len(live) == 0


def test_cancel_by_handle_reaches_only_known_requests() -> None:
    seen: list[str] = []
    live = LiveRequests(seen.append)
    live.add("a", Source())
    assert live.cancel("a") and not live.cancel("a") and not live.cancel("unknown")
    live.stop()
    assert seen == ["a"]


def test_the_waiting_watcher_holds_no_sender() -> None:
    """A model whose sender is still referenced is not unloaded, and the server waits for its whole exit timeout."""
    live = LiveRequests(lambda handle: None)
    source = Source()
    live.add("a", source)
    time.sleep(0.3)
    live.remove("a")
    time.sleep(0.3)
    gone = weakref.ref(source)
    del source
    assert gone() is None
    live.stop()
