# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the response iterators of finished calls until the stub has let go of them.

The 24.10 stub has a thread that speaks to the server. When a call has ended, that thread takes the call's iterator out
of a map, and should it hold the last reference it frees the tensors inside, Python objects included, without the
interpreter's lock: the process dies within seconds under load. So the last reference must be ours. The thread answers
in order, and `is_cancelled()` is a question to it: once a question is answered, what was finished before it was asked
is out of the map.
"""

from __future__ import annotations

import threading
import time
from collections import deque

LAST_WAIT_S = 0.2


class FinishedCalls:
    """Owns finished iterators. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: deque[tuple[int, object]] = deque()
        self._last = 0

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, iterator: object) -> None:
        """Keep an iterator that has given its last response."""
        with self._lock:
            self._last += 1
            self._held.append((self._last, iterator))

    def before_question(self) -> int:
        """A mark to take before a question to the server is asked."""
        return self._last

    def after_answer(self, mark: int) -> None:
        """Let go of what was held when `mark` was taken."""
        while True:
            with self._lock:
                if not self._held or self._held[0][0] > mark:
                    return
                _, iterator = self._held.popleft()
            # Frees Triton's objects, which is no work for under a lock.
            del iterator

    def clear(self) -> None:
        """Let go of everything, at the end of the model: no question will come."""
        if self._held:
            time.sleep(LAST_WAIT_S)
        self.after_answer(self._last)
