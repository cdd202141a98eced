# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the processes started by this one use: memory, descriptors, threads, shared memory."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class ProcessUsage:
    """One process at one moment."""

    pid: int
    name: str
    resident_bytes: int
    descriptors: int
    threads: int


def usage_of_descendants() -> list[ProcessUsage]:
    """Every living process below this one. Guards, which only wait, are left out."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            with process.oneshot():
                command = process.cmdline()
                if any(part.endswith("server_guard.py") for part in command):
                    continue
                found.append(
                    ProcessUsage(
                        process.pid,
                        _name(command, process.name()),
                        process.memory_info().rss,
                        process.num_fds(),
                        process.num_threads(),
                    )
                )
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def shared_memory_bytes(prefix: str) -> int:
    """Memory behind the regions in /dev/shm whose names begin with `prefix`."""
    total = 0
    for path in glob.glob(f"/dev/shm/{glob.escape(prefix)}*"):
        try:
            total += os.stat(path).st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def _name(command: list[str], fallback: str) -> str:
    """A stub by its model, the gateway by its module, anything else by its program."""
    if not command:
        return fallback
    if "tritone.gateway" in command:
        return "gateway"
    program = os.path.basename(command[0])
    if "python_backend_stub" in program:
        models = [part for part in command[1:] if part.endswith("model.py")]
        # …/MODEL/VERSION/model.py
        return f"stub {models[0].split('/')[-3]}" if models else program
    return program
