# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What to load again and when: tries, waits, giving up. Pure: no clock, no server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

# Before the next try, after the first, second and third. Longer than a loaded model takes to show its first beat.
WAITS_S = (5.0, 15.0, 5.0)
MAX_TRIES = len(WAITS_S)
# A model that has been well for this long has all its tries again.
FRESH_AFTER_S = 300.0


@dataclass
class _Patient:
    """A model that was sick in the last `FRESH_AFTER_S`."""

    num_tries: int = 0
    next_try_s: float = 0.0
    is_being_tried: bool = False
    is_loaded: bool = True  # false after a try that failed, until the model is seen alive
    has_been_given_up: bool = False
    well_since_s: float | None = None


class Decision(NamedTuple):
    """What is due now."""

    reload: frozenset[str]
    give_up: frozenset[str]


class RecoveryPlan:
    """Owns the history of each model that was sick.

    Guarantees: a model is tried only while it is sick, at most `MAX_TRIES` times until it has been well for
    `FRESH_AFTER_S`, never twice at once and never before its wait is over; it is given up once, after the last.
    """

    def __init__(self) -> None:
        self._patients: dict[str, _Patient] = {}

    def take(self, sick: Iterable[str], living: Iterable[str], now_s: float) -> Decision:
        """Note who is sick and who is seen alive; what is due counts as begun, until `ended` says otherwise."""
        sick, living = frozenset(sick), frozenset(living)
        for model in sick:
            self._patients.setdefault(model, _Patient(next_try_s=now_s))
        reload, give_up = set(), set()
        for model, patient in list(self._patients.items()):
            patient.is_loaded = patient.is_loaded or model in living
            if model not in sick and patient.is_loaded:
                self._note_well(model, patient, now_s)
                continue
            patient.well_since_s = None
            if patient.is_being_tried or patient.has_been_given_up or now_s < patient.next_try_s:
                continue
            if patient.num_tries == MAX_TRIES:
                patient.has_been_given_up = True
                give_up.add(model)
            else:
                patient.num_tries += 1
                patient.is_being_tried = True
                reload.add(model)
        return Decision(frozenset(reload), frozenset(give_up))

    def ended(self, model: str, *, is_loaded: bool, now_s: float) -> None:
        """A try has ended."""
        patient = self._patients.setdefault(model, _Patient(num_tries=1))
        patient.is_being_tried = False
        patient.is_loaded = is_loaded
        patient.next_try_s = now_s + WAITS_S[max(patient.num_tries, 1) - 1]

    def num_tries(self, model: str) -> int:
        """How often the model was tried."""
        return self._patients[model].num_tries if model in self._patients else 0

    @property
    def is_idle(self) -> bool:
        """Whether every model is well and was so for long."""
        return not self._patients

    def _note_well(self, model: str, patient: _Patient, now_s: float) -> None:
        if patient.is_being_tried:
            return
        if patient.well_since_s is None:
            patient.well_since_s = now_s
        elif now_s - patient.well_since_s >= FRESH_AFTER_S:
            del self._patients[model]
