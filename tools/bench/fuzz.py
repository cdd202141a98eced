# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The fuzzing run: hostile HTTP, bodies by the OpenAPI document, hostile gRPC, each with known good requests between.

Loads a stack of its own, or one that runs. Seeded: the same seed sends the same cases.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tritone.tools.bench.machine import describe_machine
from tritone.tools.bench.measure import Target
from tritone.tools.serving import render_for_run
from tritone.tools.stack import Stack

PIPELINE = "smollm2_chat"
MAX_FAULTS_SHOWN = 20
GOOD_TIMEOUT_S = 60.0

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Fuzz:
    """How much, from which seed, against what. Without `url` a stack is started."""

    cases: int  # for each route, and as many for each route and method together in raw HTTP
    seconds: float  # each part ends after this long although cases are left
    seed: int
    url: str = ""  # of a gateway that runs
    grpc: str = ""  # host:port of its Triton; empty: no gRPC part


@dataclass
class Part:
    """What came of one part."""

    name: str
    num_cases: int = 0
    seconds: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)  # each names the case, so that it can be sent again

    def as_json(self) -> dict[str, Any]:
        """For the report."""
        shown = {**asdict(self), "answers": dict(sorted(self.answers.items())), "num_faults": len(self.faults)}
        return {**shown, "faults": self.faults[:MAX_FAULTS_SHOWN]}


def run(fuzz: Fuzz, run_folder: Path, announce: Announce) -> dict[str, Any]:
    """Send everything and return the report."""
    from tritone.tools.bench.fuzz_grpc import fuzz_grpc
    from tritone.tools.bench.fuzz_http import fuzz_http
    from tritone.tools.bench.fuzz_schema import fuzz_schema

    with ExitStack() as exits:
        url, grpc, stack = fuzz.url, fuzz.grpc, None
        if not url:
            chosen = render_for_run(run_folder, [PIPELINE], progress=announce)
            stack = exits.enter_context(
                Stack.start(chosen.repository, run_folder, models=chosen.models, progress=announce)
            )
            url, grpc = stack.gateway.url, stack.server.grpc_address
        senders: list[tuple[str, Callable[[Part], None]]] = [
            ("raw HTTP", lambda part: asyncio.run(fuzz_http(part, fuzz, url, announce))),
            ("OpenAPI", lambda part: fuzz_schema(part, fuzz, url, announce)),
        ]
        if grpc:
            senders.append(("gRPC", lambda part: asyncio.run(fuzz_grpc(part, fuzz, grpc, PIPELINE, announce))))
        num_bad = 0
        parts = []
        for name, send in senders:
            part = Part(name)
            began = time.monotonic()
            send(part)
            part.seconds = round(time.monotonic() - began, 1)
            num_bad += not answers_well(url)
            parts.append(part)
        has_ended = stack is not None and (stack.gateway.has_ended() or stack.server.has_ended())
        num_tracebacks = count_tracebacks(stack.gateway.log_path) if stack is not None else 0
    targets = [Target(f"{part.name}: faults", len(part.faults), 0, is_at_least=False) for part in parts]
    targets.append(Target("parts after which a good request fails", num_bad, 0, is_at_least=False))
    targets.append(Target("processes that ended", int(has_ended), 0, is_at_least=False))
    targets.append(Target("tracebacks in the gateway's log", num_tracebacks, 0, is_at_least=False))
    return {
        "machine": describe_machine("cpu"),
        "settings": asdict(fuzz),
        "targets": [target.as_json() for target in targets],
        "parts": [part.as_json() for part in parts],
    }


def count_tracebacks(log: Path) -> int:
    """Exceptions that nobody expected."""
    return log.read_text(encoding="utf-8", errors="replace").count("Traceback")


def answers_well(url: str) -> bool:
    """Whether a good request gets its answer."""
    body = {"model": PIPELINE, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=GOOD_TIMEOUT_S) as answer:
            return bool(json.load(answer)["usage"]["completion_tokens"])
    except (OSError, urllib.error.URLError, ValueError, KeyError):
        return False


def markdown(report: dict[str, Any]) -> str:
    """The report as a page."""
    machine = report["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores"
    lines = ["# Fuzzing", "", f"Seed {report['settings']['seed']}, {where}, {machine['time']}.", ""]
    lines += ["| part | cases | s | faults | answers |", "|---|---|---|---|---|"]
    for part in report["parts"]:
        answers = ", ".join(f"{name}: {number}" for name, number in part["answers"].items())
        lines.append(f"| {part['name']} | {part['num_cases']} | {part['seconds']} | {part['num_faults']} | {answers} |")
    lines += ["", "| target | seen | allowed | |", "|---|---|---|---|"]
    for target in report["targets"]:
        lines.append(f"| {target['name']} | {target['value']} | {target['bound']} | {'✓' if target['met'] else '✗'} |")
    faults = [f"- {part['name']}: {fault}" for part in report["parts"] for fault in part["faults"]]
    return "\n".join([*lines, *(["", "## Faults", "", *faults] if faults else []), ""])
