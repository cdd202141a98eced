# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Processes are killed, stopped and crashed under live streams: every stream ends with a clear error, readiness tells,
the models or the server come back, and the gateway is the same process throughout.

Bounds are hang guards; the figures are printed (`pytest -s`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles.tiny_checkpoint import write_tiny_llama

from tritone.backends.core.heartbeat import read_beats
from tritone.ensembles.render import write_repository
from tritone.tools import supervisor_plan
from tritone.tools.pipelines import build_pipeline
from tritone.tools.ports import free_ports
from tritone.tools.stack import WATCH_S, Stack
from tritone.tools.supervisor_server import SupervisedServer

MODEL = "watched"
THINKER = "watched_thinker"
SETTINGS = ["thinker.max_rows=40", "thinker.chunk_interval_ms=50", "thinker.num_threads=1"]
BODY: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "ignore_eos": True}
SHORT = BODY | {"max_tokens": 8, "seed": 3}
LONG = BODY | {"max_tokens": 7500, "stream": True}
HANG_S = 100.0


def write_watched_repository(folder: Path) -> Path:
    write_tiny_llama(folder / "tiny")
    build = build_pipeline("smollm2_chat", checkpoint=str(folder / "tiny"), served_name=MODEL, settings=SETTINGS)
    write_repository([build], folder / "repository")
    return folder / "repository"


class Watched:
    """A running stack, with a thread that does what `tritone serve` does."""

    def __init__(self, stack: Stack, repository: Path, said: list[str]) -> None:
        self.stack = stack
        self.repository = repository
        self.said = said
        self.url = stack.gateway.url
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(WATCH_S):
            self.stack.step()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(HANG_S)

    def is_ready(self) -> bool:
        return httpx.get(f"{self.url}/health/ready", timeout=HANG_S).status_code == 200

    def short_answer(self) -> Any:
        answer = httpx.post(f"{self.url}/v1/chat/completions", json=SHORT, timeout=HANG_S)
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"]

    def pids_of(self, model: str) -> set[int]:
        page = SupervisedServer(self.stack.server.http_url, self.stack.server.metrics_url).metrics_page()
        assert page is not None
        return {process.pid for process in read_beats(page) if process.model == model and is_running(process.pid)}

    def pid_of(self, model: str) -> int:
        return max(self.pids_of(model))

    def gateway_pid(self) -> int:
        return int(self.stack.gateway._process._guard.pid)  # type: ignore[union-attr]


class Streams:
    """Live streams through the gateway, and how each ended."""

    def __init__(self, url: str, count: int) -> None:
        self._url = url
        self._started = threading.Semaphore(0)
        self.last_events: list[str] = []
        self.statuses: list[int] = []
        self.ended_at_s: list[float] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            assert self._started.acquire(timeout=HANG_S)

    def _run(self) -> None:
        last, has_started = "", False
        with httpx.stream("POST", f"{self._url}/v1/chat/completions", json=LONG, timeout=HANG_S) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    last = line.removeprefix("data: ")
                    # The first event says only that the request was accepted.
                    if not has_started and '"content":"' in last:
                        has_started = True
                        self._started.release()
        self.ended_at_s.append(time.monotonic())
        self.last_events.append(last)
        self.statuses.append(answer.status_code)

    def errors(self) -> list[str]:
        """The messages of the errors that ended the streams; every stream must have one."""
        for thread in self._threads:
            thread.join(HANG_S)
            assert not thread.is_alive(), "a stream hangs"
        return [json.loads(event)["error"]["message"] for event in self.last_events]


def is_running(pid: int) -> bool:
    try:
        return b"stub" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def seconds_until(condition: Callable[[], bool], since_s: float) -> float:
    while not condition():
        assert time.monotonic() - since_s < HANG_S, "hangs"
        time.sleep(0.02)
    return time.monotonic() - since_s


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    repository = write_watched_repository(folder)
    run_folder = folder / "run"
    run_folder.mkdir()
    said: list[str] = []
    with Stack.start(repository, run_folder, say=said.append) as stack:
        running = Watched(stack, repository, said)
        try:
            yield running
        finally:
            running.stop()
            print("\n".join(["", *said]))
    prefix = stack.server.options.region_prefix
    assert not list(Path("/dev/shm").glob(f"{prefix}*")), "the server left shared memory behind"


def lose_under_streams(
    watched: Watched, count: int, lose: Callable[[], None], what: str, is_back: Callable[[], bool] = lambda: False
) -> list[str]:
    """Break something under live streams; the stages of recovery are timed. Gives the errors of the streams.

    What loads within a moment may be back before anybody could see that it was not ready: `is_back` says so.
    """
    seconds_until(watched.is_ready, time.monotonic())
    before, gateway = watched.short_answer(), watched.gateway_pid()
    streams = Streams(watched.url, count)
    began_s = time.monotonic()
    lose()
    not_ready_s = seconds_until(lambda: not watched.is_ready() or is_back(), began_s)
    refused = httpx.post(f"{watched.url}/v1/chat/completions", json=SHORT, timeout=HANG_S)
    errors = streams.errors()
    ended_s = max(streams.ended_at_s) - began_s
    ready_s = seconds_until(watched.is_ready, began_s)
    print(f"\n{what}: not ready {not_ready_s:.1f} s, {count} streams ended {ended_s:.1f} s, ready {ready_s:.1f} s")
    # An orchestrator may be back already.
    if refused.status_code != 200:
        assert refused.status_code == 503 and float(refused.headers["retry-after"]) >= 1, refused.text
    assert watched.short_answer() == before
    assert watched.gateway_pid() == gateway and not watched.stack.gateway.has_ended()
    return errors


@pytest.mark.parametrize(
    ("model", "number", "count"),
    [
        (THINKER, signal.SIGKILL, 32),
        (THINKER, signal.SIGSTOP, 4),
        (MODEL, signal.SIGSEGV, 4),
        (MODEL, signal.SIGSTOP, 4),
    ],
)
def test_a_lost_process_under_live_streams(watched: Watched, model: str, number: signal.Signals, count: int) -> None:
    seconds_until(watched.is_ready, time.monotonic())
    pid = watched.pid_of(model)

    def is_back() -> bool:
        # An orchestrator has no weights; a thinker takes seconds, and those must show.
        return model == MODEL and bool(watched.pids_of(model) - {pid})

    errors = lose_under_streams(watched, count, lambda: os.kill(pid, number), f"{number.name} of {model}", is_back)
    # The orchestrator sees its stage's link break at once; everything else the gateway notices by itself.
    assert all(f"The stage {model} stopped; try again." == error or "a stage of" in error for error in errors), errors
    assert not is_running(pid)


def test_the_server_dies_under_live_streams(watched: Watched) -> None:
    errors = lose_under_streams(watched, 4, watched.stack.server.kill, "SIGKILL of tritonserver")
    assert all("try again" in error for error in errors)


def test_given_up_after_three_tries(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_plan, "WAITS_S", (0.5, 0.5, 0.5))
    seconds_until(watched.is_ready, time.monotonic())
    code = watched.repository / THINKER / "1" / "model.py"
    text = code.read_text()
    code.write_text("raise RuntimeError('broken on purpose')\n")
    del watched.said[:]
    os.kill(watched.pid_of(THINKER), signal.SIGKILL)
    seconds_until(lambda: any("giving up" in line for line in watched.said), time.monotonic())
    refused = httpx.post(f"{watched.url}/v1/chat/completions", json=SHORT, timeout=HANG_S)
    assert refused.status_code == 503, refused.text
    assert not watched.is_ready()
    code.write_text(text)
    SupervisedServer(watched.stack.server.http_url, watched.stack.server.metrics_url).load(THINKER)
    seconds_until(watched.is_ready, time.monotonic())
    watched.short_answer()
    [given_up] = [line for line in watched.said if "giving up" in line]
    assert given_up.startswith(f"giving up on {THINKER} after 3 tries")
    assert len([line for line in watched.said if "could not be loaded again" in line]) == 3
    assert len([line for line in watched.said if line.startswith(THINKER) and "try " in line]) == 3


def test_sigterm_under_load_ends_in_order(tmp_path: Path) -> None:
    repository = write_watched_repository(tmp_path)
    [port] = free_ports(1)
    environment = {**os.environ, "TRITONE_STATE_DIR": str(tmp_path / "state"), "TRITONE_DRAIN_TIMEOUT_S": "1"}
    with (tmp_path / "said").open("w") as said:
        served = subprocess.Popen(
            [sys.executable, "-m", "tritone.tools.cli", "serve", "--repository", str(repository), "--port", str(port)],
            env=environment,
            stderr=said,
        )
        try:
            url = f"http://127.0.0.1:{port}"

            def is_ready() -> bool:
                try:
                    return httpx.get(f"{url}/health/ready", timeout=HANG_S).status_code == 200
                except httpx.TransportError:
                    return False

            seconds_until(is_ready, time.monotonic())
            streams = Streams(url, 8)
            began_s = time.monotonic()
            served.terminate()
            assert served.wait(HANG_S) == 0
        finally:
            served.kill()
            served.wait()
    took_s = time.monotonic() - began_s
    errors = streams.errors()
    print(f"\nSIGTERM: streams ended {max(streams.ended_at_s) - began_s:.1f} s, all ended {took_s:.1f} s")
    assert set(errors) == {"The server is stopping."}
    [log] = (tmp_path / "state").glob("runs/*/tritonserver.log")
    found = re.search(r"shm-region-prefix-name=(\w+)", log.read_text())
    assert found is not None and not list(Path("/dev/shm").glob(f"{found[1]}*"))
