# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Pick out of the server's log the lines that say why something failed."""

from __future__ import annotations

import re
from pathlib import Path

MAX_LINES = 25
# Triton's own error lines start with E and a date: "E1130 21:04:05.123456 1234 file.cc:12] ...".
_ERROR = re.compile(r"^E\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [\w.]+:\d+\] ?(.*)")
_ANY_ENTRY = re.compile(r"^[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ")
_FATAL = re.compile(r"^(error: |terminate called|.*: error while loading shared libraries: |failed to )", re.IGNORECASE)
# What every start without a GPU says.
_NOISE = re.compile(r"CudaDriverHelper|DCGM|NVML")
_LOAD_FAILURE = re.compile(r"^E\d{4} .*failed to load '", re.MULTILINE)


def has_load_failure(path: Path, offset_bytes: int = 0) -> bool:
    """Whether the server has said, after `offset_bytes`, that a model failed to load; it may go on loading others."""
    try:
        with path.open("rb") as log:
            log.seek(offset_bytes)
            return _LOAD_FAILURE.search(log.read().decode("utf-8", "replace")) is not None
    except OSError:
        return False


def failure_lines(path: Path) -> list[str]:
    """The last error entries of the log at `path`, each with the lines that follow it; empty when there are none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found: list[str] = []
    inside = False
    for line in lines:
        match = _ERROR.match(line)
        if match:
            inside = not _NOISE.search(line)
            if inside:
                found += _unquoted(match.group(1))
        elif _FATAL.match(line) and not _NOISE.search(line):
            inside = False
            found.append(line)
        elif _ANY_ENTRY.match(line):
            inside = False
        elif inside:
            found.append(line)
    return list(dict.fromkeys(found))[-MAX_LINES:]


def _unquoted(message: str) -> list[str]:
    """The lines of a message that newer servers write as one quoted string."""
    if message.startswith('"') and message.endswith('"'):
        message = message[1:-1].replace("\\n", "\n").replace("\\t", "\t")
    return [line for line in message.splitlines() if line.strip()]
