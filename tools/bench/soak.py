# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The soak: minutes of mixed traffic with cancels and bad input, while every process is watched for growth."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tritone.tools.bench.machine import describe_machine
from tritone.tools.bench.processes import shared_memory_bytes, usage_of_descendants
from tritone.tools.bench.soak_report import Sample, judge, per_minute, sample_as_json
from tritone.tools.bench.soak_traffic import Outcome, Traffic
from tritone.tools.serving import render_for_run
from tritone.tools.stack import Stack

SAMPLE_INTERVAL_S = 5.0
MAX_REMARKS = 20
LOG_NAME = "soak.jsonl.gz"
PIPELINE = "smollm2_chat"

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Soak:
    """How long, how many, and how much of it goes wrong on purpose."""

    minutes: float
    clients: int
    cancel_share: float
    bad_share: float


def run(soak: Soak, run_folder: Path, output: Path, announce: Announce) -> dict[str, Any]:
    """Start a stack of its own, load it, and return the report. The raw log is `output`/soak.jsonl.gz."""
    chosen = render_for_run(run_folder, [PIPELINE], progress=announce)
    with Stack.start(chosen.repository, run_folder, models=chosen.models, progress=announce) as stack:
        traffic = Traffic(stack.gateway.url, PIPELINE, soak.cancel_share, soak.bad_share)
        samples = asyncio.run(_drive(soak, traffic, stack, announce))
    seconds = soak.minutes * 60
    report = {
        "machine": describe_machine("cpu"),
        "settings": asdict(soak),
        "outcomes": dict(Counter(record.outcome.value for record in traffic.records)),
        "targets": [target.as_json() for target in judge(traffic.records, samples, seconds)],
        "minutes": per_minute(traffic.records),
        "samples": [sample_as_json(samples[0]), sample_as_json(samples[-1])],
        "remarks": [
            f"{record.began_s:.1f} s: {record.outcome} {record.remark}"
            for record in traffic.records
            if record.outcome in (Outcome.WRONG, Outcome.BROKEN)
        ][:MAX_REMARKS],
    }
    _write_log(output / LOG_NAME, traffic, samples)
    return report


async def _drive(soak: Soak, traffic: Traffic, stack: Stack, announce: Announce) -> list[Sample]:
    seconds = soak.minutes * 60
    load = asyncio.create_task(traffic.run(soak.clients, seconds))
    samples: list[Sample] = []
    began = time.monotonic()
    while not load.done():
        processes = await asyncio.to_thread(usage_of_descendants)
        region_bytes = shared_memory_bytes(stack.server.options.region_prefix)
        samples.append(Sample(round(time.monotonic() - began, 2), tuple(processes), region_bytes))
        announce(
            f"soaking … {(time.monotonic() - began) / 60:.1f} of {soak.minutes:g} min, {len(traffic.records)} sent"
        )
        await asyncio.wait([load], timeout=SAMPLE_INTERVAL_S)
    await load
    return samples


def _write_log(path: Path, traffic: Traffic, samples: list[Sample]) -> None:
    """One JSON line for every request and every sample, by time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [(record.began_s, {"request": asdict(record)}) for record in traffic.records]
    # Every sixth: half a minute is fine enough to draw, and the log stays small.
    lines += [(sample.at_s, {"sample": sample_as_json(sample)}) for sample in samples[::6]]
    with gzip.open(path, "wt", encoding="utf-8") as log:
        for _, line in sorted(lines, key=lambda entry: entry[0]):
            log.write(json.dumps(line) + "\n")
