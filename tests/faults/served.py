# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One server and one gateway with every pipeline of the fault matrix, for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults.registry import PIPELINES
from faults.render import write_fault_pipeline

from tritone.tools.stack import Stack

SMALL_SLOTS, SMALL_WAITING = 4, 4


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Besides the matrix: `small`, with few places, and two whose stage raises when it is loaded or unloaded."""
    folder = tmp_path_factory.mktemp("faults")
    repository = folder / "repository"
    models: list[str] = []
    for pipeline in PIPELINES:
        models += pipeline.write(repository)
    models += write_fault_pipeline(repository, "small", settings={"slots": SMALL_SLOTS, "waiting": SMALL_WAITING})
    for moment in ("load", "unload"):
        write_fault_pipeline(repository, f"broken_{moment}", settings={"raise_in": moment})
    run_folder = folder / "run"
    run_folder.mkdir()
    with Stack.start(repository, run_folder, models=models) as running:
        yield running
