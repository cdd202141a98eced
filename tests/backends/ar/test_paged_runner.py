# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The GPU path of the engine: in Triton's interpreter everywhere, with graphs where there is a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

CASES = Path(__file__).with_name("paged_runner_cases.py")


def _run(folder: Path, device: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, str(CASES), str(folder), device],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "all equal" in done.stdout


@pytest.mark.slow
def test_paged_runner_equals_cpu_runner_in_the_interpreter(make_checkpoint: Any) -> None:
    folder = make_checkpoint("qwen3", num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)
    _run(folder, "cpu", TRITON_INTERPRET="1", OMP_NUM_THREADS="1")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_paged_runner_equals_cpu_runner_on_the_gpu(tiny_llama: Path, tiny_qwen3: Path) -> None:
    _run(tiny_llama, "cuda")
    _run(tiny_qwen3, "cuda")
