# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the command says while it works: a moving line on a terminal, plain lines anywhere else.

Notices go to standard error, so that standard output holds only what was asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tritone.tools.problems import LaunchError
from tritone.tools.triton_server import Progress

# Without a terminal, a wait says that it still waits this often.
PLAIN_INTERVAL_S = 10.0


@contextmanager
def progress_line() -> Iterator[Progress]:
    """A callable that shows what is being waited for."""
    if not sys.stderr.isatty():
        yield _plain_progress()
        return
    from rich.console import Console

    with Console(stderr=True).status("…") as status:
        yield lambda text: status.update(text)


def _plain_progress() -> Progress:
    last_s = -PLAIN_INTERVAL_S
    last_stage = ""

    def show(text: str) -> None:
        nonlocal last_s, last_stage
        stage = text.partition("…")[0]
        now_s = time.monotonic()
        if stage != last_stage or now_s - last_s >= PLAIN_INTERVAL_S:
            print(text, file=sys.stderr, flush=True)
            last_s, last_stage = now_s, stage

    return show


def say(text: str = "") -> None:
    """A notice."""
    print(text, file=sys.stderr, flush=True)


def show_error(error: LaunchError) -> None:
    """What is wrong, the telling lines of a log, and what to do."""
    red, bold, reset = ("\033[31m", "\033[1m", "\033[0m") if sys.stderr.isatty() else ("", "", "")
    say(f"{red}error:{reset} {error.message}")
    if error.details:
        say("\n".join(f"  | {line}" for line in error.details.splitlines()))
    if error.remedy:
        say(f"{bold}what helps:{reset} {error.remedy}")
