# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the server as a child and outlives whoever started us, to leave nothing behind.

    python -I -S server_guard.py REGION_PREFIX|- GRACE_SECONDS COMMAND...

Standard input is a pipe whose other end the launcher holds. When it closes (the launcher stopped us, crashed or was
killed), or on SIGTERM, the server gets SIGTERM; if it is still there after GRACE_SECONDS its whole process group is
killed. In every case the shared-memory regions with our prefix are removed, and the server's exit status is ours.
Should this process be killed itself, the kernel sends SIGTERM to the server.

Standard library only and no import of tritone: it runs without site-packages, so it starts in 20 ms.
"""

import ctypes
import glob
import os
import select
import signal
import subprocess
import sys
import time

# In place of REGION_PREFIX for a server that has no shared memory.
NO_REGIONS = "-"
PR_SET_PDEATHSIG = 1
POLL_S = 0.2


def _die_with_guard(guard_pid: int) -> None:
    """In the server's process, before exec: SIGTERM when the guard ends, even if it has ended already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != guard_pid:
        os._exit(1)


class _StopFlag:
    """Set by SIGTERM. Listens from its creation, so that no signal finds the guard unprepared."""

    def __init__(self) -> None:
        self.is_set = False
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.is_set = True


def _wait_for_end(server: "subprocess.Popen[bytes]", stop: _StopFlag) -> None:
    """Return when the server has ended, or when it should."""
    while server.poll() is None and not stop.is_set:
        readable, _, _ = select.select([0], [], [], POLL_S)
        if readable and not os.read(0, 64):
            return


def _stop(server: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """SIGTERM, then SIGKILL to whatever is left of the server's process group."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(grace_s)
        except subprocess.TimeoutExpired:
            print(f"the server did not end within {grace_s:.0f} s and is killed", file=sys.stderr, flush=True)
    # The stubs are in the same group; a stub whose server has gone ends by itself, but not always at once.
    deadline = time.monotonic() + 2.0
    while _group_lives(server.pid) and server.poll() is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    if _group_lives(server.pid):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _remove_regions(prefix: str) -> None:
    if prefix == NO_REGIONS:
        return
    for path in glob.glob(f"/dev/shm/{glob.escape(prefix)}*"):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def main(arguments: list[str]) -> int:
    """Run until the server ends or has to."""
    prefix, grace_s, command = arguments[0], float(arguments[1]), arguments[2:]
    if not prefix:
        raise SystemExit("an empty region prefix would remove everybody's shared memory")
    guard_pid = os.getpid()
    stop = _StopFlag()
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        process_group=0,
        # Safe here: this process has one thread.
        preexec_fn=lambda: _die_with_guard(guard_pid),
    )
    print(f"server pid {server.pid}", flush=True)
    try:
        _wait_for_end(server, stop)
    finally:
        _stop(server, grace_s)
        _remove_regions(prefix)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
