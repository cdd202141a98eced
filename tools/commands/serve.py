# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone serve`: Triton and the gateway in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from tritone.tools.commands.options import CheckpointOption, NameOption, ProfileOption, SettingsOption


def serve(
    pipelines: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads it
        typer.Argument(metavar="[PIPELINE]...", help="Pipelines to serve; all of them when none is named."),
    ] = None,
    port: Annotated[int, typer.Option(envvar="TRITONE_PORT", help="Port of the OpenAI-compatible API.")] = 8091,
    host: Annotated[
        str, typer.Option(envvar="TRITONE_HOST", help="Address the API listens on; 0.0.0.0 for every network.")
    ] = "127.0.0.1",
    api_key: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="A key clients must send; may be repeated. TRITONE_API_KEYS keeps it out of `ps`."),
    ] = None,
    checkpoint: CheckpointOption = None,
    profile: ProfileOption = None,
    name: NameOption = None,
    settings: SettingsOption = None,
    repository: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Serve this Triton repository as it stands, such as one that `tritone build` wrote."),
    ] = None,
    triton_http_port: Annotated[int, typer.Option(help="Triton's HTTP port; 0 takes a free one.")] = 0,
    triton_grpc_port: Annotated[int, typer.Option(help="Triton's gRPC port; 0 takes a free one.")] = 0,
    triton_metrics_port: Annotated[int, typer.Option(help="Triton's metrics port; 0 takes a free one.")] = 0,
    triton_arg: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="One more argument for tritonserver, such as --triton-arg=--log-verbose=1; may be repeated."),
    ] = None,
) -> None:
    """Serve pipelines through an OpenAI-compatible API until Ctrl-C.

    Renders the pipelines into a fresh Triton repository, starts tritonserver with it (the one on PATH, or the one
    inside the nvidia-pytriton wheel), checks that tensors survive the way through it, and puts the gateway in front.
    Models that die or stall are loaded again (docs/OPERATIONS.md), and so is the server.
    Ctrl-C or SIGTERM lets running answers end and stops both; nothing stays behind, not even after kill -9.

    Examples:

    - `tritone serve`
    - `tritone serve smollm2_chat --checkpoint hub:Qwen/Qwen3-0.6B --name qwen3 --profile gpu`
    - `tritone serve smollm2_chat --set thinker.max_rows=4 --port 9000`
    """
    from tritone.tools.console import progress_line, say
    from tritone.tools.launch import choose_ports
    from tritone.tools.serving import describe, render_for_run
    from tritone.tools.stack import Stack
    from tritone.tools.state import new_run_folder
    from tritone.tools.stop_signals import StopRequested, stop_on_signals

    run_folder = new_run_folder("serve")
    with stop_on_signals():
        try:
            with progress_line() as progress:
                chosen = render_for_run(
                    run_folder,
                    pipelines or [],
                    repository=repository,
                    profile=profile,
                    checkpoint=checkpoint,
                    served_name=name,
                    settings=settings or [],
                    progress=progress,
                )
                stack = Stack.start(
                    chosen.repository,
                    run_folder,
                    models=chosen.models,
                    host=host,
                    port=port,
                    triton_ports=choose_ports(triton_http_port, triton_grpc_port, triton_metrics_port),
                    api_keys=tuple(api_key or ()),
                    triton_extra=tuple(triton_arg or ()),
                    progress=progress,
                    say=say,
                )
            with stack:
                say(describe(stack, chosen))
                try:
                    stack.watch()
                except StopRequested:
                    say("\nstopping …")
        except StopRequested:
            say("\nstopped before it was ready")
            raise typer.Exit(130) from None
    say("stopped")
