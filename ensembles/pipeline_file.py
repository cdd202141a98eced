# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Read `pipeline.yaml`: which stages a pipeline has, how they are linked, what the client receives.

Topology is data: this module imports no stage. `ensembles/smollm2_chat/pipeline.yaml` is the example to read.
A tensor list is the name of a `TensorSpec`, or of a tuple of them, in `ensembles/protocol.py`, or a list of such names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritone.ensembles import protocol
from tritone.ensembles.located_yaml import Sourced, Tree, origin_of, read_located
from tritone.ensembles.pipeline_topology import REQUEST, Flow, topology_problems
from tritone.ensembles.problems import BuildError
from tritone.ensembles.profile import ORCHESTRATOR
from tritone.ensembles.protocol import TensorSpec

PIPELINE_KEYS = (
    "name", "summary", "created", "checkpoint", "capabilities", "inputs", "orchestrator", "stages", "links", "final",
)  # fmt: skip
STAGE_KEYS = ("class", "summary", "inputs", "outputs", "settings")
ORCHESTRATOR_KEYS = ("class", "summary", "settings")
CAPABILITY_KEYS = ("routes", "max_n")
LINK_KEYS = ("from", "to", "tensors")
FINAL_KEYS = ("from", "tensors")


@dataclass(frozen=True)
class Stage:
    """One model that does one step."""

    name: str
    class_path: str
    summary: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    settings: tuple[str, ...]  # names a profile may set


@dataclass(frozen=True)
class Pipeline:
    """What a client names in `model`: the stages, their links, and the orchestrator in front of them."""

    name: str
    summary: str
    created: int  # Unix seconds
    checkpoint: str  # reference of the demo checkpoint
    routes: tuple[str, ...]
    max_n: int
    orchestrator: Stage
    stages: tuple[Stage, ...]
    links: tuple[Flow, ...]
    final: tuple[Flow, ...]
    folder: Path
    tree: dict[str, Any]  # the file with the place of every value


class _Reader:
    """Takes typed values out of a located tree and collects everything that is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def section(self, tree: Tree, key: str, known: tuple[str, ...] | None, where: str) -> dict[str, Any]:
        """A mapping; `known` lists its keys where they are fixed."""
        value = tree.get(key)
        if value is None:
            self.problems.append(f"{where}: `{key}` is missing")
            return {}
        if isinstance(value, Sourced):
            self.problems.append(f"{value.origin}: `{key}` of {where} must be a mapping")
            return {}
        if known is not None:
            self.unknown(value, known, f"`{key}` of {where}")
        return dict(value)

    def unknown(self, tree: Tree, known: tuple[str, ...], where: str) -> None:
        """Complain of every key that is not in `known`."""
        for key in tree:
            if key not in known:
                self.problems.append(f"{origin_of(tree[key])}: unknown key {key!r} in {where}")

    def value(self, tree: Tree, key: str, kind: type, where: str) -> Any:
        """A leaf of type `kind`; an empty one of that type when it is missing or wrong."""
        leaf = tree.get(key)
        if leaf is None:
            self.problems.append(f"{where}: `{key}` is missing")
        elif not isinstance(leaf, Sourced) or type(leaf.value) is not kind:
            self.problems.append(f"{origin_of(leaf)}: `{key}` of {where} must be of type {kind.__name__}")
        else:
            return leaf.value
        return kind()

    def names(self, tree: Tree, key: str, where: str) -> tuple[str, ...]:
        """A list of words."""
        found = self.value(tree, key, list, where)
        if not all(isinstance(name, str) for name in found):
            self.problems.append(f"{origin_of(tree[key])}: `{key}` of {where} must list names")
            return ()
        return tuple(found)

    def tensors(self, value: object, place: str) -> tuple[TensorSpec, ...]:
        """The tensors that a name, or a list of names, of protocol.py stands for."""
        specs: list[TensorSpec] = []
        for name in value if isinstance(value, list) else [value]:
            found = getattr(protocol, name, None) if isinstance(name, str) else None
            if isinstance(found, TensorSpec):
                specs.append(found)
            elif isinstance(found, tuple) and all(isinstance(spec, TensorSpec) for spec in found):
                specs += found
            else:
                self.problems.append(f"{place}: no tensors named {name!r} in ensembles/protocol.py")
        return tuple(specs)

    def tensors_at(self, tree: Tree, key: str, where: str) -> tuple[TensorSpec, ...]:
        """`tensors` of the leaf `key`."""
        leaf = tree.get(key)
        if not isinstance(leaf, Sourced):
            self.problems.append(f"{where}: `{key}` is missing" if leaf is None else f"{where}: `{key}` must be a name")
            return ()
        return self.tensors(leaf.value, leaf.origin)

    def flows(self, tree: Tree, key: str, known: tuple[str, ...]) -> tuple[Flow, ...]:
        """A list of `{from, to, tensors}`."""
        leaf = tree.get(key)
        entries = leaf.value if isinstance(leaf, Sourced) and isinstance(leaf.value, list) else []
        if not entries:
            place = "the pipeline" if leaf is None else origin_of(leaf)
            self.problems.append(f"{place}: `{key}` must be a list with at least one entry")
        flows = []
        place = origin_of(leaf) if leaf is not None else key
        for entry in entries:
            if not isinstance(entry, dict) or set(entry) != set(known):
                given = ", ".join(map(str, entry)) if isinstance(entry, dict) else repr(entry)
                self.problems.append(f"{place}: an entry of `{key}` needs the keys {', '.join(known)}; found {given}")
                continue
            tensors = self.tensors(entry["tensors"], place)
            flows.append(Flow(str(entry["from"]), str(entry.get("to", "")), tensors, place))
        return tuple(flows)


def load_pipeline(folder: Path) -> Pipeline:
    """Read `<folder>/pipeline.yaml`. Raises `BuildError` that lists everything that is wrong with it."""
    tree = read_located(folder / "pipeline.yaml")
    reader = _Reader()
    reader.unknown(tree, PIPELINE_KEYS, "a pipeline")
    where = "the pipeline"
    name = reader.value(tree, "name", str, where)
    if name and not name.isidentifier():
        reader.problems.append(f"{origin_of(tree['name'])}: {name!r} cannot be a model name (letters, digits, _)")
    inputs = reader.tensors_at(tree, "inputs", where)
    capabilities = reader.section(tree, "capabilities", CAPABILITY_KEYS, where)
    orchestrator = reader.section(tree, ORCHESTRATOR, ORCHESTRATOR_KEYS, where)
    stages = [_stage(reader, stage, entry) for stage, entry in reader.section(tree, "stages", None, where).items()]
    links = reader.flows(tree, "links", LINK_KEYS)
    final = reader.flows(tree, "final", FINAL_KEYS)
    outputs = tuple(dict.fromkeys(spec for flow in final for spec in flow.tensors))
    pipeline = Pipeline(
        name=name,
        summary=reader.value(tree, "summary", str, where),
        created=reader.value(tree, "created", int, where),
        checkpoint=reader.value(tree, "checkpoint", str, where),
        routes=reader.names(capabilities, "routes", "capabilities"),
        max_n=reader.value(capabilities, "max_n", int, "capabilities"),
        orchestrator=Stage(
            name=ORCHESTRATOR,
            class_path=_class_path(reader, orchestrator, "the orchestrator"),
            summary=reader.value(orchestrator, "summary", str, "the orchestrator"),
            inputs=inputs,
            outputs=outputs,
            settings=reader.names(orchestrator, "settings", "the orchestrator"),
        ),
        stages=tuple(stages),
        links=links,
        final=final,
        folder=folder,
        tree=tree,
    )
    tensors_of = {stage.name: (stage.inputs, stage.outputs) for stage in stages}
    problems = reader.problems + topology_problems(inputs, tensors_of, links, final)
    if problems:
        raise BuildError(f"pipeline {folder.name} cannot be built", problems)
    return pipeline


def _stage(reader: _Reader, name: str, entry: Tree | Sourced) -> Stage:
    where = f"stage {name!r}"
    if isinstance(entry, Sourced):
        reader.problems.append(f"{entry.origin}: {where} must be a mapping")
        entry = {}
    reader.unknown(entry, STAGE_KEYS, where)
    if not name.isidentifier() or name in (REQUEST, ORCHESTRATOR):
        reader.problems.append(f"{origin_of(entry)}: {name!r} cannot be the name of a stage")
    return Stage(
        name=name,
        class_path=_class_path(reader, entry, where),
        summary=reader.value(entry, "summary", str, where),
        inputs=reader.tensors_at(entry, "inputs", where),
        outputs=reader.tensors_at(entry, "outputs", where),
        settings=reader.names(entry, "settings", where),
    )


def _class_path(reader: _Reader, entry: Tree, where: str) -> str:
    path = str(reader.value(entry, "class", str, where))
    parts = path.split(".")
    if path and not (len(parts) > 1 and all(part.isidentifier() for part in parts)):
        reader.problems.append(f"{origin_of(entry['class'])}: {path!r} of {where} is not `package.module.Class`")
    return path


def pipeline_folders(root: Path) -> dict[str, Path]:
    """Every pipeline below `root`, by name."""
    return {path.parent.name: path.parent for path in sorted(root.glob("*/pipeline.yaml"))}


