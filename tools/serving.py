# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What `serve`, `chat` and `demo` share: which repository to serve, and how to tell people where it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritone.ensembles.protocol import CAPABILITIES_PARAMETER
from tritone.ensembles.render import write_repository
from tritone.tools.pipelines import build_pipeline, find_pipeline, known_pipelines
from tritone.tools.problems import LaunchError
from tritone.tools.stack import Stack
from tritone.tools.triton_options import model_names
from tritone.tools.triton_server import Progress

# Of the gateway, when neither --port nor TRITONE_PORT says another.
DEFAULT_PORT = 8091


@dataclass(frozen=True)
class Chosen:
    """A repository and what to load of it. `served` holds the names clients use, where we know them."""

    repository: Path
    models: tuple[str, ...]
    served: tuple[str, ...]


def render_for_run(
    run_folder: Path,
    pipelines: Sequence[str],
    *,
    repository: Path | None = None,
    profile: str | None = None,
    checkpoint: str | None = None,
    served_name: str | None = None,
    settings: Sequence[str] = (),
    progress: Progress | None = None,
) -> Chosen:
    """The repository the user named, or one rendered into the run folder from everything else."""
    if repository is not None:
        if profile or checkpoint or served_name or settings:
            raise LaunchError(
                "--repository serves what is there: --profile, --checkpoint, --name and --set cannot change it",
                remedy="render another with `tritone build`",
            )
        return _existing(repository, pipelines)
    names = list(pipelines) or list(known_pipelines())
    if len(names) != 1 and (checkpoint or served_name or settings):
        raise LaunchError(
            "--checkpoint, --name and --set speak of one pipeline",
            remedy=f"name it: one of {', '.join(known_pipelines())}",
        )
    for name in names:
        find_pipeline(name)
    if progress is not None:
        progress(f"rendering {', '.join(names)} …")
    builds = [
        build_pipeline(name, profile=profile, checkpoint=checkpoint, served_name=served_name, settings=settings)
        for name in dict.fromkeys(names)
    ]
    target = run_folder / "model-repository"
    write_repository(builds, target)
    models = tuple(model.name for build in builds for model in build.models)
    return Chosen(target, models, tuple(build.name for build in builds))


def _existing(repository: Path, pipelines: Sequence[str]) -> Chosen:
    if not repository.is_dir():
        raise LaunchError(f"there is no repository at {repository}")
    held = model_names(repository)
    missing = sorted(set(pipelines) - set(held))
    if missing:
        raise LaunchError(f"{repository} holds no {', '.join(missing)}", remedy=f"it holds: {', '.join(held)}")
    stages = {name: _stages_of(repository / name / "config.pbtxt") for name in held}
    served = tuple(pipelines) or tuple(name for name in held if stages[name])
    models = dict.fromkeys(model for name in pipelines or held for model in (name, *stages[name]))
    return Chosen(repository.absolute(), tuple(models), served)


def _stages_of(config_path: Path) -> list[str]:
    """The models that the pipeline of a `config.pbtxt` calls; none for a stage or a model that is not ours."""
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    config = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(config_path.read_text(encoding="utf-8"), config)
    except text_format.ParseError as error:
        raise LaunchError(f"{config_path} is not a model config: {error}") from None
    if CAPABILITIES_PARAMETER not in config.parameters:
        return []
    return list(json.loads(config.parameters[CAPABILITIES_PARAMETER].string_value)["stages"])


def describe(stack: Stack, chosen: Chosen) -> str:
    """Where to connect, with a request to try."""
    gateway, server = stack.gateway, stack.server
    model = chosen.served[0] if chosen.served else "MODEL"
    key = " -H 'Authorization: Bearer YOUR-KEY'" if gateway.wants_key else ""
    port = "" if gateway.port == DEFAULT_PORT else f"TRITONE_PORT={gateway.port} "
    warning = ""
    if gateway.is_exposed and not gateway.wants_key:
        warning = f"\nWARNING: {gateway.host} lets other machines in, and no API key is asked for (--api-key).\n"
    return f"""
Serving {", ".join(chosen.served or chosen.models)}

  OpenAI API   {gateway.url}/v1
  health       {gateway.url}/health
  metrics      {gateway.url}/metrics
  Triton       gRPC {server.grpc_address}   HTTP {server.http_url}   metrics port {server.options.ports.metrics}
  logs         {server.run_folder}
{warning}
Try it:

  curl -N {gateway.url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d '{{
    "model": "{model}", "stream": true,
    "messages": [{{"role": "user", "content": "What is the capital of France?"}}]}}'

  {port}tritone chat "What is the capital of France?"{" --api-key YOUR-KEY" if gateway.wants_key else ""}

Ctrl-C stops."""
