# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Counters and gauges of one stage, counted in process and handed to Triton once a second, with a heartbeat.

Every call into Triton's metrics is a round trip through one thread per instance, so no request makes one.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from tritone.backends.core import heartbeat

logger = logging.getLogger(__name__)

FLUSH_INTERVAL_S = 1.0
# A beat that comes this much late shows that something held the process up: one thread kept the interpreter, or the
# machine has no time for it. Requests see it as a gap.
HELD_UP_S = 0.5
PREFIX = "tritone_stage_"


class StageMetrics:
    """Owns the metric values of one stage. `count` and `set` may be called from any thread and are cheap.

    Names end in `_total` for counters; the label is the model name.
    """

    def __init__(self, pb_utils: Any, model_name: str) -> None:
        self._pb_utils = pb_utils
        self._labels = {heartbeat.MODEL_LABEL: model_name}
        self._counts: dict[str, float] = {}
        self._gauges: dict[str, float] = {}
        self._metrics: dict[str, Any] = {}
        # A metric lives only as long as its family object.
        self._families: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._started = threading.Event()
        self._stopping = threading.Event()
        self._is_alive: Callable[[], bool] = lambda: True
        self._num_beats = 0
        self._heartbeat_labels = {**self._labels, heartbeat.PROCESS_LABEL: str(os.getpid())}
        # Made before the model loads: a stage may lower the priority of the loading thread, which later threads
        # inherit, and a heartbeat must not wait behind the work it watches.
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def count(self, name: str, amount: float = 1.0) -> None:
        """Add `amount` to a counter."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0.0) + amount

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            self._gauges[name] = value

    def start(self, is_alive: Callable[[], bool]) -> None:
        """Flush and beat from now on. `is_alive` says once a second whether the model's own work goes on."""
        self._is_alive = is_alive
        self._started.set()

    def stop(self) -> None:
        """End the flush thread and let go of Triton's objects.

        A metric that outlives the stub's shared memory crashes its process at exit, and the server then waits for its
        whole exit timeout.
        """
        self._stopping.set()
        self._started.set()
        self._thread.join(timeout=2.0)
        self._metrics.clear()
        self._families.clear()

    def flush(self) -> None:
        """Hand what changed to Triton, and the next beat."""
        is_alive = self._is_alive()
        with self._lock:
            counts, self._counts = self._counts, {}
            gauges = dict(self._gauges)
        families = self._pb_utils.MetricFamily
        for name, amount in counts.items():
            self._metric(PREFIX + name, families.COUNTER, self._labels).increment(amount)
        for name, value in gauges.items():
            self._metric(PREFIX + name, families.GAUGE, self._labels).set(value)
        if is_alive:
            self._num_beats += 1
        beat = self._num_beats if is_alive else heartbeat.STALLED
        self._metric(heartbeat.BEAT_METRIC, families.GAUGE, self._heartbeat_labels).set(beat)

    def _run(self) -> None:
        self._started.wait()
        due_s = time.monotonic()
        while not self._stopping.is_set():
            try:
                self.flush()
            except Exception:
                logger.exception("metrics could not be handed to Triton")
            late_s = time.monotonic() - due_s
            if late_s > HELD_UP_S:
                logger.warning("the process was held up for %.1f s", late_s)
                self.count("held_up_seconds_total", late_s)
            due_s = time.monotonic() + FLUSH_INTERVAL_S
            self._stopping.wait(FLUSH_INTERVAL_S)

    def _metric(self, name: str, kind: Any, labels: dict[str, str]) -> Any:
        if name not in self._metrics:
            description = name.removeprefix(PREFIX).replace("_", " ") + " of a Tritone stage"
            family = self._pb_utils.MetricFamily(name=name, description=description, kind=kind)
            self._families[name] = family
            self._metrics[name] = family.Metric(labels=labels)
        return self._metrics[name]
