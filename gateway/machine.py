# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the operating system says of this process and this machine: threads, shared memory."""

from __future__ import annotations

import os
import threading
from typing import NamedTuple


class SharedMemory(NamedTuple):
    """`/dev/shm`, where the regions of Triton's Python models are."""

    used_bytes: int
    size_bytes: int


def num_threads() -> int:
    """Threads of this process, those of native libraries included."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def shared_memory() -> SharedMemory:
    """Use of `/dev/shm`; zeros where there is none."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return SharedMemory(0, 0)
    return SharedMemory((found.f_blocks - found.f_bfree) * found.f_frsize, found.f_blocks * found.f_frsize)
