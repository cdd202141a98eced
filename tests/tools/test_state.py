# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The state directory: where it is, and how many runs it keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritone.tools.state import MAX_KEPT_RUNS, PID_FILE, new_run_folder, state_folder

# Above every process number Linux gives.
NO_PROCESS = 2**22 + 1


def test_the_variable_names_the_folder(state_dir: Path) -> None:
    assert state_folder() == state_dir and state_dir.is_dir()


def test_without_it_the_xdg_folder_or_home_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITONE_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_folder() == tmp_path / "xdg" / "tritone"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "tritone"


def test_runs_of_one_second_differ() -> None:
    assert len({new_run_folder("test") for _ in range(5)}) == 5


def test_old_ended_runs_go_and_live_ones_stay() -> None:
    live = new_run_folder("live")
    ended = []
    for number in range(MAX_KEPT_RUNS + 5):
        folder = state_folder() / "runs" / f"20200101-0000{number:02}-old-1"
        folder.mkdir()
        (folder / PID_FILE).write_text(str(NO_PROCESS))
        ended.append(folder)
    new = new_run_folder("new")
    assert live.exists() and new.exists()
    assert [folder for folder in ended if folder.exists()] == ended[-MAX_KEPT_RUNS + 1 :]


def test_nothing_in_a_run_folder_can_be_imported() -> None:
    # It is the working directory of the models' processes, which Python puts first on the import path.
    folder = new_run_folder("test")
    assert (folder / PID_FILE).read_text() == str(os.getpid())
    assert not [path.name for path in folder.iterdir() if path.stem.isidentifier() and path.suffix in ("", ".py")]
