# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One real tritonserver and one gateway for the whole run, serving two pipelines side by side.

`smollm2_chat` is the checked-in repository with real weights; `tiny_chat` is the same pipeline over a tiny random
checkpoint with room for two rows and two waiting requests, so that overload is easy to reach.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from doubles.tiny_checkpoint import write_tiny_llama
from faults.served import faults as faults

from tritone.ensembles.render import write_repository
from tritone.tools.pipelines import build_pipeline
from tritone.tools.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
TINY_SETTINGS = ["thinker.max_rows=2", "thinker.max_waiting=2", "thinker.chunk_interval_ms=0", "thinker.num_threads=1"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/server" in item.nodeid:
            item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("server")
    repository = folder / "repository"
    shutil.copytree(ROOT / "model_repository", repository, ignore=shutil.ignore_patterns("__pycache__"))
    write_tiny_llama(folder / "tiny")
    build = build_pipeline(
        "smollm2_chat", checkpoint=str(folder / "tiny"), served_name="tiny_chat", settings=TINY_SETTINGS
    )
    write_repository([build], repository)
    run_folder = folder / "run"
    run_folder.mkdir()
    with Stack.start(repository, run_folder) as running:
        yield running
    leftovers = [path.name for path in Path("/dev/shm").glob(f"{running.server.options.region_prefix}*")]
    assert not leftovers, "the server left shared memory behind"


@pytest.fixture(scope="session")
def base_url(stack: Stack) -> str:
    return f"{stack.gateway.url}/v1"


@pytest.fixture
def client(base_url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0, timeout=60) as sdk:
        yield sdk
