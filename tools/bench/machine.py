# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import time
from typing import Any

import torch
import transformers


def describe_machine(device: str) -> dict[str, Any]:
    """Processor, cores, GPU and versions, for the head of a result file."""
    described: dict[str, Any] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": _processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": device,
    }
    if device == "cuda":
        described["gpu"] = torch.cuda.get_device_name()
    return described


def _processor_name() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def copy_bandwidth_bytes_per_s(device: str) -> float:
    """Bytes read and written per second by a large copy, median of ten."""
    size = 2**32 if device == "cuda" else 2**28
    source = torch.empty(size, dtype=torch.uint8, device=device).random_()
    target = torch.empty_like(source)
    rates = []
    for _ in range(12):
        _synchronize(device)
        began = time.perf_counter()
        target.copy_(source)
        _synchronize(device)
        rates.append(2 * size / (time.perf_counter() - began))
    return sorted(rates[2:])[5]


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
