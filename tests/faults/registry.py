# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The pipelines that the fault matrix of `tests/server/test_faults*.py` runs over.

A new pipeline joins by appending a `PipelineUnderTest` to `PIPELINES`. Everything runs without weights, so what is
rendered is the pipeline's own orchestrator in front of stages that fail on command: subclass `FaultStage`, or read
`FaultCommand` in a stage of your own, and copy the modules into the model's version folder as `render.py` does. A
pipeline whose requests have no prompt carries the command in whatever text it has, in `params_of` and `body_of`.

It is then promised to the matrix that a command that orders no fault is answered with `FaultCommand.answer()`, in
numbered chunks without a gap, and that a fault ends its own request only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.fault_command import FaultCommand
from faults.render import write_fault_pipeline


@dataclass(frozen=True)
class PipelineUnderTest:
    """One pipeline in the matrix."""

    name: str  # of the orchestrator
    stages: tuple[str, ...]  # models that are called directly too
    write: Callable[[Path], tuple[str, ...]]  # renders into a repository; returns every model to load
    params_of: Callable[[FaultCommand], dict[str, Any]]  # a command as `params` of a Triton request
    body_of: Callable[[FaultCommand], dict[str, Any]]  # and as the body of a request to the gateway
    route: str  # of that body
    text_of: Callable[[dict[str, Any]], str]  # the answer in a body or a stream event of the gateway


def _chat_text(body: dict[str, Any]) -> str:
    return "".join(
        (choice.get("message") or choice.get("delta") or {}).get("content") or "" for choice in body["choices"]
    )


FAULTS = PipelineUnderTest(
    name="faults",
    stages=("faults_thinker",),
    write=lambda repository: write_fault_pipeline(repository),
    params_of=lambda command: {"prompt": command.prompt()},
    body_of=lambda command: {"model": "faults", "messages": [{"role": "user", "content": command.prompt()}]},
    route="/v1/chat/completions",
    text_of=_chat_text,
)

PIPELINES = [FAULTS]
