# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Compose what the server needs around it in a folder of ours: backend directory, libraries, environment.

The wheel's server comes without a usable backend directory: the stub for the running Python has to lie in it, as a
copy with its run bit, and the stub has to find libpython. Nothing inside site-packages is changed.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from tritone.tools.problems import LaunchError
from tritone.tools.triton_binary import STUB, TritonBinary


@dataclass(frozen=True)
class TritonLayout:
    """Everything needed to start the server but its options."""

    executable: Path
    backends: Path
    library_path: str  # LD_LIBRARY_PATH for the server only; empty: leave it alone


def compose(binary: TritonBinary, folder: Path) -> TritonLayout:
    """Write the layout below `folder`, again if it is there. An installed server is used as it stands."""
    inherited = os.environ.get("LD_LIBRARY_PATH", "")
    if binary.stub is None:
        return TritonLayout(binary.executable, binary.backends, inherited)
    python = folder / "backends" / "python"
    python.mkdir(parents=True, exist_ok=True)
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        _link(binary.backends / "python" / name, python / name)
    _copy_executable(binary.stub, python / STUB)
    libraries = folder / "lib"
    libraries.mkdir(exist_ok=True)
    # A link to the one library, not its whole folder: that may hold a libstdc++ older than the server's.
    if binary.libpython is not None:
        _link(binary.libpython.resolve(), libraries / binary.libpython.name)
    paths = [str(libraries), *map(str, binary.libraries), *([inherited] if inherited else [])]
    return TritonLayout(_runnable(binary.executable, folder), folder / "backends", os.pathsep.join(paths))


def _runnable(executable: Path, folder: Path) -> Path:
    """The wheel's server; a copy when an installer dropped its run bit."""
    if os.access(executable, os.X_OK):
        return executable
    copy = folder / "tritonserver.bin"
    _copy_executable(executable, copy)
    return copy


def _copy_executable(source: Path, target: Path) -> None:
    if not (target.is_file() and target.stat().st_size == source.stat().st_size):
        partial = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copyfile(source, partial)
        partial.chmod(0o755)
        partial.replace(target)
    if not target.stat().st_mode & stat.S_IXUSR:
        target.chmod(0o755)


def _link(source: Path, target: Path) -> None:
    if target.is_symlink() and Path(os.readlink(target)) == source:
        return
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    partial.symlink_to(source)
    partial.replace(target)


def server_environment(layout: TritonLayout) -> dict[str, str]:
    """The environment of the server: this Python first on PATH, because the stub takes its packages from there."""
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    if layout.library_path:
        environment["LD_LIBRARY_PATH"] = layout.library_path
    return environment


def check_python_environment(binary: TritonBinary) -> None:
    """Refuse, before a start, an environment that is known to break the models without a word."""
    import numpy

    if shutil.which("python3", path=str(Path(sys.executable).parent)) is None:
        raise LaunchError(
            f"there is no python3 beside {sys.executable}, so Triton's models would run in another environment",
            remedy="run tritone from a virtual environment",
        )
    if binary.is_embedded and int(numpy.__version__.split(".")[0]) >= 2:
        raise LaunchError(
            f"NumPy {numpy.__version__} is installed; under NumPy 2 the embedded server (24.10) hands every tensor "
            "over with zero bytes and reports no error",
            remedy=f"{sys.executable} -m pip install 'numpy==1.26.4'",
        )
