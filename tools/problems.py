# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The error of everything a person starts from a terminal: what is wrong, and what to do about it."""

from __future__ import annotations


class LaunchError(Exception):
    """Something the user can put right. `remedy` is the next step, a command where there is one."""

    def __init__(self, message: str, *, remedy: str | None = None, details: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.details = details  # lines of a log, shown as they are
