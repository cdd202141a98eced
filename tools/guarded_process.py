# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A child process that never outlives us, whatever ends us; the work is done by `server_guard.py`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritone.tools import server_guard


class GuardedProcess:
    """Owns one guard and through it one server. The server's output goes to the end of `log_path`."""

    def __init__(self, log_path: Path, grace_s: float, region_prefix: str | None = None) -> None:
        self.log_path = log_path
        self._grace_s = grace_s
        self._region_prefix = region_prefix
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        """Start `command` in `folder`; returns at once."""
        if self._guard is not None:
            raise RuntimeError("this process was started before")
        guard = [sys.executable, "-I", "-S", server_guard.__file__]
        with self.log_path.open("ab") as log:
            log.write((" ".join(command) + "\n").encode())
            log.flush()
            self._guard = subprocess.Popen(
                [*guard, self._region_prefix or server_guard.NO_REGIONS, str(self._grace_s), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                # Ctrl-C in the terminal reaches the launcher alone, which stops things in order.
                start_new_session=True,
            )

    @property
    def exit_status(self) -> int | None:
        """The server's exit status; None while it runs or before it was started."""
        return None if self._guard is None else self._guard.poll()

    def has_ended(self) -> bool:
        """Whether the server is not running."""
        return self._guard is None or self._guard.poll() is not None

    def kill(self) -> None:
        """End a server that no longer listens to SIGTERM, at once. `stop` does the rest."""
        if self._guard is None:
            return
        children = Path(f"/proc/{self._guard.pid}/task/{self._guard.pid}/children")
        with contextlib.suppress(OSError):
            for pid in children.read_text(encoding="ascii").split():
                os.kill(int(pid), signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server and wait until nothing of it is left. Does nothing when it was not started."""
        if self._guard is None:
            return
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()
