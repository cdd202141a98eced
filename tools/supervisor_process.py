# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The processes of models as this machine shows them: which have died, and how to end one that is stuck.

A process is believed to be a model's only when its command line says so: in a container with process ids of its own
the number on the metrics page is nobody's, or somebody else's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from tritone.backends.core.heartbeat import StageProcess

STUB = b"triton_python_backend_stub"
GONE_WITHIN_S = 2.0


class StageProcesses:
    """Owns which processes were seen alive: one that was never seen cannot be said to have died."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._seen: set[StageProcess] = set()

    def has_died(self, process: StageProcess) -> bool:
        """Whether the process was there before and is no more. False for one that cannot be seen from here."""
        if self._is_there(process):
            self._seen.add(process)
            return False
        return process in self._seen

    def kill(self, process: StageProcess) -> None:
        """End the process at once, if it is there, and wait until it has gone."""
        if not self._is_there(process):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        deadline = time.monotonic() + GONE_WITHIN_S
        while self._is_there(process) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _is_there(self, process: StageProcess) -> bool:
        # A process that has died but was not waited for has an empty command line.
        try:
            command = (self._proc / str(process.pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return (
            len(command) > 1
            and command[0].endswith(STUB)
            and process.model.encode() in command[1].split(b"/")
        )
