# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The judge of a soak sees every kind of decay, and none where nothing decays."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritone.tools.bench.processes import ProcessUsage
from tritone.tools.bench.soak_report import Sample, judge, markdown, per_minute, percentile, sample_as_json
from tritone.tools.bench.soak_traffic import Outcome, Record

SECONDS = 600.0
MEBIBYTE = 1 << 20


def records(first_chunk_s: Callable[[float], float] = lambda _: 0.1) -> list[Record]:
    noise = random.Random(1)
    return [
        Record(at_s, Outcome.OK, first_chunk_s(at_s) * noise.uniform(0.9, 1.1))
        for at_s in np.arange(0.0, SECONDS, 0.5).tolist()
    ]


def samples(change: Callable[[float, ProcessUsage], ProcessUsage] = lambda _, usage: usage) -> list[Sample]:
    usage = ProcessUsage(pid=7, name="gateway", resident_bytes=90 * MEBIBYTE, descriptors=26, threads=13)
    return [Sample(at_s, (change(at_s, usage),), 4 * MEBIBYTE) for at_s in np.arange(0.0, SECONDS, 5.0).tolist()]


def missed(some_records: list[Record], some_samples: list[Sample]) -> set[str]:
    targets = [target.as_json() for target in judge(some_records, some_samples, SECONDS)]
    return {target["name"] for target in targets if not target["met"]}


def test_nothing_is_missed_where_nothing_decays() -> None:
    assert missed(records(), samples()) == set()


@pytest.mark.parametrize(
    ("grow", "name"),
    [
        (
            lambda at_s, usage: replace(usage, resident_bytes=usage.resident_bytes + int(at_s * MEBIBYTE / 10)),
            "resident",
        ),
        (lambda at_s, usage: replace(usage, descriptors=usage.descriptors + int(at_s / 60)), "descriptors"),
        (lambda at_s, usage: replace(usage, threads=usage.threads + int(at_s / 60)), "threads"),
        (lambda at_s, usage: replace(usage, pid=8) if at_s > 300 else usage, "replaced"),
    ],
)
def test_growth_and_replacement_are_seen(grow: Callable[[float, ProcessUsage], ProcessUsage], name: str) -> None:
    (seen,) = missed(records(), samples(grow))
    assert name in seen


def test_a_slow_end_is_seen() -> None:
    (seen,) = missed(records(lambda at_s: 0.1 + 0.1 * at_s / SECONDS), samples())
    assert "first chunk" in seen


@pytest.mark.parametrize(("outcome", "name"), [(Outcome.WRONG, "wrong"), (Outcome.BROKEN, "without an answer")])
def test_one_bad_end_is_seen(outcome: Outcome, name: str) -> None:
    (seen,) = missed([*records(), Record(3.0, outcome)], samples())
    assert name in seen


def test_growing_shared_memory_is_seen() -> None:
    grown = [replace(s, shared_memory_bytes=4 * MEBIBYTE + int(s.at_s) * 65536) for s in samples()]
    (seen,) = missed(records(), grown)
    assert "shared memory" in seen


@given(
    st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=50),
    st.sampled_from([0.5, 0.9, 0.95, 0.99, 1.0]),
)
def test_percentile_is_the_inverted_distribution(values: list[float], share: float) -> None:
    assert percentile(values, share) == np.quantile(values, share, method="inverted_cdf")


def test_every_request_is_in_one_minute_of_the_report() -> None:
    some = [*records(), Record(61.0, Outcome.CANCELLED), Record(61.5, Outcome.REFUSED)]
    rows = per_minute(some)
    assert [row["minute"] for row in rows] == list(range(10))
    assert sum(row.get(outcome.value, 0) for row in rows for outcome in Outcome) == len(some)
    assert rows[1]["cancelled"] == rows[1]["refused"] == 1


def test_the_page_shows_misses_and_growth() -> None:
    grown = samples(lambda at_s, usage: replace(usage, resident_bytes=usage.resident_bytes + int(at_s) * MEBIBYTE))
    page = markdown(
        {
            "machine": {"processor": "a processor", "cores": 2, "time": "now"},
            "settings": {"minutes": 10, "clients": 4, "cancel_share": 0.05, "bad_share": 0.01},
            "outcomes": {"ok": 1200},
            "targets": [target.as_json() for target in judge(records(), grown, SECONDS)],
            "samples": [sample_as_json(grown[0]), sample_as_json(grown[-1])],
            "remarks": ["3.0 s: wrong"],
        }
    )
    assert "| gateway | 90 → 685 | 26 → 26 | 13 → 13 |" in page
    assert page.count("**no**") == 1 and "- 3.0 s: wrong" in page
