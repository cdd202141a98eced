# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What a stage hands to Triton: counts once, and a heartbeat that stands still when its work does."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from tritone.backends.core import heartbeat, metrics
from tritone.backends.core.metrics import StageMetrics


class Recorder:
    """`pb_utils` with a metrics registry that remembers."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self.beats: list[float] = []
        self.fails = 0
        recorder = self

        class MetricFamily:
            COUNTER, GAUGE = "counter", "gauge"

            def __init__(self, name: str, description: str, kind: str) -> None:
                self.name = name

            def Metric(self, labels: dict[str, str]) -> Any:  # noqa: N802 - Triton's name
                key = (self.name, tuple(sorted(labels.items())))

                class Metric:
                    def increment(self, amount: float) -> None:
                        recorder.values[key] = recorder.values.get(key, 0.0) + amount

                    def set(self, value: float) -> None:
                        if recorder.fails:
                            recorder.fails -= 1
                            raise RuntimeError("the server is busy")
                        recorder.values[key] = value
                        if key[0] == heartbeat.BEAT_METRIC:
                            recorder.beats.append(value)

                return Metric()

        self.MetricFamily = MetricFamily


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FLUSH_INTERVAL_S", 0.01)


def wait_for_beats(recorder: Recorder, count: int) -> None:
    deadline = time.monotonic() + 5
    while len(recorder.beats) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_no_beat_before_the_model_has_loaded_and_none_after_the_stop() -> None:
    recorder = Recorder()
    stage = StageMetrics(recorder, "m")
    time.sleep(0.05)
    assert not recorder.values
    stage.start(lambda: True)
    wait_for_beats(recorder, 3)
    assert recorder.beats[:3] == [1, 2, 3]
    labels = (("model", "m"), ("process", str(os.getpid())))
    assert (heartbeat.BEAT_METRIC, labels) in recorder.values
    stage.stop()
    seen = len(recorder.beats)
    time.sleep(0.05)
    assert len(recorder.beats) == seen


def test_counts_are_handed_over_once() -> None:
    recorder = Recorder()
    stage = StageMetrics(recorder, "m")
    stage.count("ok_total")
    stage.count("ok_total", 2)
    stage.set("rows", 4)
    stage.start(lambda: True)
    wait_for_beats(recorder, 3)
    stage.stop()
    labels = (("model", "m"),)
    assert recorder.values["tritone_stage_ok_total", labels] == 3
    assert recorder.values["tritone_stage_rows", labels] == 4


def test_a_stalled_model_says_so_and_beats_on_when_it_recovers() -> None:
    recorder, alive = Recorder(), [True]
    stage = StageMetrics(recorder, "m")
    stage.start(lambda: alive[0])
    wait_for_beats(recorder, 2)
    alive[0] = False
    wait_for_beats(recorder, len(recorder.beats) + 3)
    assert recorder.beats[-1] == heartbeat.STALLED
    last = max(recorder.beats)
    alive[0] = True
    wait_for_beats(recorder, len(recorder.beats) + 3)
    stage.stop()
    assert recorder.beats[-1] > last


def test_a_fault_of_the_server_does_not_end_the_beats() -> None:
    recorder = Recorder()
    recorder.fails = 3
    stage = StageMetrics(recorder, "m")
    stage.start(lambda: True)
    wait_for_beats(recorder, 2)
    stage.stop()


def test_a_load_that_fails_ends_the_thread() -> None:
    stage = StageMetrics(Recorder(), "m")
    stage.stop()
    assert not stage._thread.is_alive()


def test_a_process_that_is_held_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "HELD_UP_S", 0.2)
    recorder, holds = Recorder(), [0.0, 0.0, 0.3, 0.0]

    def hold() -> bool:
        time.sleep(holds.pop(0) if holds else 0.0)
        return True

    stage = StageMetrics(recorder, "m")
    stage.start(hold)
    wait_for_beats(recorder, 6)
    stage.stop()
    assert 0.3 <= recorder.values["tritone_stage_held_up_seconds_total", (("model", "m"),)] < 5
