# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Judges a soak: is the end as quick as the beginning, and does nothing grow. Pure functions of what was recorded."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tritone.tools.bench.measure import Target
from tritone.tools.bench.processes import ProcessUsage
from tritone.tools.bench.soak_traffic import Outcome, Record

# The first and the last sixth are compared: ten minutes of an hour.
WINDOWS = 6
# Memory that a warm process may still take: allocators round up.
SLACK_BYTES = 16 << 20


@dataclass(frozen=True)
class Sample:
    """The processes at one moment, `at_s` seconds after the soak began."""

    at_s: float
    processes: tuple[ProcessUsage, ...]
    shared_memory_bytes: int


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed; NaN of none."""
    return float(np.quantile(values, share, method="inverted_cdf")) if values else float("nan")


def judge(records: Sequence[Record], samples: Sequence[Sample], seconds: float) -> list[Target]:
    """The promises of a soak over its records and samples."""
    window_s = seconds / WINDOWS
    first, last = (
        [r.first_chunk_s for r in records if r.first_chunk_s is not None and low <= r.began_s < high]
        for low, high in ((0.0, window_s), (seconds - window_s, seconds))
    )
    outcomes = Counter(record.outcome for record in records)
    # The first window is warm-up: growth is counted from its end.
    warm = [sample for sample in samples if window_s / 2 <= sample.at_s < window_s]
    late = [sample for sample in samples if sample.at_s >= seconds - window_s]
    targets = [
        Target("requests with a wrong answer or end", outcomes[Outcome.WRONG], 0, is_at_least=False),
        Target("requests without an answer", outcomes[Outcome.BROKEN], 0, is_at_least=False),
        Target(
            "first chunk p95, last over first window", percentile(last, 0.95) / percentile(first, 0.95), 1.25, False
        ),
        Target("processes replaced", _replaced(samples), 0, is_at_least=False),
    ]
    for name in sorted({process.name for sample in warm for process in sample.processes}):
        for what, slack in (("resident_bytes", SLACK_BYTES), ("descriptors", 4), ("threads", 2)):
            before, after = (_median_of(group, name, what) for group in (warm, late))
            targets.append(
                Target(f"{name}: {what}, end over what it may be", after / (before * 1.05 + slack), 1.0, False)
            )
    before, after = (statistics.median(s.shared_memory_bytes for s in group) for group in (warm, late))
    targets.append(Target("shared memory, last over first window", after / (before + 1), 1.05, False))
    return targets


def per_minute(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Counts and first-chunk percentiles of every minute."""
    minutes: dict[int, list[Record]] = {}
    for record in records:
        minutes.setdefault(int(record.began_s // 60), []).append(record)
    rows = []
    for minute, group in sorted(minutes.items()):
        times = [record.first_chunk_s for record in group if record.first_chunk_s is not None]
        rows.append(
            {
                "minute": minute,
                **Counter(record.outcome.value for record in group),
                "first_chunk_p50_s": round(percentile(times, 0.5), 4),
                "first_chunk_p95_s": round(percentile(times, 0.95), 4),
            }
        )
    return rows


def markdown(report: dict[str, Any]) -> str:
    """A page: promises, totals, processes at the beginning and at the end."""
    machine, settings = report["machine"], report["settings"]
    lines = [
        f"# Soak of {settings['minutes']:g} minutes on {machine.get('gpu') or machine['processor']}",
        "",
        f"{machine['time']} · {machine['cores']} cores · {settings['clients']} clients · "
        f"{settings['cancel_share']:.0%} cancels, {settings['bad_share']:.0%} bad input · "
        f"{', '.join(f'{count:,} {name}' for name, count in report['outcomes'].items())}",
        "",
        "| promise | value | bound | kept |",
        "|---|---|---|---|",
    ]
    for target in report["targets"]:
        kept = "yes" if target["met"] else "**no**"
        lines.append(f"| {target['name']} | {target['value']:.3f} | {target['relation']} {target['bound']} | {kept} |")
    lines += ["", "| process | resident MiB | descriptors | threads |", "|---|---|---|---|"]
    beginning, end = (report["samples"][0], report["samples"][-1])
    before = {process["name"]: process for process in beginning["processes"]}
    for process in end["processes"]:
        start = before.get(process["name"], process)
        mebibytes = [f"{usage['resident_bytes'] / 2**20:.0f}" for usage in (start, process)]
        lines.append(
            f"| {process['name']} | {' → '.join(mebibytes)} | {start['descriptors']} → {process['descriptors']} "
            f"| {start['threads']} → {process['threads']} |"
        )
    if report["remarks"]:
        lines += ["", "Wrong or without an answer:", "", *(f"- {remark}" for remark in report["remarks"])]
    return "\n".join(lines) + "\n"


def sample_as_json(sample: Sample) -> dict[str, Any]:
    """A sample for the raw log."""
    return asdict(sample)


def _median_of(samples: Sequence[Sample], name: str, what: str) -> float:
    """Median over samples of the sum over processes of that name."""
    sums = [sum(getattr(p, what) for p in sample.processes if p.name == name) for sample in samples]
    return statistics.median(sums) if sums else 0.0


def _replaced(samples: Sequence[Sample]) -> int:
    """Processes that were not there in the first sample."""
    if not samples:
        return 0
    known = {process.pid for process in samples[0].processes}
    return len({process.pid for sample in samples for process in sample.processes} - known)
