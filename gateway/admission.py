# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""How many generations run at once: over all clients, and for one API key. Owns the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tritone.errors import Overloaded


class Admission:
    """Counts generations in flight and refuses those over a limit. Used from the event loop only."""

    def __init__(self, *, max_inflight: int, max_inflight_per_key: int) -> None:
        self._max_inflight = max_inflight
        self._max_inflight_per_key = max_inflight_per_key
        self._per_key: Counter[int] = Counter()
        self._total = 0

    @property
    def num_inflight(self) -> int:
        return self._total

    @contextmanager
    def slot(self, key: int | None) -> Iterator[None]:
        """Hold one place while a generation runs. `key` numbers the API key, None where no keys are configured."""
        if key is not None and self._per_key[key] >= self._max_inflight_per_key:
            limit = self._max_inflight_per_key
            raise Overloaded(f"This API key already has {limit} requests running.", retry_after_s=1.0, scope="client")
        if self._total >= self._max_inflight:
            raise Overloaded("The server is busy, try again.", retry_after_s=1.0)
        self._total += 1
        if key is not None:
            self._per_key[key] += 1
        try:
            yield
        finally:
            self._total -= 1
            if key is not None:
                self._per_key[key] -= 1
