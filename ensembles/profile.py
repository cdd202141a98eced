# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles: named sets of engine settings of a pipeline, each in `profiles/<name>.yaml`, that inherit with `base:`.

    base: default                 # optional: the profile this one starts from
    summary: One NVIDIA GPU       # optional: a line for people
    stages:
      thinker:
        instance: {kind: gpu, gpus: [0]}    # where Triton places the stage
        settings: {dtype: bfloat16}         # what its engine is built from
    orchestrator:
      settings: {max_streams: 64}

Maps merge, lists and scalars replace, `null` removes. A profile holds only what somebody chose: a setting it does not
name keeps the engine's default, so the two can always be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritone.ensembles.located_yaml import Sourced, Tree, origin_of, read_located
from tritone.ensembles.problems import BuildError

PROFILE_KEYS = ("base", "summary", "orchestrator", "stages")
# Stands among the stages once a file is read; no stage may have this name.
ORCHESTRATOR = "orchestrator"
ORCHESTRATOR_KEYS = ("settings",)
STAGE_KEYS = ("instance", "settings")
INSTANCE_KEYS = ("kind", "gpus")


@dataclass(frozen=True)
class Profile:
    """A profile with everything it inherits.

    `stages` is a located tree: stage (or orchestrator) → instance / settings → values.
    """

    name: str
    chain: tuple[str, ...]  # this profile first, then its base, and so on
    stages: dict[str, Any]


def merge(base: Tree, overlay: Tree) -> dict[str, Any]:
    """`overlay` over `base`: maps merge, everything else replaces, a null removes. Neither argument changes."""
    merged: dict[str, Any] = {key: _copy(value) for key, value in base.items()}
    for key, value in overlay.items():
        below = merged.get(key)
        if isinstance(value, Sourced):
            if value.value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
        else:
            merged[key] = merge({} if below is None or isinstance(below, Sourced) else below, value)
    return merged


def _copy(value: Tree | Sourced) -> Any:
    return value if isinstance(value, Sourced) else {key: _copy(below) for key, below in value.items()}


def profile_names(folder: Path) -> list[str]:
    """Names of the profiles that `folder` holds."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_profile(folder: Path, name: str) -> Profile:
    """Read `<folder>/<name>.yaml` and every profile it inherits from."""
    chain: list[str] = []
    trees: list[dict[str, Any]] = []
    problems: list[str] = []
    asked_by = "the command line"
    following: str | None = name
    while following is not None:
        if following in chain:
            problems.append(f"{asked_by}: the profiles inherit in a circle: {' -> '.join([*chain, following])}")
            break
        known = profile_names(folder)
        if following not in known:
            problems.append(f"{asked_by}: no profile {following!r}; there are: {', '.join(known) or 'none'}")
            break
        tree = read_located(folder / f"{following}.yaml")
        problems += _shape_problems(tree)
        chain.append(following)
        trees.append(tree)
        base = tree.get("base")
        following = base.value if isinstance(base, Sourced) and isinstance(base.value, str) else None
        asked_by = origin_of(base) if base is not None else asked_by
    if problems:
        raise BuildError(f"profile {name!r} is not usable", problems)
    stages: dict[str, Any] = {}
    for tree in reversed(trees):
        stages = merge(stages, {**tree.get("stages", {}), ORCHESTRATOR: tree.get(ORCHESTRATOR, {})})
    return Profile(name, tuple(chain), stages)


def _shape_problems(tree: Tree) -> list[str]:
    """What is wrong with one file by itself; whether its stages and settings exist is the pipeline's to say."""
    problems = _unknown(tree, PROFILE_KEYS, "a profile")
    for key in ("base", "summary"):
        entry = tree.get(key)
        if entry is not None and not (isinstance(entry, Sourced) and isinstance(entry.value, str | None)):
            problems.append(f"{origin_of(entry)}: `{key}` must be one line of text")
    stages = tree.get("stages", {})
    if isinstance(stages, Sourced):
        return [*problems, f"{stages.origin}: `stages` must map stage names to their settings"]
    for stage, entry in stages.items():
        problems += _stage_problems(f"stage {stage!r}", entry, STAGE_KEYS)
    return problems + _stage_problems("the orchestrator", tree.get(ORCHESTRATOR, {}), ORCHESTRATOR_KEYS)


def _stage_problems(name: str, entry: Tree | Sourced, known: tuple[str, ...]) -> list[str]:
    if isinstance(entry, Sourced):
        return [] if entry.value is None else [f"{entry.origin}: {name} must be a mapping"]
    problems = _unknown(entry, known, name)
    for key in known:
        section = entry.get(key, {})
        if isinstance(section, Sourced) and section.value is not None:
            problems.append(f"{section.origin}: `{key}` of {name} must be a mapping")
    instance = entry.get("instance", {})
    return problems if isinstance(instance, Sourced) else problems + _instance_problems(name, instance)


def _instance_problems(name: str, instance: Tree) -> list[str]:
    problems = _unknown(instance, INSTANCE_KEYS, f"`instance` of {name}")
    kind = instance.get("kind")
    if isinstance(kind, Sourced) and kind.value not in ("cpu", "gpu", None):
        problems.append(f"{kind.origin}: `kind` of {name} is {kind.value!r}; expected cpu or gpu")
    gpus = instance.get("gpus")
    if isinstance(gpus, Sourced) and gpus.value is not None:
        numbers = gpus.value if isinstance(gpus.value, list) else []
        if not numbers or any(type(number) is not int or number < 0 for number in numbers):
            problems.append(f"{gpus.origin}: `gpus` of {name} must be a list of GPU numbers")
    return problems


def _unknown(tree: Tree, known: tuple[str, ...], where: str) -> list[str]:
    return [
        f"{origin_of(tree[key])}: unknown key {key!r} in {where}; expected one of {', '.join(known)}"
        for key in tree
        if key not in known
    ]
