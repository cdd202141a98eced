# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The shape of the house: rooms, links, the import table, small `model.py` files, size of the tree."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "backends", "ensembles", "gateway", "tools")
# Room → what it may import of the package, beside itself and tritone.errors.
ALLOWED_IMPORTS = {
    "kernels": (),
    "backends": ("tritone.kernels",),
    "ensembles": ("tritone.backends.core",),
    "gateway": ("tritone.ensembles.protocol",),
    "tools": ("tritone",),
}
# No process but a stage's may load these, so these rooms may not name them.
WITHOUT_TORCH = ("backends/core", "ensembles", "gateway")
HEAVY = {"torch", "transformers", "diffusers", "triton"}
MAX_TRACKED_BYTES = 34 * 1024 * 1024


def python_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts]


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("room", ROOMS)
def test_room_is_a_link_to_a_real_folder_without_init(room: str) -> None:
    link = ROOT / "src" / "tritone" / room
    assert link.is_symlink()
    assert link.resolve() == ROOT / room
    assert not (ROOT / room / "__init__.py").exists()
    spec = importlib.util.find_spec(room)
    assert spec is None or str(ROOT) not in str(spec.origin)


@pytest.mark.parametrize("room", ROOMS)
def test_import_table(room: str) -> None:
    allowed = (f"tritone.{room}", "tritone.errors", *ALLOWED_IMPORTS[room])
    offences = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in python_files(ROOT / room)
        for module in imported_modules(path)
        if is_within(module, "tritone") and not any(is_within(module, package) for package in allowed)
    ]
    assert not offences


@pytest.mark.parametrize("folder", WITHOUT_TORCH)
def test_rooms_that_load_no_torch(folder: str) -> None:
    offences = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in python_files(ROOT / folder)
        for module in imported_modules(path)
        if module.split(".")[0] in HEAVY
    ]
    assert not offences


def test_gateway_and_orchestrator_load_no_torch_indirectly() -> None:
    modules = ["tritone.gateway.server", "tritone.ensembles.smollm2_chat.orchestrator"]
    code = f"import sys, {', '.join(modules)}; print(sorted(set(sys.modules) & {HEAVY!r}))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.strip() == "[]"


def test_model_files_hold_no_logic() -> None:
    models = sorted((ROOT / "model_repository").glob("*/1/model.py"))
    assert models
    for model in models:
        tree = ast.parse(model.read_text())
        assert len(model.read_text().splitlines()) <= 60
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.If | ast.For)], model


def test_every_source_file_has_the_licence_header() -> None:
    missing = [
        str(path.relative_to(ROOT))
        for folder in (*ROOMS, "tests", "model_repository", "src/tritone")
        for path in python_files(ROOT / folder)
        if "SPDX-License-Identifier: Apache-2.0" not in path.read_text()[:300]
    ]
    assert not missing


def tracked_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def test_tracked_files_stay_small() -> None:
    files = [path for path in tracked_files() if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < MAX_TRACKED_BYTES
    raw_results = [path for path in files if path.suffix == ".gz" and path.stat().st_size > 200 * 1024]
    assert not raw_results


def test_every_environment_variable_is_documented() -> None:
    documented = set(re.findall(r"TRITONE_[A-Z0-9_]+", (ROOT / "docs" / "ENV.md").read_text()))
    used = {
        name
        for folder in (*ROOMS, "src")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".sh"} and path.is_file()
        for name in re.findall(r"\bTRITONE_[A-Z0-9_]*[A-Z0-9]\b", path.read_text())
    }
    assert used <= documented, f"not in docs/ENV.md: {sorted(used - documented)}"
