# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The pipelines this installation holds, and rendering them from what was typed on a command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import tritone
from tritone.backends.ar.settings import EngineSettings
from tritone.ensembles.pipeline_file import pipeline_folders
from tritone.ensembles.problems import BuildError
from tritone.ensembles.protocol import SETTINGS_PARAMETER
from tritone.ensembles.render import DEFAULT_PROFILE, Build, BuildRequest, is_portable, plan
from tritone.ensembles.render_config import Model
from tritone.errors import InvalidRequest
from tritone.tools.checkpoint_facts import read_facts
from tritone.tools.problems import LaunchError

# Stages whose settings are those of the AR engine, beside a few of the stage's own.
ENGINE_STAGES = ("tritone.backends.ar.stage.ThinkerStage",)


def known_pipelines() -> dict[str, Path]:
    """Folder of every pipeline, by name."""
    return pipeline_folders(Path(next(iter(tritone.__path__))) / "ensembles")


def find_pipeline(name: str) -> Path:
    """The folder of a pipeline. Raises `LaunchError` with the names there are."""
    folders = known_pipelines()
    if name not in folders:
        raise LaunchError(f"no pipeline named {name!r}", remedy=f"there are: {', '.join(folders)}")
    return folders[name]


def build_pipeline(
    name: str,
    *,
    profile: str | None = None,
    checkpoint: str | None = None,
    served_name: str | None = None,
    settings: Sequence[str] = (),
) -> Build:
    """Decide everything about one pipeline. Raises `LaunchError` with all that is wrong."""
    request = BuildRequest(
        pipeline=find_pipeline(name),
        profile=profile or DEFAULT_PROFILE,
        checkpoint=_absolute(checkpoint),
        served_name=served_name,
        overrides=parse_settings(settings),
    )
    try:
        build = plan(request, read_facts)
    except BuildError as error:
        raise LaunchError(str(error)) from None
    problems = [problem for model in build.models for problem in _engine_problems(model)]
    if problems:
        remedy = f"`tritone build {name} --explain` shows where each value is from"
        raise LaunchError("\n".join(problems), remedy=remedy)
    return build


def _engine_problems(model: Model) -> list[str]:
    """What the model's engine would refuse of its settings when it loads."""
    if model.class_path not in ENGINE_STAGES:
        return []
    settings: dict[str, Any] = json.loads(model.parameters[SETTINGS_PARAMETER])
    known = [field.name for field in fields(EngineSettings) if field.name in settings]
    problems = {}
    # Each by itself, for an answer to all of them at once, then together.
    for keys in (*([key] for key in known), known):
        try:
            EngineSettings.from_mapping({key: settings[key] for key in keys})
        except InvalidRequest as error:
            # A value by itself may not go with another's default.
            if keys is known or error.field in keys:
                problems[error.field] = f"{model.name}: {error.message}"
    return list(problems.values())


def _absolute(checkpoint: str | None) -> str | None:
    """A folder is named in full: the server runs elsewhere."""
    if checkpoint is None or is_portable(checkpoint):
        return checkpoint
    path = Path(checkpoint).expanduser().absolute()
    if not path.exists():
        raise LaunchError(
            f"there is no checkpoint at {checkpoint}",
            remedy="give a folder, package:<name of an installed package> or hub:<org/name>",
        )
    return str(path)


def parse_settings(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`stage.setting=value` texts as stage → setting → value; the value is JSON, or else a word."""
    parsed: dict[str, dict[str, Any]] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        stage, dot, setting = path.partition(".")
        if not (equals and dot and stage and setting):
            raise LaunchError(f"{text!r} is not a setting", remedy="write STAGE.SETTING=VALUE: thinker.max_rows=8")
        try:
            parsed.setdefault(stage, {})[setting] = json.loads(value)
        except ValueError:
            parsed.setdefault(stage, {})[setting] = value
    return parsed
