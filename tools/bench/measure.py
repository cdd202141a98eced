# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Alternating measurement of several sides, and the numbers kept of it. Knows nothing of what a side does."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Side = Callable[[], float]


@dataclass(frozen=True)
class Samples:
    """What one side gave, in the order it was measured."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def as_json(self) -> dict[str, Any]:
        return {
            "median": self.median,
            "minimum": min(self.values),
            "maximum": max(self.values),
            "values": list(self.values),
        }


def alternate(sides: Mapping[str, Side], rounds: int, announce: Callable[[str], None]) -> dict[str, Samples]:
    """Measure every side once per round, starting with another one each round; one unmeasured round first."""
    names = list(sides)
    collected: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            announce(f"round {number}/{rounds}: {name}")
            value = sides[name]()
            if number > 0:
                collected[name].append(value)
    return {name: Samples(tuple(values)) for name, values in collected.items()}


@dataclass(frozen=True)
class Target:
    """A promise about two numbers of one run, or about one."""

    name: str
    value: float
    bound: float
    is_at_least: bool = True

    @property
    def is_met(self) -> bool:
        return self.value >= self.bound if self.is_at_least else self.value <= self.bound

    def as_json(self) -> dict[str, Any]:
        relation = ">=" if self.is_at_least else "<="
        return {"name": self.name, "value": self.value, "relation": relation, "bound": self.bound, "met": self.is_met}
