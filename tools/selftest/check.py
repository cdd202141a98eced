# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Proof, at every start, that tensors survive the way into a Python model and back.

Some pairs of server and NumPy hand every tensor over with zero bytes and report no error; the models would then
answer nonsense. A check of version numbers catches the pair we know; sending values through the running server
catches all of them. The test model loads beside the real ones, so it costs no time, and is unloaded at once.
"""

from __future__ import annotations

import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any

from tritone.tools.problems import LaunchError

MODEL = "tritone_selftest"
TEXTS = ["tritone", "ünïcode ✓"]
VALUES = [1.5, -2.25, 1e-3, 65504.0]
RELATIVE_ERROR = 1e-6
TIMEOUT_S = 30.0


def write_selftest_repository(folder: Path) -> Path:
    """Write a model repository that holds only the test model."""
    source = Path(__file__).parent
    version = folder / MODEL / "1"
    version.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "config.pbtxt", folder / MODEL / "config.pbtxt")
    shutil.copyfile(source / "model.py", version / "model.py")
    return folder


def run_selftest(http_url: str) -> None:
    """Send values through the test model of a ready server, then unload it. Raises `LaunchError` if they changed."""
    request = {
        "inputs": [
            {"name": "text", "datatype": "BYTES", "shape": [len(TEXTS)], "data": TEXTS},
            {"name": "values", "datatype": "FP32", "shape": [len(VALUES)], "data": VALUES},
        ]
    }
    try:
        answer = json.loads(_post(f"{http_url}/v2/models/{MODEL}/infer", request))
        _post(f"{http_url}/v2/repository/models/{MODEL}/unload", {})
    except (OSError, ValueError) as error:
        raise _fault(f"the test request failed: {error}") from None
    outputs = {output["name"]: output.get("data") for output in answer.get("outputs", [])}
    if outputs.get("text") != TEXTS or not _close(outputs.get("values")):
        raise _fault(f"sent {TEXTS} and {VALUES}, received {outputs.get('text')} and {outputs.get('values')}")


def _post(url: str, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        return bytes(response.read())


def _close(values: object) -> bool:
    if not isinstance(values, list) or len(values) != len(VALUES):
        return False
    return all(abs(seen - sent) <= RELATIVE_ERROR * abs(sent) for seen, sent in zip(values, VALUES, strict=True))


def _fault(what: str) -> LaunchError:
    import numpy

    return LaunchError(
        "the self-test failed: tensors do not survive the way through Triton's Python backend, "
        f"so every answer would be wrong ({what}; NumPy {numpy.__version__})",
        remedy="the 24.10 server needs NumPy 1.x: python -m pip install 'numpy==1.26.4'",
    )
