# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Loads models again whose process died or stalled: reads heartbeats, asks the plan, does what it says.

Knows one server, which it never starts or stops. What is due is decided in `supervisor_plan`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import NamedTuple

from tritone.backends.core.heartbeat import HeartbeatJudge, StageProcess, read_beats
from tritone.tools.supervisor_plan import MAX_TRIES, RecoveryPlan
from tritone.tools.supervisor_process import StageProcesses
from tritone.tools.supervisor_server import CannotLoad, DoesNotAnswer, SupervisedServer

# Before a process that is there, but silent, is ended. Longer than the gateway takes to call it down, which passes.
STALL_S = 4.5

Say = Callable[[str], None]


class _Outcome(NamedTuple):
    """How a recovery ended."""

    model: str
    reason: str | None  # why the model could not be loaded; none when it was
    took_s: float


class Supervisor:
    """Owns the recoveries under way. `step` does one round and is to be called about twice a second."""

    def __init__(
        self,
        server: SupervisedServer,
        say: Say,
        *,
        processes: StageProcesses | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._say = say
        self._processes = processes or StageProcesses()
        self._clock = clock
        self._judge = HeartbeatJudge(STALL_S)
        self._plan = RecoveryPlan()
        # Models that a recovery works on.
        self._busy: set[str] = set()
        self._outcomes: SimpleQueue[_Outcome] = SimpleQueue()
        self._answered_at_s = clock()

    @property
    def silence_s(self) -> float:
        """How long the server has not answered."""
        return self._clock() - self._answered_at_s

    def step(self) -> None:
        """Look at every model, and start what is due. Blocks for a few seconds at most."""
        self._collect()
        page = self._server.metrics_page()
        now_s = self._clock()
        if page is not None or self._server.is_live():
            self._answered_at_s = now_s
        if page is None:
            return
        beats = read_beats(page)
        self._judge.take(beats, now_s)
        lost = self._judge.lost | {process for process in beats if self._processes.has_died(process)}
        living = {process.model for process in beats.keys() - lost}
        sick = {process.model for process in lost} - living - self._busy
        if sick or not self._plan.is_idle:
            self._treat(sick, living, beats.keys())

    def run(self, interval_s: float, stopping: threading.Event) -> None:
        """Step until `stopping` is set."""
        while not stopping.wait(interval_s):
            self.step()

    def _treat(self, sick: set[str], living: set[str], processes: Iterable[StageProcess]) -> None:
        ready = self._server.ready_models()
        if ready is None:
            return
        # One that the server does not call ready is being loaded or unloaded by somebody.
        decision = self._plan.take(sick & ready, living, self._clock())
        for model in sorted(decision.give_up):
            self._say(
                f"giving up on {model} after {MAX_TRIES} tries: its pipelines answer 503 until it is loaded by hand "
                f"(curl -X POST {self._server.http_url}/v2/repository/models/{model}/load); the server's log says why"
            )
        for model in sorted(decision.reload):
            self._say(f"{model} stopped: loading it again, try {self._plan.num_tries(model)} of {MAX_TRIES}")
            self._busy.add(model)
            doomed = [process for process in processes if process.model == model]
            threading.Thread(target=self._recover, args=(model, doomed), name="recovery", daemon=True).start()

    def _recover(self, model: str, doomed: list[StageProcess]) -> None:
        began_s = self._clock()
        reason: str | None = None
        for process in doomed:
            self._processes.kill(process)
        self._server.unload(model)
        try:
            self._server.load(model)
        except CannotLoad as error:
            reason = str(error)
        except DoesNotAnswer:
            reason = "the server did not answer"
        except Exception as error:
            reason = type(error).__name__
        self._outcomes.put(_Outcome(model, reason, self._clock() - began_s))

    def _collect(self) -> None:
        while not self._outcomes.empty():
            model, reason, took_s = self._outcomes.get()
            self._busy.discard(model)
            self._plan.ended(model, is_loaded=reason is None, now_s=self._clock())
            if reason is None:
                self._say(f"{model} loaded again in {took_s:.1f} s")
            else:
                self._say(f"{model} could not be loaded again: {reason}")
