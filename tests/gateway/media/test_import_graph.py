# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""No code that runs what it reads: pickle, eval and the like in no file of the request path (reliability T15)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("gateway", "ensembles", "backends/core")
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "joblib", "torch"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


def offences(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
                found.append(node.func.id)
            found += [keyword.arg for keyword in node.keywords if keyword.arg == "allow_pickle"]
    return found


def test_the_check_finds_what_it_looks_for() -> None:
    code = "import pickle\nfrom torch import load\neval('1')\nnp.load(f, allow_pickle=True)\nre.compile('x')\n"
    assert offences(ast.parse(code)) == ["pickle", "torch", "eval", "allow_pickle"]


def test_no_file_of_the_request_path_runs_what_it_reads() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 40
    found = {str(path.relative_to(ROOT)): offences(ast.parse(path.read_text())) for path in files}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_gateway_loads_no_decoder_and_the_decoder_no_gateway() -> None:
    code = "import sys, tritone.gateway.media.{}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"

    def loaded(module: str) -> set[str]:
        result = subprocess.run(
            [sys.executable, "-c", code.format(module)], capture_output=True, text=True, timeout=120, check=True
        )
        return set(result.stdout.split())

    assert not loaded("reader") & {"PIL", "av", "torch"}
    assert not loaded("worker") & {"fastapi", "starlette", "grpc", "numpy", "torch", "h11", "pickle"}
