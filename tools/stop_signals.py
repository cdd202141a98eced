# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Turn the first Ctrl-C, SIGTERM or SIGHUP into one exception, and later ones into nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Somebody asked us to end. Not an `Exception`, so that no handler of errors takes it for one."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Within the block the first signal raises `StopRequested` where the main thread is; the clean-up that follows
    is not disturbed by impatience."""

    def first(_number: int, _frame: object) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise StopRequested

    before = {each: signal.signal(each, first) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
