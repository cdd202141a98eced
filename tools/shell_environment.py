# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The shell exports that let somebody type `tritonserver --model-repository … $TRITON_ARGS` themselves."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from tritone.tools.ports import LOOPBACK
from tritone.tools.problems import LaunchError
from tritone.tools.state import state_folder
from tritone.tools.triton_binary import WRAPPER_MARK, find_triton
from tritone.tools.triton_layout import TritonLayout, check_python_environment, compose
from tritone.tools.triton_options import common_arguments, new_region_prefix


def shell_exports() -> str:
    """Lines for `eval`. Composes the server's surroundings in the state directory."""
    binary = find_triton()
    check_python_environment(binary)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = state_folder() / f"triton-python{version}"
    layout = compose(binary, folder)
    path = [_wrapper_folder(layout, folder), str(Path(sys.executable).parent)]
    rest = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry not in path]
    arguments = common_arguments(layout, LOOPBACK, new_region_prefix())
    if any(character.isspace() for argument in arguments for character in argument):
        raise LaunchError(
            f"the state directory {state_folder()} has a space in its name, which $TRITON_ARGS cannot carry",
            remedy="set TRITONE_STATE_DIR to another folder",
        )
    exports = {"PATH": os.pathsep.join([*path, *rest]), "TRITON_ARGS": " ".join(arguments)}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in exports.items())


def _wrapper_folder(layout: TritonLayout, folder: Path) -> str:
    """A folder whose `tritonserver` starts the real one with its libraries, which nobody else gets to see."""
    target = folder / "bin"
    target.mkdir(exist_ok=True, parents=True)
    script = target / "tritonserver"
    library_path = f"LD_LIBRARY_PATH={shlex.quote(layout.library_path)} " if layout.library_path else ""
    script.write_text(f'#!/bin/sh\n{library_path}exec {shlex.quote(str(layout.executable))} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    (target / WRAPPER_MARK).touch()
    return str(target)
