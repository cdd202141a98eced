# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What a decoder may still do when a file has taken it over: next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

# Runs in a process of its own; each attempt says what came of it.
ATTEMPTS = textwrap.dedent(
    """
    import ctypes, errno, json, os, resource, signal, socket, sys, threading
    from tritone.gateway.media.sandbox import JobLimits, filter_system_calls, isolate_worker, limit_job

    readable = os.open("/etc/hostname", os.O_RDONLY)
    scratch = os.open(sys.argv[1], os.O_RDWR)
    parent = os.getppid()
    isolation = isolate_worker()
    limit_job(JobLimits(64 << 20, 30))
    if sys.argv[2] == "filter":
        filter_system_calls()

    def thread():
        started = threading.Thread(target=lambda: None)
        started.start()

    attempts = {
        "open": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "create": lambda: os.open("/tmp/tritone-media-escape", os.O_CREAT | os.O_WRONLY),
        "write": lambda: os.write(scratch, b"x"),
        "memory file": lambda: os.memfd_create("x"),
        "socket": lambda: socket.socket(),
        "pipe": lambda: os.pipe(),
        "duplicate": lambda: os.dup(readable),
        "fork": lambda: os.fork() or os._exit(0),
        "thread": thread,
        "run": lambda: os.execv("/bin/true", ["true"]),
        "signal": lambda: os.kill(parent, 0),
        "group": lambda: os.setpgid(0, 0),
        "session": lambda: os.setsid(),
        "link": lambda: os.symlink("/etc/passwd", "/tmp/tritone-media-escape"),
        "memory": lambda: bytearray(80 << 20),
        "more files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        "more memory": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
        "root": lambda: os.setuid(0),
        "priority": lambda: os.nice(-5),
    }
    if sys.argv[2] == "limits":
        # Limits stop no program from taking this one's place; it finds every file closed.
        del attempts["run"]
    outcome = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            outcome[name] = "done"
        except (OSError, MemoryError, RuntimeError, ValueError) as error:
            outcome[name] = type(error).__name__
    print(json.dumps({"isolation": isolation._asdict(), "outcome": outcome}), flush=True)
    """
)
HELD_BY_LIMITS = ("open", "create", "write", "memory file", "socket", "pipe", "duplicate", "memory")
HELD_FOR_ANOTHER_USER = ("fork", "thread", "signal", "more files", "more memory", "root", "priority")


def attempts(scratch: str, mode: str) -> dict[str, dict[str, object]]:
    result = subprocess.run(
        [sys.executable, "-I", "-c", ATTEMPTS, scratch, mode], capture_output=True, text=True, timeout=60, check=True
    )
    report: dict[str, dict[str, object]] = json.loads(result.stdout)
    return report


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("scratch") / "file"
    path.write_bytes(b"before")
    return str(path)


def test_limits_alone_hold_it(scratch: str) -> None:
    report = attempts(scratch, "limits")
    held = HELD_BY_LIMITS + (HELD_FOR_ANOTHER_USER if report["isolation"]["own_user"] else ())
    assert [name for name in held if report["outcome"][name] == "done"] == []
    with open(scratch, "rb") as file:
        assert file.read() == b"before"


def test_the_filter_of_system_calls_holds_the_rest(scratch: str) -> None:
    report = attempts(scratch, "filter")
    if not report["isolation"]["system_call_filter"]:
        pytest.skip("this kernel filters no system calls")
    assert [name for name, outcome in report["outcome"].items() if outcome == "done"] == []


def test_a_worker_of_root_is_another_user(scratch: str) -> None:
    report = attempts(scratch, "limits")
    assert report["isolation"]["no_new_privileges"]
    assert report["isolation"]["own_user"] is (os.geteuid() == 0)
