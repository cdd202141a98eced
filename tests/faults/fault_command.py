# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What a request may order the fault stage to do. Travels as JSON in the prompt, so it passes every gateway.

Imported by the stage inside Triton and by the tests: imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import json
from dataclasses import asdict, dataclass
from typing import Any

# What a library says in its own exceptions: nothing a client may see.
LIBRARY_TEXT = "/opt/secret/path: CUDA error 0xdeadbeef"
# Where a fault strikes.
BEGIN, STEP, SEND, CANCEL, ROUTE = "begin", "step", "send", "cancel", "route"
CRASHES = ("SIGKILL", "SIGSEGV", "exit")
MALFORMED = ("kind", "details", "no_kind", "wrong_dtype", "no_tensors", "handle")


@dataclass(frozen=True)
class FaultCommand:
    """The stage says the numbers 0 … chunks - 1, one in a chunk, and strikes at chunk `at`."""

    chunks: int = 3
    delay_ms: float = 0.0  # before the first chunk
    interval_ms: float = 0.0  # between chunks
    coalesce: int = 1  # numbers put at once, which the outbox may join
    chunk_bytes: int = 0  # padding of every number
    at: int = 1  # the chunk before which a fault of a step or a send strikes
    raise_in: str = ""  # BEGIN, STEP, SEND, CANCEL or (of the orchestrator) ROUTE: an exception of a library
    refuse: str = ""  # code of a TritoneError that `begin` raises
    fail: str = ""  # code of a TritoneError that ends the request at chunk `at`
    crash: str = ""  # one of CRASHES, at chunk `at`
    hang_in: str = ""  # BEGIN, STEP or SEND: sleeps `hang_s`
    hang_s: float = 0.0
    malformed: str = ""  # one of MALFORMED, in chunk `at`
    never_final: bool = False  # goes silent after the last number, until it is cancelled
    hog_s: float = 0.0  # the stage's interpreter stands still that long, at chunk `at`
    hog_relay_s: float = 0.0  # the orchestrator's does, before it calls the stage

    def prompt(self) -> str:
        """The prompt that orders this: only what differs from the default."""
        default = asdict(FaultCommand())
        return json.dumps({key: value for key, value in asdict(self).items() if value != default[key]})

    def answer(self) -> str:
        """The text of a request that ends well."""
        return "".join(map(self.number, range(self.chunks)))

    def number(self, index: int) -> str:
        """The text of one chunk."""
        return f"{index}{'.' * self.chunk_bytes} "


def read_command(params: dict[str, Any]) -> FaultCommand:
    """The command in a request's prompt; three numbers for any other prompt."""
    text: Any = params.get("prompt")
    if text is None and params.get("messages"):
        text = params["messages"][-1]["content"]
    try:
        return FaultCommand(**json.loads(text))
    except (TypeError, ValueError):
        return FaultCommand()


def hold_interpreter(duration_s: float) -> None:
    """Let no other thread of this process run Python: a call through PyDLL keeps the interpreter's lock."""
    ctypes.PyDLL(None).usleep(int(duration_s * 1e6))
