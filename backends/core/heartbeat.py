# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The heartbeat of a model's process as Triton's metrics page shows it, and the judge of successive readings.

Once a second a loaded model sets a gauge, labelled with its name and process id, to a number that grows while its work
goes on. The server keeps the gauge of a process that died as it was, so silence is what tells; it drops the gauge of a
model that was unloaded in order. Knows neither Triton nor a way to read the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

BEAT_METRIC = "tritone_stage_heartbeat"
MODEL_LABEL = "model"
PROCESS_LABEL = "process"
# In place of a beat: the process answers, but its work does not go on.
STALLED = 0

# Beats come every second and readers look twice a second: a death is known within four.
SILENCE_S = 3.0
READ_INTERVAL_S = 0.5
# What one reading can add to a silence. A reader that was held up itself must not take that for everybody's silence.
MAX_READING_GAP_S = 1.0

_SAMPLE = re.compile(rf"^{BEAT_METRIC}\{{([^}}]*)\}} (\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"\\]*)"')


class StageProcess(NamedTuple):
    """One process of a model. A model that was loaded again has another."""

    model: str
    pid: int


def read_beats(page: str) -> dict[StageProcess, int]:
    """Every heartbeat on a metrics page. What cannot be read is left out."""
    beats: dict[StageProcess, int] = {}
    for labels_text, value in _SAMPLE.findall(page):
        labels = dict(_LABEL.findall(labels_text))
        try:
            beats[StageProcess(labels[MODEL_LABEL], int(labels[PROCESS_LABEL]))] = int(float(value))
        except (KeyError, ValueError, OverflowError):
            continue
    return beats


class HeartbeatJudge:
    """Owns what is known of each process: its last beat, and how long that has not moved.

    Guarantees: a process whose beat moved in the last reading is alive, unless it says itself that it is stalled; one
    whose beat did not move for `silence_s` of watched time is lost; one that is not on the page is neither.
    """

    def __init__(self, silence_s: float = SILENCE_S) -> None:
        self._silence_s = silence_s
        self._beats: dict[StageProcess, int] = {}
        self._silent_s: dict[StageProcess, float] = {}
        self._read_at_s: float | None = None

    def take(self, beats: Mapping[StageProcess, int], now_s: float) -> None:
        """The beats of one reading, at `now_s` of the reader's own monotonic clock."""
        gap_s = 0.0 if self._read_at_s is None else min(max(now_s - self._read_at_s, 0.0), MAX_READING_GAP_S)
        self._read_at_s = now_s
        self._silent_s = {
            process: 0.0 if self._beats.get(process) != beat else self._silent_s[process] + gap_s
            for process, beat in beats.items()
        }
        self._beats = dict(beats)

    @property
    def processes(self) -> frozenset[StageProcess]:
        """Every process of the last reading."""
        return frozenset(self._beats)

    @property
    def lost(self) -> frozenset[StageProcess]:
        """Processes that are dead or stalled."""
        return frozenset(
            process
            for process, beat in self._beats.items()
            if beat == STALLED or self._silent_s[process] > self._silence_s
        )
