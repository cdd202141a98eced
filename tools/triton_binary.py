# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Find the Triton server of this machine: one on PATH (an NGC image) or the one inside the wheel nvidia-pytriton.

Only looks; `triton_layout.py` makes what the wheel's server lacks.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tritone.tools.libpython import VERSION, find_libpython, install_hint
from tritone.tools.problems import LaunchError

WHEEL = "nvidia-pytriton"
NGC_FOLDER = Path("/opt/tritonserver")
STUB = "triton_python_backend_stub"


@dataclass(frozen=True)
class TritonBinary:
    """A server and what it needs around it."""

    executable: Path
    backends: Path  # folder with python/libtriton_python.so
    stub: Path | None  # stub for this Python that has to be put into the backend folder; None: it is there
    libraries: tuple[Path, ...]  # for the server's LD_LIBRARY_PATH only
    libpython: Path | None  # None: the stub brings or finds its own
    source: str  # for people

    @property
    def is_embedded(self) -> bool:
        """Whether this is the wheel's server, with the limits of its age."""
        return self.stub is not None


def find_triton() -> TritonBinary:
    """The server to use. `TRITONE_TRITONSERVER` names an executable; else PATH, the NGC folder, the wheel."""
    chosen = os.environ.get("TRITONE_TRITONSERVER")
    if chosen:
        path = shutil.which(chosen)
        if path is None:
            raise LaunchError(f"TRITONE_TRITONSERVER names {chosen!r}, which is not an executable file")
        return _installed(Path(path))
    on_path = shutil.which("tritonserver", path=_path_without_our_wrapper())
    if on_path is not None:
        return _installed(Path(on_path))
    if os.access(NGC_FOLDER / "bin" / "tritonserver", os.X_OK):
        return _installed(NGC_FOLDER / "bin" / "tritonserver")
    return _from_wheel()


def _path_without_our_wrapper() -> str:
    """PATH less the folder that `tritone env` puts first: its `tritonserver` is a script around the wheel's."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / WRAPPER_MARK).exists())


# An empty file beside our `tritonserver` script.
WRAPPER_MARK = ".made-by-tritone"


def _installed(executable: Path) -> TritonBinary:
    executable = executable.resolve()
    backends = executable.parent.parent / "backends"
    if not (backends / "python" / "libtriton_python.so").is_file():
        raise LaunchError(
            f"{executable} has no Python backend at {backends}/python",
            remedy="use an image that holds the Python backend, such as nvcr.io/nvidia/tritonserver:26.07-py3",
        )
    built_for = _python_of(backends / "python" / STUB)
    if built_for not in (None, VERSION):
        raise LaunchError(
            f"the Python stub of {executable} is built for Python {built_for}; this is Python {VERSION}, "
            "whose packages it cannot load",
            remedy=f"install Tritone for Python {built_for}: python{built_for} -m venv .venv",
        )
    return TritonBinary(executable, backends, None, (), None, f"installed at {executable}")


def _python_of(stub: Path) -> str | None:
    """The Python version whose library a stub links; None when it does not say."""
    try:
        found = re.search(rb"libpython(3\.\d+)\.so", stub.read_bytes())
    except OSError:
        return None
    return found.group(1).decode() if found else None


def _from_wheel() -> TritonBinary:
    spec = importlib.util.find_spec("pytriton")
    if spec is None or not spec.submodule_search_locations:
        raise LaunchError(
            "no Triton server found: neither `tritonserver` on PATH nor the Python package nvidia-pytriton",
            remedy=f"{sys.executable} -m pip install 'tritone[embedded]'",
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    server = package / "tritonserver"
    executable = server / "bin" / "tritonserver"
    stub = server / "python_backend_stubs" / VERSION / STUB
    if not executable.is_file():
        raise LaunchError(
            f"the package {WHEEL} at {package} holds no server",
            remedy=f"{sys.executable} -m pip install --force-reinstall --no-deps {WHEEL}==0.7.0",
        )
    if not stub.is_file():
        raise LaunchError(
            f"the server of {WHEEL} has no Python stub for Python {VERSION}",
            remedy="use Python 3.11 or 3.12",
        )
    libpython = find_libpython()
    if libpython is None:
        raise LaunchError(
            f"libpython{VERSION}.so.1.0 is missing: Triton's Python stub needs the shared library of Python {VERSION}",
            remedy=install_hint(),
        )
    try:
        version = importlib.metadata.version(WHEEL)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown version"
    libraries = (package.parent / "nvidia_pytriton.libs",)
    return TritonBinary(executable, server / "backends", stub, libraries, libpython, f"{WHEEL} {version} (24.10)")
