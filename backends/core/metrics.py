# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Counters and gauges of one stage, counted in process and handed to Triton once a second.

Every call into Triton's metrics is a round trip through one thread per instance, so no request makes one.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

logger = logging.getLogger(__name__)

FLUSH_INTERVAL_S = 1.0
PREFIX = "tritone_stage_"


class StageMetrics:
    """Owns the metric values of one stage. `count` and `set` may be called from any thread and are cheap.

    Names end in `_total` for counters; the label is the model name.
    """

    def __init__(self, pb_utils: Any, model_name: str) -> None:
        self._pb_utils = pb_utils
        self._labels = {"model": model_name}
        self._counts: dict[str, float] = {}
        self._gauges: dict[str, float] = {}
        self._metrics: dict[str, Any] = {}
        # A metric lives only as long as its family object.
        self._families: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def count(self, name: str, amount: float = 1.0) -> None:
        """Add `amount` to a counter."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0.0) + amount
            self._start()

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            self._gauges[name] = value
            self._start()

    def stop(self) -> None:
        """End the flush thread and let go of Triton's objects.

        A metric that outlives the stub's shared memory crashes its process at exit, and the server then waits for its
        whole exit timeout.
        """
        self._stopping.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout=2.0)
        self._metrics.clear()
        self._families.clear()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(FLUSH_INTERVAL_S):
            try:
                self.flush()
            except Exception:
                logger.exception("metrics could not be handed to Triton")

    def flush(self) -> None:
        """Hand what changed to Triton."""
        with self._lock:
            counts, self._counts = self._counts, {}
            gauges = dict(self._gauges)
        for name, amount in counts.items():
            self._metric(name, self._pb_utils.MetricFamily.COUNTER).increment(amount)
        for name, value in gauges.items():
            self._metric(name, self._pb_utils.MetricFamily.GAUGE).set(value)

    def _metric(self, name: str, kind: Any) -> Any:
        if name not in self._metrics:
            family = self._pb_utils.MetricFamily(
                name=PREFIX + name, description=name.replace("_", " ") + " of a Tritone stage", kind=kind
            )
            self._families[name] = family
            self._metrics[name] = family.Metric(labels=self._labels)
        return self._metrics[name]
