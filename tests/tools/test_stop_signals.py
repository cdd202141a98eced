# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The first signal ends the block, later ones do not disturb its clean-up, and handlers are put back."""

from __future__ import annotations

import os
import signal

import pytest

from tritone.tools.stop_signals import SIGNALS, StopRequested, stop_on_signals


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_block_once(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    cleaned_up = False
    with pytest.raises(StopRequested):
        with stop_on_signals():
            try:
                os.kill(os.getpid(), number)
                raise AssertionError("the signal did nothing")
            finally:
                for each in SIGNALS:
                    os.kill(os.getpid(), each)
                cleaned_up = True
    assert cleaned_up
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_stop_is_no_error() -> None:
    assert not issubclass(StopRequested, Exception)
