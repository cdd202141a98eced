# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The telling lines of a server's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritone.tools.server_log import failure_lines, has_load_failure

STAMP = "1130 21:11:05.327658 7257"
HEALTHY = f"""/usr/bin/tritonserver --model-repository=/x
server pid 7257
W{STAMP} pinned_memory_manager.cc:273] "Unable to allocate pinned system memory"
E{STAMP} server.cc:241] "CudaDriverHelper has not been initialized."
I{STAMP} model_lifecycle.cc:472] "loading: echo:1"
Error: Failed to initialize NVML
W{STAMP} metrics.cc:798] "DCGM unable to start: DCGM initialization error"
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


def test_a_healthy_log_says_nothing(log: Path) -> None:
    log.write_text(HEALTHY)
    assert failure_lines(log) == []
    assert not has_load_failure(log)


def test_a_quoted_message_is_shown_as_lines(log: Path) -> None:
    message = "failed to load 'echo' version 1: Internal: KeyError: 'x'\\n\\nAt:\\n  model.py(3): initialize\\n"
    log.write_text(HEALTHY + f'E{STAMP} model_lifecycle.cc:642] "{message}"\n')
    assert failure_lines(log) == [
        "failed to load 'echo' version 1: Internal: KeyError: 'x'",
        "At:",
        "  model.py(3): initialize",
    ]
    assert has_load_failure(log)


def test_lines_that_follow_an_error_belong_to_it(log: Path) -> None:
    log.write_text(
        HEALTHY + f"E{STAMP} pb_stub.cc:402] Failed to initialize:\nno space\nE: really\nI{STAMP} x.cc:1] fine\nafter\n"
    )
    assert failure_lines(log) == ["Failed to initialize:", "no space", "E: really"]


def test_errors_before_logging_starts(log: Path) -> None:
    log.write_text("tritonserver: error while loading shared libraries: libx.so: cannot open\n")
    assert failure_lines(log) == ["tritonserver: error while loading shared libraries: libx.so: cannot open"]


def test_only_the_last_lines_are_kept_and_none_twice(log: Path) -> None:
    log.write_text("".join(f"E{STAMP} x.cc:1] problem {number % 100}\n" for number in range(300)))
    lines = failure_lines(log)
    assert len(lines) == 25 and lines[-1] == "problem 99" and len(set(lines)) == 25


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    assert failure_lines(tmp_path / "none") == []
    assert not has_load_failure(tmp_path / "none")
