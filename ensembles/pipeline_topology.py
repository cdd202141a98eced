# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Is a set of stages and links a pipeline? Says everything that is wrong, not only the first thing.

Knows nothing of files, models or Triton.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tritone.ensembles.protocol import TensorSpec

# The source that stands for what the client sent.
REQUEST = "request"

Tensors = tuple[TensorSpec, ...]


class Flow(NamedTuple):
    """Tensors that go from a stage (or the request) to a stage; `target` is empty when they go to the client."""

    source: str
    target: str
    tensors: Tensors
    origin: str


def topology_problems(
    inputs: Tensors, stages: Mapping[str, tuple[Tensors, Tensors]], links: Sequence[Flow], final: Sequence[Flow]
) -> list[str]:
    """One sentence for each fault. `stages` maps a name to the tensors it takes and gives."""
    if not stages:
        return ["the pipeline has no stage"]
    problems: list[str] = []
    if not any(flow.tensors for flow in final):
        problems.append("the pipeline has no final output: nothing would reach the client")
    given = {REQUEST: inputs} | {name: outputs for name, (_, outputs) in stages.items()}
    for flow in (*links, *final):
        problems += _flow_problems(flow, given, stages)
    problems += _coverage_problems(stages, links, final)
    cycle = _cycle(stages, links)
    if cycle:
        problems.append(f"the links form a cycle: {' -> '.join(cycle)}")
    return problems


def _flow_problems(
    flow: Flow, given: Mapping[str, Tensors], stages: Mapping[str, tuple[Tensors, Tensors]]
) -> list[str]:
    problems = []
    name = f"{flow.source} -> {flow.target or 'client'}"
    if flow.source not in given:
        problems.append(f"{flow.origin}: the link {name} starts at an unknown stage {flow.source!r}")
    if flow.target and flow.target not in stages:
        problems.append(f"{flow.origin}: the link {name} ends at an unknown stage {flow.target!r}")
    if not flow.target and flow.source == REQUEST:
        problems.append(f"{flow.origin}: the request cannot be a final output")
    if flow.source == flow.target:
        problems.append(f"{flow.origin}: stage {flow.source!r} feeds itself")
    for spec in flow.tensors:
        if flow.source in given and spec not in given[flow.source]:
            problems.append(f"{flow.origin}: the link {name} carries {spec.name!r}, which {flow.source} does not give")
        if flow.target in stages and spec not in stages[flow.target][0]:
            problems.append(f"{flow.origin}: the link {name} carries {spec.name!r}, which {flow.target} does not take")
    return problems


def _coverage_problems(
    stages: Mapping[str, tuple[Tensors, Tensors]], links: Sequence[Flow], final: Sequence[Flow]
) -> list[str]:
    problems = []
    sources = {flow.source for flow in (*links, *final) if flow.source != flow.target}
    for name, (inputs, _) in stages.items():
        arriving = {spec for flow in links if flow.target == name for spec in flow.tensors}
        missing = [spec.name for spec in inputs if not spec.optional and spec not in arriving]
        if missing:
            problems.append(f"stage {name!r} needs {', '.join(missing)}, which no link brings")
        if name not in sources:
            problems.append(f"stage {name!r} is a dead end: neither another stage nor the client receives its outputs")
    return problems


def _cycle(stages: Mapping[str, tuple[Tensors, Tensors]], links: Sequence[Flow]) -> list[str]:
    """The stages of a cycle, first one repeated at the end; empty when there is none. Self-links count elsewhere."""
    before: dict[str, set[str]] = {name: set() for name in stages}
    for flow in links:
        if flow.source in stages and flow.target in stages and flow.source != flow.target:
            before[flow.target].add(flow.source)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
