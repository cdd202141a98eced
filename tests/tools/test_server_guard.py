# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The guard leaves nothing behind: not after a stop, not after kill -9 of the launcher, not with a stubborn server."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tritone.tools import server_guard
from tritone.tools.guarded_process import GuardedProcess

# Starts a child in its own group as Triton starts its stubs, makes a region, says who it is, waits.
SERVER = """
import os, signal, subprocess, sys, time
stubborn, prefix, note = sys.argv[1:]
if stubborn == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open("/dev/shm/" + prefix + "_region", "w").close()
open(note + ".part", "w").write(f"{os.getpid()} {child.pid}")
os.rename(note + ".part", note)
time.sleep(60)
"""
# Starts a guarded server the way the launcher does, and then does nothing.
LAUNCHER = """
import sys, time
from pathlib import Path
from tritone.tools.guarded_process import GuardedProcess
log, prefix, *command = sys.argv[1:]
process = GuardedProcess(Path(log), 1.0, prefix)
process.start(command, dict(__import__("os").environ), Path(log).parent)
time.sleep(60)
"""


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        # A zombie counts as gone: who inherited it has yet to look.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Scene:
    """One guarded server and everything to look for after it."""

    def __init__(self, folder: Path) -> None:
        self.prefix = f"tritone_test_{secrets.token_hex(6)}"
        self.region = Path(f"/dev/shm/{self.prefix}_region")
        self.note = folder / "pids"
        self.log = folder / "log"

    def command(self, manners: str = "polite") -> list[str]:
        return [sys.executable, "-c", SERVER, manners, self.prefix, str(self.note)]

    def pids(self) -> list[int]:
        wait_for(self.note.exists)
        return [int(pid) for pid in self.note.read_text().split()]

    def assert_clean(self, pids: list[int]) -> None:
        wait_for(lambda: not any(map(is_alive, pids)))
        wait_for(lambda: not self.region.exists())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.region.unlink(missing_ok=True)


@pytest.mark.parametrize("manners", ["polite", "stubborn"])
def test_a_stop_leaves_nothing(scene: Scene, manners: str) -> None:
    neighbour = Path(f"/dev/shm/tritone_test_neighbour_{secrets.token_hex(4)}")
    neighbour.touch()
    process = GuardedProcess(scene.log, 0.5, scene.prefix)
    process.start(scene.command(manners), os.environ, scene.log.parent)
    pids = scene.pids()
    assert all(map(is_alive, pids)) and scene.region.exists() and not process.has_ended()
    process.stop()
    assert not any(map(is_alive, pids)) and not scene.region.exists() and process.has_ended()
    assert neighbour.exists()
    neighbour.unlink()
    assert ("is killed" in scene.log.read_text()) == (manners == "stubborn")


def test_kill_nine_of_the_launcher_leaves_nothing(scene: Scene) -> None:
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(scene.log), scene.prefix, *scene.command()])
    pids = scene.pids()
    launcher.kill()
    launcher.wait()
    scene.assert_clean(pids)


def test_kill_nine_of_the_guard_ends_the_server(scene: Scene) -> None:
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", server_guard.__file__, scene.prefix, "1", *scene.command()],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert guard.stdin is not None
    server, child = scene.pids()
    guard.kill()
    guard.wait()
    guard.stdin.close()
    wait_for(lambda: not is_alive(server))
    os.kill(child, signal.SIGKILL)  # Triton's stubs notice that their server has gone; this child does not


def test_a_term_signal_to_the_guard_stops_too(scene: Scene) -> None:
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", server_guard.__file__, scene.prefix, "1", *scene.command()],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert guard.stdin is not None
    pids = scene.pids()
    guard.terminate()
    assert guard.wait(10) == 128 + signal.SIGTERM
    guard.stdin.close()
    scene.assert_clean(pids)


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(3)", 3), ("import os; os.abort()", 128 + 6)])
def test_the_servers_status_is_the_guards(scene: Scene, code: str, status: int) -> None:
    process = GuardedProcess(scene.log, 0.5)
    process.start([sys.executable, "-c", code], os.environ, scene.log.parent)
    wait_for(process.has_ended)
    assert process.exit_status == status
    process.stop()


def test_an_empty_prefix_is_refused() -> None:
    # With it the guard would remove every region of the machine.
    with pytest.raises(SystemExit):
        server_guard.main(["", "1", "true"])


def test_stopping_what_was_never_started_does_nothing(scene: Scene) -> None:
    GuardedProcess(scene.log, 1.0).stop()
