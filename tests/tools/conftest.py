# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Every test of the tools keeps its files to itself and can pretend that a server is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of its own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("TRITONE_STATE_DIR", str(folder))
    for name in ("TRITONE_TRITONSERVER", "TRITONE_URL", "TRITONE_PORT", "TRITONE_API_KEYS"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def fake_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed server (`bin/` and `backends/`) that is `fake_tritonserver.py`."""
    executable = tmp_path / "installed" / "bin" / "tritonserver"
    executable.parent.mkdir(parents=True)
    script = Path(__file__).parent / "fake_tritonserver.py"
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    executable.chmod(0o755)
    backend = executable.parent.parent / "backends" / "python" / "libtriton_python.so"
    backend.parent.mkdir(parents=True)
    backend.touch()
    monkeypatch.setenv("TRITONE_TRITONSERVER", str(executable))
    return executable


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A model repository with one model called echo."""
    folder = tmp_path / "repository"
    (folder / "echo" / "1").mkdir(parents=True)
    (folder / "echo" / "config.pbtxt").write_text('name: "echo"\nbackend: "python"\n')
    return folder
