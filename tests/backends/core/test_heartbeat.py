# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The judge of heartbeats: silence is told from life, whatever the reader's own pace; and the page is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritone.backends.core.heartbeat import (
    MAX_READING_GAP_S,
    READ_INTERVAL_S,
    SILENCE_S,
    STALLED,
    HeartbeatJudge,
    StageProcess,
    read_beats,
)

A, B = StageProcess("a", 1), StageProcess("b", 2)
GAPS = st.lists(st.floats(0.01, 30.0), min_size=1, max_size=40)


def test_a_page_is_read() -> None:
    page = (
        "# TYPE tritone_stage_heartbeat gauge\n"
        'tritone_stage_heartbeat{model="chat",process="41"} 7\n'
        'tritone_stage_heartbeat{process="42",model="chat_thinker",version="1"} 1.2e+03\n'
        'tritone_stage_heartbeat{model="chat"} 9\n'
        'tritone_stage_heartbeat{model="chat",process="x"} 9\n'
        'tritone_stage_heartbeat{model="chat",process="43"} inf\n'
        'tritone_stage_heartbeats{model="other",process="44"} 9\n'
        'nv_inference_count{model="chat"} 3\n'
    )
    assert read_beats(page) == {StageProcess("chat", 41): 7, StageProcess("chat_thinker", 42): 1200}


@given(st.text(max_size=200))
def test_any_page_can_be_read(page: str) -> None:
    read_beats(page)
    read_beats(f"tritone_stage_heartbeat{{{page}}} {page}")


@given(GAPS)
def test_a_beat_that_moves_is_never_lost_however_late_the_reader(gaps: list[float]) -> None:
    judge, now_s = HeartbeatJudge(), 0.0
    for beat, gap_s in enumerate(gaps, start=1):
        now_s += gap_s
        judge.take({A: beat}, now_s)
        assert not judge.lost


@given(GAPS)
def test_a_beat_that_stands_is_lost_exactly_after_the_watched_silence(gaps: list[float]) -> None:
    judge, now_s, watched_s = HeartbeatJudge(), 100.0, 0.0
    judge.take({A: 5}, now_s)
    for gap_s in gaps:
        now_s += gap_s
        watched_s += min(gap_s, MAX_READING_GAP_S)
        judge.take({A: 5}, now_s)
        if abs(watched_s - SILENCE_S) > 1e-6:
            assert (A in judge.lost) == (watched_s > SILENCE_S)


def test_a_reader_that_was_held_up_does_not_blame_everybody() -> None:
    judge = HeartbeatJudge()
    judge.take({A: 5, B: 5}, 0.0)
    judge.take({A: 5, B: 5}, 60.0)
    assert not judge.lost


def test_a_death_is_known_within_four_seconds_of_the_last_beat() -> None:
    judge = HeartbeatJudge()
    # The beat comes just after a reading, the death just after the beat.
    now_s = 0.0
    judge.take({A: 1}, now_s)
    while not judge.lost:
        now_s += READ_INTERVAL_S
        judge.take({A: 2}, now_s)
    assert now_s <= 4.0


def test_one_that_says_it_is_stalled_is_lost_at_once_and_comes_back() -> None:
    judge = HeartbeatJudge()
    judge.take({A: 9}, 0.0)
    judge.take({A: STALLED}, 0.5)
    assert judge.lost == {A}
    judge.take({A: 10}, 1.0)
    assert not judge.lost


def test_a_successor_does_not_wake_the_lost() -> None:
    judge, successor = HeartbeatJudge(), StageProcess("a", 3)
    for second in range(10):
        judge.take({A: 5, B: second}, float(second))
    assert judge.lost == {A}
    judge.take({A: 5, B: 10, successor: 1}, 10.0)
    assert judge.lost == {A}


def test_a_process_that_leaves_the_page_is_forgotten() -> None:
    judge = HeartbeatJudge()
    for second in range(10):
        judge.take({A: 5}, float(second))
    judge.take({}, 10.0)
    assert not judge.lost and not judge.processes
    judge.take({A: 5}, 11.0)
    assert not judge.lost
