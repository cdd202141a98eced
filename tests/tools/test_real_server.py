# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The launcher with a real tritonserver and a model of ten lines. `tests/server` serves the real pipelines."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tritone.tools.launch import start_triton
from tritone.tools.problems import LaunchError
from tritone.tools.selftest.check import run_selftest, write_selftest_repository
from tritone.tools.state import new_run_folder

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(
        importlib.util.find_spec("pytriton") is None and shutil.which("tritonserver") is None,
        reason="no Triton server is installed",
    ),
]

LAUNCHER = """
import sys, time
from pathlib import Path
from tritone.tools.launch import start_triton
from tritone.tools.state import new_run_folder
server = start_triton(Path(sys.argv[1]), new_run_folder("test"))
print(server.options.region_prefix, flush=True)
time.sleep(600)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The self-test's model under another name."""
    held = write_selftest_repository(tmp_path / "source") / "tritone_selftest"
    echo = tmp_path / "repository" / "echo"
    shutil.copytree(held, echo)
    config = echo / "config.pbtxt"
    config.write_text(config.read_text().replace("tritone_selftest", "echo"))
    return echo.parent


def regions(prefix: str) -> list[str]:
    return [path.name for path in Path("/dev/shm").glob(f"{prefix}*")]


def test_a_server_serves_and_leaves_nothing(repository: Path) -> None:
    server = start_triton(repository, new_run_folder("test"), timeout_s=60)
    prefix = server.options.region_prefix
    try:
        assert regions(prefix)
        request = urllib.request.Request(f"{server.http_url}/v2/repository/index", b"{}")
        with urllib.request.urlopen(request, timeout=10) as response:
            states = {model["name"]: model["state"] for model in json.load(response)}
        # The self-test's model has done its work; the server is ready without it.
        assert states["echo"] == "READY" and states["tritone_selftest"] != "READY"
        assert server.is_ready()
        with pytest.raises(LaunchError, match="self-test failed"):
            run_selftest(server.http_url)
        with urllib.request.urlopen(server.metrics_url, timeout=10) as response:
            assert b'nv_inference_request_success{model="echo"' in response.read()
    finally:
        server.stop()
    assert not regions(prefix)


def test_a_model_that_fails_says_why(repository: Path) -> None:
    (repository / "echo" / "1" / "model.py").write_text("import no_such_module_of_ours\n")
    with pytest.raises(LaunchError, match="a model failed to load") as caught:
        start_triton(repository, new_run_folder("test"), timeout_s=60)
    assert "No module named 'no_such_module_of_ours'" in (caught.value.details or "")


def test_kill_nine_of_the_launcher_leaves_nothing(repository: Path) -> None:
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(repository)], stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    with launcher.stdout as said:
        prefix = said.readline().strip()
        assert prefix and regions(prefix)
        launcher.kill()
        launcher.wait()
    deadline = time.monotonic() + 20
    while regions(prefix) or _processes_with(prefix):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _processes_with(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found
