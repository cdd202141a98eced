# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Where Tritone keeps files of its own: one folder per run with its logs, and a cache.

`TRITONE_STATE_DIR`, else `$XDG_STATE_HOME/tritone`, else `~/.local/state/tritone`.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

# Logs of this many ended runs stay; older ones go when a new run begins.
MAX_KEPT_RUNS = 10
PID_FILE = "launcher.pid"


def state_folder() -> Path:
    """The state directory, created when it is missing."""
    chosen = os.environ.get("TRITONE_STATE_DIR")
    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(chosen) if chosen else (Path(base) if base else Path.home() / ".local" / "state") / "tritone"
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def new_run_folder(purpose: str) -> Path:
    """A fresh folder for one run of a server. It keeps the logs and is the server's working directory.

    Python puts that directory first on the import path: nothing in it may have a name that can be imported.
    """
    runs = state_folder() / "runs"
    runs.mkdir(exist_ok=True)
    _forget_old_runs(runs)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = runs / f"{stamp}-{purpose}-{os.getpid()}"
    attempt = 1
    while True:
        try:
            folder.mkdir()
            break
        except FileExistsError:
            attempt += 1
            folder = runs / f"{stamp}-{purpose}-{os.getpid()}-{attempt}"
    (folder / PID_FILE).write_text(str(os.getpid()), encoding="ascii")
    return folder


def _forget_old_runs(runs: Path) -> None:
    ended = [folder for folder in sorted(runs.iterdir(), key=lambda path: path.name) if not _is_live(folder)]
    for folder in ended[: max(0, len(ended) - MAX_KEPT_RUNS + 1)]:
        shutil.rmtree(folder, ignore_errors=True)


def _is_live(run: Path) -> bool:
    """Whether the process that began this run still exists."""
    try:
        pid = int((run / PID_FILE).read_text(encoding="ascii"))
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
