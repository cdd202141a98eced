# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The plan of recoveries: tries, waits, giving up, starting afresh."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from tritone.tools.supervisor_plan import FRESH_AFTER_S, MAX_TRIES, WAITS_S, RecoveryPlan

MODELS = ("a", "b", "c")
MODEL_SETS = st.frozensets(st.sampled_from(MODELS))
# Each round: how long it comes after the last, who is sick, which of the tries under way end, and which of them well.
ROUNDS = st.lists(
    st.tuples(st.sampled_from([0.5, 1.0, 7.0, 20.0, 400.0]), MODEL_SETS, MODEL_SETS, MODEL_SETS), max_size=60
)


@given(ROUNDS)
def test_the_promises_hold_for_any_course(
    rounds: list[tuple[float, frozenset[str], frozenset[str], frozenset[str]]],
) -> None:
    plan, now_s = RecoveryPlan(), 0.0
    under_way: set[str] = set()
    unloaded: set[str] = set()
    tries: dict[str, int] = defaultdict(int)
    given_up: set[str] = set()
    ended_at_s: dict[str, float] = {}
    last_sick_s: dict[str, float] = {}
    for gap_s, drawn_sick, ending, loading_well in rounds:
        now_s += gap_s
        for model in sorted(ending & under_way):
            is_loaded = model in loading_well
            plan.ended(model, is_loaded=is_loaded, now_s=now_s)
            under_way.discard(model)
            ended_at_s[model] = now_s
            (unloaded.discard if is_loaded else unloaded.add)(model)
        sick = drawn_sick - under_way
        living = frozenset(MODELS) - sick - unloaded - under_way
        decision = plan.take(sick, living, now_s)
        for model in decision.reload:
            assert model in sick | unloaded, "a well model was tried"
            assert model not in under_way, "tried twice at once"
            assert model not in given_up
            if plan.num_tries(model) > 1:
                assert now_s >= ended_at_s[model] + WAITS_S[plan.num_tries(model) - 2]
            tries[model] += 1
            assert tries[model] <= MAX_TRIES
            under_way.add(model)
        for model in decision.give_up:
            assert plan.num_tries(model) == MAX_TRIES and model not in given_up, "given up twice or early"
            given_up.add(model)
        for model in MODELS:
            if model in sick | unloaded | under_way:
                last_sick_s[model] = now_s
            elif now_s - last_sick_s.get(model, now_s) >= FRESH_AFTER_S:
                # It may have its tries again; whether the plan has noticed is its affair.
                tries[model] = 0
                given_up.discard(model)


def test_the_course_of_a_model_that_cannot_be_loaded() -> None:
    plan, now_s, tried_at_s = RecoveryPlan(), 0.0, []
    while now_s < 100:
        decision = plan.take({"a"}, set(), now_s)
        if decision.reload:
            tried_at_s.append(now_s)
            plan.ended("a", is_loaded=False, now_s=now_s)
        if decision.give_up:
            break
        now_s += 0.5
    assert tried_at_s == [0.0, WAITS_S[0], WAITS_S[0] + WAITS_S[1]]
    assert now_s == sum(WAITS_S)
    assert plan.take({"a"}, set(), now_s + 1000) == (frozenset(), frozenset())


def test_a_failed_load_is_tried_again_though_nothing_shows_it() -> None:
    plan = RecoveryPlan()
    plan.take({"a"}, set(), 0.0)
    plan.ended("a", is_loaded=False, now_s=1.0)
    # Its process is gone from the page, and the server does not call it ready.
    assert plan.take(set(), set(), 7.0).reload == {"a"}


def test_a_model_that_stays_well_has_all_its_tries_again() -> None:
    plan = RecoveryPlan()
    for _ in range(5):
        plan.take({"a"}, set(), 0.0)
        plan.ended("a", is_loaded=True, now_s=0.0)
        assert plan.num_tries("a") == 1
        plan.take(set(), {"a"}, 10.0)
        plan.take(set(), {"a"}, 10.0 + FRESH_AFTER_S)
        assert plan.is_idle
