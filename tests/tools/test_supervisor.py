# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The supervisor over a server and processes that only play: what it notices, ends, loads and says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tritone.backends.core.heartbeat import StageProcess
from tritone.tools.supervisor import STALL_S, Supervisor
from tritone.tools.supervisor_plan import WAITS_S
from tritone.tools.supervisor_process import StageProcesses
from tritone.tools.supervisor_server import CannotLoad, DoesNotAnswer, SupervisedServer


class PlayedServer(SupervisedServer):
    """Models with processes that beat, until one is told not to."""

    def __init__(self) -> None:
        self.http_url = "http://played"
        self.beats = {StageProcess("chat", 1): 1, StageProcess("thinker", 2): 1}
        self.silent: set[StageProcess] = set()
        self.ready = {"chat", "thinker"}
        self.is_away = False
        self.is_dead = False
        self.done: list[str] = []
        self.fault: Exception | None = None
        self.next_pid = 10

    def metrics_page(self) -> str | None:
        if self.is_away:
            return None
        for process in self.beats:
            self.beats[process] += process not in self.silent
        return "".join(
            f'tritone_stage_heartbeat{{model="{model}",process="{pid}"}} {beat}\n'
            for (model, pid), beat in self.beats.items()
        )

    def is_live(self) -> bool:
        return not self.is_dead

    def ready_models(self) -> frozenset[str]:
        return frozenset(self.ready)

    def unload(self, model: str) -> None:
        self.done.append(f"unload {model}")
        self.ready.discard(model)

    def load(self, model: str) -> None:
        self.done.append(f"load {model}")
        if self.fault is not None:
            raise self.fault
        self.ready.add(model)
        self.next_pid += 1
        self.beats[StageProcess(model, self.next_pid)] = 1


class PlayedProcesses(StageProcesses):
    def __init__(self) -> None:
        self.dead: set[StageProcess] = set()
        self.killed: list[StageProcess] = []

    def has_died(self, process: StageProcess) -> bool:
        return process in self.dead

    def kill(self, process: StageProcess) -> None:
        self.killed.append(process)


class Scene:
    def __init__(self) -> None:
        self.server = PlayedServer()
        self.processes = PlayedProcesses()
        self.said: list[str] = []
        self.now_s = 100.0
        self.supervisor = Supervisor(
            self.server, self.said.append, processes=self.processes, clock=lambda: self.now_s
        )

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            self.now_s += 0.5
            self.supervisor.step()
            wait_for(lambda: not recoveries())


def recoveries() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "recovery"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_nothing_is_done_while_all_is_well(scene: Scene) -> None:
    scene.pass_time(30)
    assert not scene.said and not scene.server.done


def test_a_process_that_died_is_replaced_at_once(scene: Scene) -> None:
    scene.pass_time(2)
    scene.server.silent.add(StageProcess("thinker", 2))
    scene.processes.dead.add(StageProcess("thinker", 2))
    scene.pass_time(0.5)
    assert scene.server.done == ["unload thinker", "load thinker"]
    scene.pass_time(30)
    assert scene.server.done == ["unload thinker", "load thinker"]
    assert scene.said[0] == "thinker stopped: loading it again, try 1 of 3"
    assert scene.said[1].startswith("thinker loaded again in") and len(scene.said) == 2


def test_a_process_that_is_silent_is_killed_after_a_while(scene: Scene) -> None:
    scene.pass_time(2)
    scene.server.silent.add(StageProcess("chat", 1))
    scene.pass_time(STALL_S)
    assert not scene.processes.killed
    scene.pass_time(1)
    assert scene.processes.killed == [StageProcess("chat", 1)]
    assert scene.server.done == ["unload chat", "load chat"]


def test_a_model_that_somebody_unloads_or_loads_is_left_alone(scene: Scene) -> None:
    scene.pass_time(2)
    scene.server.silent.add(StageProcess("thinker", 2))
    scene.server.ready.discard("thinker")
    scene.pass_time(30)
    assert not scene.server.done


@pytest.mark.parametrize("fault", [CannotLoad("no such weights"), DoesNotAnswer(), ValueError("x")])
def test_a_model_that_cannot_be_loaded_is_given_up(scene: Scene, fault: Exception) -> None:
    scene.pass_time(2)
    scene.server.fault = fault
    scene.processes.dead.add(StageProcess("thinker", 2))
    del scene.server.beats[StageProcess("chat", 1)]
    scene.pass_time(sum(WAITS_S) + 5)
    assert scene.server.done == ["unload thinker", "load thinker"] * 3
    [given_up] = [line for line in scene.said if "giving up" in line]
    assert given_up == scene.said[-1] and given_up.startswith("giving up on thinker after 3 tries")
    scene.pass_time(60)
    assert scene.said[-1] == given_up
    # Loaded by hand it counts as well again, and later as fresh.
    scene.server.fault = None
    scene.server.load("thinker")
    scene.pass_time(310)
    assert scene.said[-1] == given_up
    successor = StageProcess("thinker", scene.server.next_pid)
    scene.processes.dead.add(successor)
    scene.pass_time(1)
    assert "try 1 of 3" in scene.said[-2]


def test_two_models_recover_side_by_side(scene: Scene) -> None:
    scene.pass_time(2)
    scene.processes.dead |= set(scene.server.beats)
    scene.pass_time(1)
    assert sorted(scene.server.done) == ["load chat", "load thinker", "unload chat", "unload thinker"]


def test_a_server_that_is_away_is_counted(scene: Scene) -> None:
    scene.pass_time(2)
    scene.server.is_away = True
    scene.pass_time(10)
    assert scene.supervisor.silence_s == 0
    scene.server.is_dead = True
    scene.pass_time(10)
    assert scene.supervisor.silence_s == 10 and not scene.server.done


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[StageProcess]:
    """A process that looks like a model's."""
    executable = tmp_path / "triton_python_backend_stub"
    executable.symlink_to(sys.executable)
    script = tmp_path / "thinker" / "1" / "model.py"
    script.parent.mkdir(parents=True)
    script.write_text("import time\ntime.sleep(60)\n")
    process = subprocess.Popen([executable, script])
    wait_for(lambda: b"thinker" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
    yield StageProcess("thinker", process.pid)
    process.kill()
    process.wait()


def test_only_a_stub_of_that_model_is_seen_and_killed(stub: StageProcess) -> None:
    processes = StageProcesses()
    strangers = (StageProcess("thinke", stub.pid), StageProcess("thinker", os.getpid()), StageProcess("x", 1 << 30))
    for stranger in strangers:
        assert not processes.has_died(stranger)
        processes.kill(stranger)
    assert not processes.has_died(stub)
    processes.kill(stub)
    assert processes.has_died(stub)
    # One that was never seen may be a number of another container.
    assert not StageProcesses().has_died(stub)
