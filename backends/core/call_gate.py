# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One call or response at a time out of a process, and on small machines a moment after each response.

Threads of a 24.10 stub that call another model or send responses at the same moment corrupt its memory: wrong tensor
lengths, lost wake-ups, a dead stub or server. Eight streams that started together did it within a second on 16 cores,
six on two cores about once in two thousand. Turns, and holding finished iterators for a while, make it rarer; that
they end it is not shown.

The pause: the stub frees the message of a response while the server's thread may still have to unlock the mutex in it
(ResponseSender::Send of python_backend). With more threads than cores that thread comes late, and its write lands in
whatever took the memory since.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

FEW_CORES = 4
PAUSE_S = 0.0003
HOLD_S = 1.0


class CallGate:
    """Owns the turn of a process to speak to the server. Every sender and every call of one model shares it.

    A call of another model holds the turn until that model has accepted, which it does at once by contract.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._held: deque[tuple[float, object]] = deque()
        self._pause_s = PAUSE_S if len(os.sched_getaffinity(0)) <= FEW_CORES else 0.0

    def call(self, execute: Callable[[], Answer]) -> Answer:
        """Run `execute` alone."""
        with self._turn:
            answer = execute()
            now = time.monotonic()
            while self._held and self._held[0][0] < now:
                self._held.popleft()
            return answer

    def hold(self, answer: object) -> None:
        """Keep a finished response iterator alive for `HOLD_S` at least.

        The stub's own thread may still be inside it when its last response has been taken.
        """
        with self._turn:
            self._held.append((time.monotonic() + HOLD_S, answer))

    def clear(self) -> None:
        """Let go of everything held."""
        with self._turn:
            self._held.clear()

    def send(self, send: Callable[[], None]) -> None:
        """Run `send` alone, and give the server the time to let go of its message."""
        with self._turn:
            send()
            if self._pause_s:
                time.sleep(self._pause_s)
