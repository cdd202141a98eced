# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The one error of pipeline files, profiles and rendering: every problem found, not only the first."""

from __future__ import annotations

from collections.abc import Sequence


class BuildError(Exception):
    """A pipeline cannot be built. `problems` holds one sentence for each thing that is wrong."""

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        self.what = what
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{what}:\n{lines}")
