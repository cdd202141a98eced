# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing that a request passes through can execute what it carries. (reliability T15)"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Rooms whose code sees a request, on its way in or out.
ON_THE_PATH = [
    path
    for room in ("gateway", "ensembles", "backends/core", "backends/ar", "src/tritone")
    for path in sorted((ROOT / room).glob("**/*.py"))
    if "src/tritone/" not in str(path) or path.parent.name == "tritone"
]
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "torch.load",
    "numpy.load",
    "np.load",
}
UNSAFE_KEYWORDS = {"shell": True, "allow_pickle": True, "trust_remote_code": True}


def faults(source: str) -> list[str]:
    """Every use in `source` of what would run a request's bytes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            found.append(node.module or "")
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in FORBIDDEN_CALLS or name == "yaml.load":
                found.append(name)
            for keyword in node.keywords:
                value = getattr(keyword.value, "value", None)
                if keyword.arg in UNSAFE_KEYWORDS and value is UNSAFE_KEYWORDS[keyword.arg]:
                    found.append(f"{name}({keyword.arg}=True)")
    return found


@pytest.mark.parametrize("path", ON_THE_PATH, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_comes_out_of_data(path: Path) -> None:
    assert faults(path.read_text()) == []


def test_the_search_finds_what_it_is_for() -> None:
    assert len(ON_THE_PATH) > 60
    assert faults("import pickle") and faults("from pickle import loads") and faults("torch.load(x)")
    assert faults("np.load(f, allow_pickle=True)") and faults("subprocess.run(x, shell=True)") and faults("eval(x)")
    assert not faults("json.loads(x)\nre.compile(x)\nmodel.eval()\nsubprocess.run([x], shell=False)")


def test_the_gateway_loads_no_model_library() -> None:
    program = (
        "import sys, tritone.gateway.server\n"
        "heavy = {'torch', 'transformers', 'tensorflow', 'safetensors', 'PIL', 'av', 'soundfile', 'joblib', 'dill'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout.strip() == "[]"
