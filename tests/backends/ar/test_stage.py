# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""When the thinker says that its engine hangs."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from tritone.backends.ar.stage import STALL_TIMEOUT_S, ThinkerStage, _stall_timeout_s


def test_an_engine_that_has_not_stepped_for_too_long_is_not_alive() -> None:
    stage: Any = ThinkerStage()
    stage._stall_timeout_s = 10.0
    for age_s, is_alive in ((0.0, True), (9.0, True), (11.0, False)):
        statistics = SimpleNamespace(heartbeat_s=time.monotonic() - age_s)
        stage._engine = SimpleNamespace(statistics=lambda now=statistics: now)
        assert stage.is_alive() is is_alive


def test_a_long_prompt_on_a_cpu_is_no_stall() -> None:
    assert STALL_TIMEOUT_S["cpu"] >= 60 > STALL_TIMEOUT_S["cuda"]


@pytest.mark.parametrize("value", [True, "5", 0.5, 3601, [], float("nan")])
def test_the_setting_is_checked(value: Any) -> None:
    with pytest.raises(ValueError, match="stall_timeout_s is .* allowed"):
        _stall_timeout_s(value)
    assert _stall_timeout_s(5) == 5.0 and _stall_timeout_s(None) is None
