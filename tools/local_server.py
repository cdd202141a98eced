# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Find the gateway that runs on this machine, or run one for the length of a block."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tritone.tools.console import progress_line, say
from tritone.tools.ports import LOOPBACK
from tritone.tools.serving import DEFAULT_PORT, render_for_run
from tritone.tools.stack import Stack
from tritone.tools.state import new_run_folder


def running_server() -> str | None:
    """Base URL (with /v1) of a gateway at TRITONE_PORT of this machine; None when none answers there."""
    url = f"http://{LOOPBACK}:{os.environ.get('TRITONE_PORT') or DEFAULT_PORT}"
    try:
        with urllib.request.urlopen(f"{url}/health/live", timeout=2.0):
            return f"{url}/v1"
    except (OSError, ValueError, urllib.error.URLError):
        return None


@contextmanager
def temporary_server(purpose: str, pipelines: Sequence[str] = (), *, announce: bool = False) -> Iterator[Stack]:
    """Everything on free ports with demo checkpoints, stopped at the end of the block."""
    if announce:
        say("no server is running; starting one for this question (`tritone serve` keeps one running)")
    run_folder = new_run_folder(purpose)
    with progress_line() as progress:
        chosen = render_for_run(run_folder, pipelines, progress=progress)
        stack = Stack.start(chosen.repository, run_folder, models=chosen.models, progress=progress)
    with stack:
        yield stack
