# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone build`: write a Triton repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from tritone.tools.commands.options import CheckpointOption, NameOption, ProfileOption, SettingsOption


def build(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="A folder of ensembles/: smollm2_chat, …")],
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder to write the models into; a model of the same name there is replaced."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every value and the file and line it came from.")
    ] = False,
    checkpoint: CheckpointOption = None,
    profile: ProfileOption = None,
    name: NameOption = None,
    settings: SettingsOption = None,
) -> None:
    """Render a pipeline, a profile and a checkpoint into a Triton model repository.

    The result is plain: one folder per model with config.pbtxt and a model.py of a few lines, that any tritonserver
    with Tritone installed can serve. Everything wrong with the pipeline or the profile is listed at once.

    Examples:

    - `tritone build smollm2_chat --output model_repository`
    - `tritone build smollm2_chat --profile gpu --explain`
    """
    from tritone.ensembles.render import explain as explain_build
    from tritone.ensembles.render import write_repository
    from tritone.tools.console import say
    from tritone.tools.pipelines import build_pipeline
    from tritone.tools.problems import LaunchError

    if output is None and not explain:
        raise LaunchError("nothing to do", remedy="give --output DIR to write the repository, or --explain to see it")
    built = build_pipeline(
        pipeline, profile=profile, checkpoint=checkpoint, served_name=name, settings=settings or []
    )
    if explain:
        typer.echo(explain_build(built), nl=False)
    if output is not None:
        if output.exists() and not output.is_dir():
            raise LaunchError(f"{output} is not a folder")
        for path in write_repository([built], output):
            say(f"wrote {path}")
