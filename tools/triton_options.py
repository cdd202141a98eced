# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of the server: ours for every start, with what only newer servers know behind a probe."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tritone.tools.ports import LOOPBACK
from tritone.tools.problems import LaunchError
from tritone.tools.triton_layout import TritonLayout

# Pools only grow and start at 1 MB: one growth step re-maps the region, so they begin at a size that rarely grows.
SHARED_MEMORY_BYTES = 16 * 1024 * 1024
# A BLS call holds a thread of this pool until its first response, and the same pool sends responses.
THREAD_POOL_SIZE = 512
EXIT_TIMEOUT_S = 10


@dataclass(frozen=True)
class Ports:
    """Where the server listens."""

    http: int
    grpc: int
    metrics: int


@dataclass(frozen=True)
class ServerOptions:
    """What one start of the server is asked for."""

    repositories: tuple[Path, ...]
    load_models: tuple[str, ...]
    ports: Ports
    host: str = LOOPBACK
    extra: tuple[str, ...] = ()  # appended as they are
    region_prefix: str = field(default_factory=lambda: new_region_prefix())


def new_region_prefix() -> str:
    """A name no other server uses for its regions in /dev/shm, so that cleaning up removes only ours."""
    return f"tritone_{secrets.token_hex(6)}"


@lru_cache(maxsize=4)
def known_flags(executable: Path, library_path: str) -> frozenset[str]:
    """The `--flags` that `tritonserver --help` names."""
    environment = {"LD_LIBRARY_PATH": library_path} if library_path else None
    try:
        done = subprocess.run(
            [executable, "--help"], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"{executable} cannot be run: {error}") from None
    flags = frozenset(re.findall(r"^\s*(--[a-z0-9-]+)", done.stdout + done.stderr, re.MULTILINE))
    if "--model-repository" not in flags:
        said = (done.stderr or done.stdout).strip()
        raise LaunchError(f"{executable} does not run on this machine", details=said[-2000:])
    return flags


def common_arguments(layout: TritonLayout, host: str, region_prefix: str) -> list[str]:
    """Options of every start, whoever types the rest: backend, strictness, memory, threads, addresses."""
    flags = known_flags(layout.executable, layout.library_path)
    python = {
        "shm-region-prefix-name": region_prefix,
        "shm-default-byte-size": SHARED_MEMORY_BYTES,
        "shm-growth-byte-size": SHARED_MEMORY_BYTES,
        "thread-pool-size": THREAD_POOL_SIZE,
    }
    arguments = [
        f"--backend-directory={layout.backends}",
        "--disable-auto-complete-config",
        "--strict-readiness=true",
        f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
        f"--http-address={host}",
        f"--grpc-address={host}",
        *(f"--backend-config=python,{key}={value}" for key, value in python.items()),
    ]
    if "--metrics-address" in flags:
        arguments.append(f"--metrics-address={host}")
    if "--metrics-config" in flags:
        # Time to first response, the one latency that means something for a decoupled model.
        arguments.append("--metrics-config=histogram_latencies=true")
    if "--allow-client-shm" in flags:
        arguments.append("--allow-client-shm=false")
    if "--grpc-max-response-pool-size" in flags:
        # A client that stops reading must not let responses pile up in the server.
        arguments.append("--grpc-max-response-pool-size=64")
    return arguments


def command_line(layout: TritonLayout, options: ServerOptions) -> list[str]:
    """The whole command."""
    return [
        str(layout.executable),
        *(f"--model-repository={folder.absolute()}" for folder in options.repositories),
        "--model-control-mode=explicit",
        *(f"--load-model={name}" for name in options.load_models),
        f"--http-port={options.ports.http}",
        f"--grpc-port={options.ports.grpc}",
        f"--metrics-port={options.ports.metrics}",
        *common_arguments(layout, options.host, options.region_prefix),
        *options.extra,
    ]


def model_names(repository: Path) -> Sequence[str]:
    """Every model a repository holds."""
    return sorted(path.parent.name for path in repository.glob("*/config.pbtxt"))
