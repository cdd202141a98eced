# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Pipeline + profile + checkpoint → the files of a Triton model repository.

Imports no stage and reads no weights: what depends on the checkpoint comes from a callable, `FactsReader`. The same
arguments give the same bytes, so `model_repository/` can be compared with a fresh rendering.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tritone.ensembles.located_yaml import Sourced, Tree, leaves, plain
from tritone.ensembles.pipeline_file import Pipeline, Stage, load_pipeline
from tritone.ensembles.problems import BuildError
from tritone.ensembles.profile import load_profile, merge
from tritone.ensembles.protocol import CAPABILITIES_PARAMETER, ROLE_PARAMETER, SETTINGS_PARAMETER
from tritone.ensembles.render_config import Model, config_text, model_text

DEFAULT_PROFILE = "default"
COMMAND_LINE = "command line"
STAGE_DEFAULT = "stage default"


@dataclass(frozen=True)
class CheckpointFacts:
    """What a checkpoint's config and tokenizer say about what a pipeline can do with it."""

    context_tokens: int
    vocab_size: int
    chat_template: bool
    tool_format: str | None  # "hermes": the template takes `tools`, the model answers with <tool_call> JSON


# Reference of a checkpoint → its facts.
FactsReader = Callable[[str], CheckpointFacts]


@dataclass(frozen=True)
class BuildRequest:
    """What the user asks for. None and empty mean: as the pipeline and its profile say."""

    pipeline: Path  # folder that holds pipeline.yaml
    profile: str = DEFAULT_PROFILE
    checkpoint: str | None = None
    served_name: str | None = None
    # stage → setting → value, from the command line
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Build:
    """A pipeline decided down to the last value, before a file is written. `values` is the located tree of it all."""

    name: str
    models: tuple[Model, ...]  # stages first, the orchestrator last
    values: dict[str, Any]
    pipeline: Pipeline

    def files(self) -> dict[str, str]:
        """Relative path → text."""
        texts: dict[str, str] = {}
        for model in self.models:
            texts[f"{model.name}/config.pbtxt"] = config_text(model)
            texts[f"{model.name}/1/model.py"] = model_text(model)
        return texts


def plan(request: BuildRequest, read_facts: FactsReader) -> Build:
    """Decide every value. Raises `BuildError` with all problems of the profile against the pipeline."""
    pipeline = load_pipeline(request.pipeline)
    profile = load_profile(request.pipeline / "profiles", request.profile)
    override = {
        stage: {"settings": {key: Sourced(value, COMMAND_LINE) for key, value in settings.items()}}
        for stage, settings in request.overrides.items()
    }
    stages = merge(profile.stages, override)
    name = request.served_name or pipeline.name
    problems = _setting_problems(pipeline, stages)
    if not name.replace("-", "_").replace(".", "_").isidentifier():
        problems.append(f"{name!r} cannot be a model name: use letters, digits, '_', '-' and '.'")
    if problems:
        raise BuildError(f"pipeline {pipeline.name} cannot be built with profile {request.profile!r}", problems)
    checkpoint = request.checkpoint or pipeline.checkpoint
    facts = read_facts(checkpoint)
    capabilities = _capabilities(pipeline, stages, name, checkpoint, facts)
    models = [_stage_model(stage, f"{name}_{stage.name}", checkpoint, stages) for stage in pipeline.stages]
    models.append(_orchestrator_model(pipeline, name, capabilities, stages))
    return Build(name, tuple(models), _values(pipeline, request, stages, name, facts), pipeline)


def _setting_problems(pipeline: Pipeline, stages: Mapping[str, Any]) -> list[str]:
    """Stages and settings a profile names and the pipeline does not have."""
    by_name = {stage.name: stage for stage in (*pipeline.stages, pipeline.orchestrator)}
    problems = []
    for path, leaf in leaves(stages):
        stage = by_name.get(path[0])
        if stage is None:
            problems.append(f"{leaf.origin}: no stage {path[0]!r}; {pipeline.name} has {', '.join(by_name)}")
        elif path[1:2] == ("settings",) and path[2] not in stage.settings:
            problems.append(
                f"{leaf.origin}: stage {stage.name!r} has no setting {path[2]!r}; it has {', '.join(stage.settings)}"
            )
    return problems


def _capabilities(
    pipeline: Pipeline, stages: Mapping[str, Any], name: str, checkpoint: str, facts: CheckpointFacts
) -> dict[str, Any]:
    chosen = [plain(stages).get(stage.name, {}).get("settings", {}) for stage in pipeline.stages]
    limits = [settings["context_tokens"] for settings in chosen if "context_tokens" in settings]
    return {
        "routes": list(pipeline.routes),
        "stages": [f"{name}_{stage.name}" for stage in pipeline.stages],
        **asdict(facts),
        "context_tokens": min([facts.context_tokens, *limits]),
        "max_n": pipeline.max_n,
        "owned_by": "tritone",
        "created": pipeline.created,
        # A folder's path is nobody's business but this machine's.
        "checkpoint": checkpoint if is_portable(checkpoint) else Path(checkpoint).name,
    }


def is_portable(checkpoint: str) -> bool:
    """Whether a reference means the same on every machine: a package or a hub id, not a path."""
    return checkpoint.startswith(("package:", "hub:"))


def _stage_model(stage: Stage, name: str, checkpoint: str, stages: Mapping[str, Any]) -> Model:
    chosen = plain(stages).get(stage.name, {})
    instance = chosen.get("instance", {})
    return Model(
        name=name,
        class_path=stage.class_path,
        summary=stage.summary,
        inputs=stage.inputs,
        outputs=stage.outputs,
        kind=instance.get("kind", "cpu"),
        gpus=tuple(instance.get("gpus", ())),
        parameters={
            ROLE_PARAMETER: "stage",
            SETTINGS_PARAMETER: _json({"checkpoint": checkpoint, **chosen.get("settings", {})}),
        },
    )


def _orchestrator_model(
    pipeline: Pipeline, name: str, capabilities: Mapping[str, Any], stages: Mapping[str, Any]
) -> Model:
    orchestrator = pipeline.orchestrator
    names = {stage.name: f"{name}_{stage.name}" for stage in pipeline.stages}
    settings = plain(stages).get(orchestrator.name, {}).get("settings", {})
    return Model(
        name=name,
        class_path=orchestrator.class_path,
        summary=orchestrator.summary,
        inputs=orchestrator.inputs,
        outputs=orchestrator.outputs,
        kind="cpu",
        gpus=(),
        parameters={
            ROLE_PARAMETER: "pipeline",
            CAPABILITIES_PARAMETER: _json(capabilities),
            SETTINGS_PARAMETER: _json({"stages": names, **settings}),
        },
    )


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _values(
    pipeline: Pipeline, request: BuildRequest, stages: Mapping[str, Any], name: str, facts: CheckpointFacts
) -> dict[str, Any]:
    """Every value of the build with its origin, for `--explain`."""
    values: dict[str, Any] = dict(pipeline.tree)
    if request.served_name:
        values["name"] = Sourced(name, COMMAND_LINE)
    if request.checkpoint:
        values["checkpoint"] = Sourced(request.checkpoint, COMMAND_LINE)
    values["orchestrator"] = _stage_values(pipeline.orchestrator, pipeline.tree["orchestrator"], stages)
    values["stages"] = {
        stage.name: _stage_values(stage, pipeline.tree["stages"][stage.name], stages) for stage in pipeline.stages
    }
    values["checkpoint facts"] = {key: Sourced(value, "checkpoint") for key, value in asdict(facts).items()}
    return values


def _stage_values(stage: Stage, declared: Tree, stages: Mapping[str, Any]) -> dict[str, Any]:
    """What the pipeline file declares, what the profile chose, and the settings nobody chose."""
    chosen = dict(stages.get(stage.name, {}))
    settings = dict(chosen.get("settings", {}))
    for key in stage.settings:
        settings.setdefault(key, Sourced(None, STAGE_DEFAULT))
    return {key: value for key, value in declared.items() if key != "settings"} | chosen | {"settings": settings}


def explain(build: Build) -> str:
    """One line for each value: its key, the value, and the place that gave it."""
    rows = []
    for path, leaf in leaves(build.values):
        rows.append((".".join(path), "-" if leaf.origin == STAGE_DEFAULT else json.dumps(leaf.value), leaf.origin))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    widths[1] = min(widths[1], 60)
    return "".join(f"{key:<{widths[0]}}  {value:<{widths[1]}}  {origin}\n" for key, value, origin in rows)


def write_repository(builds: list[Build], output: Path) -> list[Path]:
    """Write every model below `output`; a model's folder is replaced whole, its neighbours stay."""
    written = []
    for build in builds:
        for model in build.models:
            shutil.rmtree(output / model.name, ignore_errors=True)
        for relative, text in build.files().items():
            path = output / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written
