# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel holds the whole package: built from the tree and installed away from it, it renders the same models."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "backends", "ensembles", "gateway", "tools")
MODELS = {"smollm2_chat", "smollm2_chat_thinker"}
DATA_SUFFIXES = {".py", ".cu", ".cuh", ".cpp", ".h", ".json", ".yaml", ".pbtxt", ".md"}

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("TRITONE_", "PYTHON"))}
    done = subprocess.run(command, cwd=cwd, env=variables | environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because a build leaves files in its tree."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*ROOMS, "src"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, tree, cwd=folder)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment of the wheel alone. The dependencies are this environment's, found through a `.pth` file,
    which unlike a site folder does not run the `.pth` file of an editable install there.
    """
    folder = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", folder / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder.parent)
    [site] = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_the_wheel_holds_every_file_of_the_rooms(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        f"tritone/{path.relative_to(ROOT)}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.suffix in DATA_SUFFIXES
    }
    assert expected | {"tritone/errors.py", "tritone/py.typed"} <= held
    assert not [name for name in held if not name.startswith(("tritone/", "tritone-"))]


def test_tritone_build_of_the_wheel_writes_the_repository_of_the_tree(installed: Path, tmp_path: Path) -> None:
    home = run(installed / "bin" / "python", "-c", "import tritone.tools.cli as cli; print(cli.__file__)", cwd=tmp_path)
    assert Path(home.strip()).is_relative_to(installed)
    output = tmp_path / "repository"
    tritone = installed / "bin" / "tritone"
    run(tritone, "build", "smollm2_chat", "--output", output, cwd=tmp_path, TRITONE_STATE_DIR=str(tmp_path / "state"))
    assert contents(output) == {
        name: text for name, text in contents(ROOT / "model_repository").items() if name.split("/")[0] in MODELS
    }


def contents(repository: Path) -> dict[str, str]:
    """The files of a model repository by path."""
    return {
        str(path.relative_to(repository)): path.read_text()
        for path in sorted(repository.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
