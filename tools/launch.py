# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Start a Triton server for a model repository, checked and ready: the steps in their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritone.tools.ports import LOOPBACK, free_ports, require_free
from tritone.tools.problems import LaunchError
from tritone.tools.selftest.check import MODEL as SELFTEST_MODEL
from tritone.tools.selftest.check import run_selftest, write_selftest_repository
from tritone.tools.triton_binary import find_triton
from tritone.tools.triton_layout import check_python_environment, compose
from tritone.tools.triton_options import Ports, ServerOptions, model_names
from tritone.tools.triton_server import Progress, TritonServer

READY_TIMEOUT_S = 600.0


def choose_ports(http: int | None = None, grpc: int | None = None, metrics: int | None = None) -> Ports:
    """The ports the user named, checked, and free ones for the rest."""
    free = iter(free_ports(3))
    chosen = []
    for port, what in ((http, "Triton HTTP"), (grpc, "Triton gRPC"), (metrics, "Triton metrics")):
        if port:
            require_free(port, what)
        chosen.append(port or next(free))
    return Ports(*chosen)


def start_triton(
    repository: Path,
    run_folder: Path,
    *,
    models: Sequence[str] = (),
    ports: Ports | None = None,
    host: str = LOOPBACK,
    extra: Sequence[str] = (),
    timeout_s: float = READY_TIMEOUT_S,
    progress: Progress | None = None,
) -> TritonServer:
    """A ready server with `models` of `repository` loaded (all of them when none is named); the caller stops it."""
    held = model_names(repository)
    unknown = sorted(set(models) - set(held))
    if not held or unknown:
        raise LaunchError(
            f"{repository} holds no model named {', '.join(unknown)}" if unknown else f"{repository} holds no model",
            remedy=f"it holds: {', '.join(held)}" if held else "render one with `tritone build PIPELINE --output DIR`",
        )
    binary = find_triton()
    check_python_environment(binary)
    layout = compose(binary, run_folder / "triton-server")
    options = ServerOptions(
        repositories=(repository, write_selftest_repository(run_folder / "selftest-repository")),
        load_models=(*(models or held), SELFTEST_MODEL),
        ports=ports or choose_ports(),
        host=host,
        extra=tuple(extra),
    )
    server = TritonServer(layout, options, run_folder)
    try:
        server.start()
        server.wait_until_ready(timeout_s, progress)
        run_selftest(server.http_url)
        # Strict readiness says no for the second in which the test model unloads.
        server.wait_until_ready(timeout_s, progress)
    except BaseException:
        server.stop()
        raise
    return server
