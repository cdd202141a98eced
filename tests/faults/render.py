# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The fault pipeline as a Triton repository, rendered as any pipeline."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritone.ensembles.render import BuildRequest, CheckpointFacts, plan, write_repository

FOLDER = Path(__file__).resolve().parent
STAGE_MODULES = ("fault_stage.py", "fault_command.py")
ORCHESTRATOR_MODULES = ("fault_orchestrator.py", "fault_command.py")
FACTS = CheckpointFacts(context_tokens=8192, vocab_size=256, chat_template=True, tool_format=None)


def write_fault_pipeline(
    repository: Path,
    name: str = "faults",
    *,
    settings: Mapping[str, Any] | None = None,
    relay_is_busy: bool = False,
) -> tuple[str, ...]:
    """Write the pipeline under the name `name`; returns its models. `settings` are the stage's."""
    request = BuildRequest(
        pipeline=FOLDER / "pipeline",
        served_name=name,
        overrides={"thinker": settings or {}, "orchestrator": {"is_busy": relay_is_busy}},
    )
    build = plan(request, lambda _: FACTS)
    write_repository([build], repository)
    for model, modules in ((name, ORCHESTRATOR_MODULES), (f"{name}_thinker", STAGE_MODULES)):
        # Triton puts a model's version folder on its import path.
        package = repository / model / "1" / FOLDER.name
        package.mkdir()
        for module in modules:
            shutil.copy(FOLDER / module, package / module)
    return tuple(model.name for model in build.models)
