# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What serving needs of a machine, each with what was found and how to get it when it is missing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tritone.tools.checkpoint_facts import read_facts
from tritone.tools.libpython import SONAME, find_libpython, install_hint
from tritone.tools.pipelines import known_pipelines
from tritone.tools.problems import LaunchError
from tritone.tools.state import state_folder
from tritone.tools.triton_binary import find_triton
from tritone.tools.triton_layout import check_python_environment
from tritone.tools.triton_options import SHARED_MEMORY_BYTES, known_flags

MIN_GLIBC = (2, 35)
# Region of an orchestrator and a stage, and the self-test's, with room to grow once.
MIN_SHARED_MEMORY_BYTES = 6 * SHARED_MEMORY_BYTES


class Mark(StrEnum):
    """How a finding stands."""

    OK = "ok"
    ABSENT = "absent"  # optional and not here
    MISSING = "MISSING"


class Finding(NamedTuple):
    """One line of the report."""

    mark: Mark
    what: str
    found: str
    remedy: str = ""


def diagnose() -> list[Finding]:
    """Every finding, what serving needs first."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("system", _system),
        ("Python", _python),
        ("libpython", _libpython),
        ("Triton server", _triton),
        ("Python environment", _environment),
        ("shared memory", _shared_memory),
        ("state directory", _state),
        ("demo weights", _weights),
        ("OpenAI SDK", _openai),
        ("GPU", _gpu),
        ("Docker", _docker),
    ]
    findings = []
    for what, check in checks:
        try:
            findings.append(check())
        except LaunchError as error:
            findings.append(Finding(Mark.MISSING, what, error.message, error.remedy or ""))
    return findings


def _system() -> Finding:
    found = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}, {os.cpu_count()} CPUs"
    version = platform.libc_ver()[1]
    numbers = tuple(int(part) for part in version.split(".")[:2]) if version else (0, 0)
    if platform.system() != "Linux" or platform.machine() != "x86_64" or numbers < MIN_GLIBC:
        return Finding(Mark.MISSING, "system", found, "x86-64 Linux with glibc 2.35 or later: Debian 12, Ubuntu 22.04")
    return Finding(Mark.OK, "system", found)


def _python() -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    if not (3, 11) <= sys.version_info[:2] < (3, 13):
        return Finding(Mark.MISSING, "Python", found, "Python 3.11 or 3.12")
    return Finding(Mark.OK, "Python", found)


def _libpython() -> Finding:
    path = find_libpython()
    if path is None:
        return Finding(Mark.MISSING, "libpython", f"no {SONAME}", install_hint())
    return Finding(Mark.OK, "libpython", str(path))


def _triton() -> Finding:
    binary = find_triton()
    library_path = os.pathsep.join(map(str, binary.libraries))
    known_flags(binary.executable, library_path)
    return Finding(Mark.OK, "Triton server", binary.source)


def _environment() -> Finding:
    check_python_environment(find_triton())
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "torch", "transformers")]
    return Finding(Mark.OK, "Python environment", ", ".join(versions))


def _shared_memory() -> Finding:
    usage = shutil.disk_usage("/dev/shm")
    found = f"{usage.free >> 20} MiB free of {usage.total >> 20} MiB in /dev/shm"
    if usage.free < MIN_SHARED_MEMORY_BYTES:
        return Finding(Mark.MISSING, "shared memory", found, "free some, or in Docker: --shm-size=1g")
    return Finding(Mark.OK, "shared memory", found)


def _state() -> Finding:
    folder = state_folder()
    if not os.access(folder, os.W_OK):
        return Finding(Mark.MISSING, "state directory", f"{folder} is not writable", "set TRITONE_STATE_DIR")
    return Finding(Mark.OK, "state directory", str(folder))


def _weights() -> Finding:
    from tritone.ensembles.pipeline_file import load_pipeline

    references = sorted({load_pipeline(folder).checkpoint for folder in known_pipelines().values()})
    for reference in references:
        read_facts(reference)
    return Finding(Mark.OK, "demo weights", ", ".join(references))


def _openai() -> Finding:
    try:
        return Finding(Mark.OK, "OpenAI SDK", importlib.metadata.version("openai"))
    except importlib.metadata.PackageNotFoundError:
        remedy = f"{sys.executable} -m pip install 'tritone[demo]'   (only `tritone chat` and `tritone demo` need it)"
        return Finding(Mark.ABSENT, "OpenAI SDK", "not installed", remedy)


def _gpu() -> Finding:
    command = shutil.which("nvidia-smi")
    if command is None:
        return Finding(Mark.ABSENT, "GPU", "none seen; everything runs on the CPU")
    query = [command, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Finding(Mark.ABSENT, "GPU", "nvidia-smi does not answer")
    if done.returncode != 0:
        return Finding(Mark.ABSENT, "GPU", "nvidia-smi reports no usable GPU")
    return Finding(Mark.OK, "GPU", "; ".join(done.stdout.split("\n")).rstrip("; "))


def _docker() -> Finding:
    if shutil.which("docker") is None:
        return Finding(Mark.ABSENT, "Docker", "not installed; only docker-compose.yml needs it")
    is_container = Path("/.dockerenv").exists()
    return Finding(Mark.OK, "Docker", "installed" + (" (and this is a container)" if is_container else ""))
