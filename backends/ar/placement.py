# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Where and how an engine computes: device, dtype, CPU threads."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from tritone.backends.ar.settings import EngineSettings
from tritone.errors import InvalidRequest


def resolve_device(settings: EngineSettings) -> torch.device:
    """The device to run on; "auto" is cuda where there is one."""
    has_cuda = torch.cuda.is_available()
    if settings.device == "cuda" and not has_cuda:
        raise InvalidRequest(
            "engine setting device is 'cuda', but PyTorch sees no GPU; allowed here: auto, cpu", field="device"
        )
    if settings.device == "cpu" or not has_cuda:
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())


def resolve_dtype(settings: EngineSettings, device: torch.device) -> torch.dtype:
    """The dtype of weights and cache."""
    if settings.dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if device.type == "cpu" and dtype is not torch.float32:
        raise InvalidRequest(
            f"engine setting dtype is {settings.dtype!r}; allowed on a CPU: auto, float32", field="dtype"
        )
    return dtype


def set_threads(settings: EngineSettings, device: torch.device) -> None:
    """PyTorch's CPU threads: as told, else the physical cores this process may use."""
    if device.type == "cpu":
        torch.set_num_threads(settings.num_threads or physical_cores())


def physical_cores() -> int:
    """Physical cores among those this process may run on; hyper-threads of one core count once."""
    allowed = os.sched_getaffinity(0)
    cores = set()
    for cpu in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text().strip())
        except OSError:
            cores.add(str(cpu))
    return max(1, len(cores))
