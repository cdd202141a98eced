# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The chat orchestrator with faults of its own, ordered as the stage's are. Runs inside Triton."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from faults.fault_command import LIBRARY_TEXT, hold_interpreter, read_command

from tritone.ensembles.relay import ClientStream
from tritone.ensembles.smollm2_chat.orchestrator import ChatOrchestrator


class FaultOrchestrator(ChatOrchestrator):
    """Same tensors in and out as the thinker. `is_busy`: a thread takes half of the interpreter's time."""

    def load(self, settings: dict[str, Any], args: dict[str, str]) -> None:
        """As any relay."""
        super().load(settings, args)
        if settings.get("is_busy"):
            threading.Thread(target=_keep_busy, daemon=True).start()

    def route(self, stream: ClientStream, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Relay, or raise, or keep the whole process from running."""
        command = read_command(params)
        if command.raise_in == "route":
            raise RuntimeError(LIBRARY_TEXT)
        if command.hog_relay_s:
            hold_interpreter(command.hog_relay_s)
        super().route(stream, params, arrays)


def _keep_busy() -> None:
    while True:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        time.sleep(0.02)
