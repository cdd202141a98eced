# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The chat benchmark: engine against transformers' generate and the weight products, served against the engine.

Every figure of one report comes from one run on one machine, sides alternating, medians with their spread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import torch

from tritone.backends.ar.settings import EngineSettings
from tritone.backends.models.checkpoint import Checkpoint
from tritone.tools.bench.chat_served import GatewaySide, StageSide
from tritone.tools.bench.chat_sides import EngineSide, TransformersSide, WeightProductsSide
from tritone.tools.bench.machine import copy_bandwidth_bytes_per_s, describe_machine
from tritone.tools.bench.measure import Samples, Target, alternate
from tritone.tools.serving import render_for_run
from tritone.tools.stack import Stack

PROMPT_TOKENS = 32
CONCURRENT = 8
FIRST_TOKEN_ROUNDS = 21
Announce = Callable[[str], None]


@dataclass(frozen=True)
class ChatBench:
    """What is measured."""

    checkpoint: str
    device: str
    dtype: str
    rounds: int
    new_tokens: int
    batches: tuple[int, ...]  # engine-alone sweep, rows at once


def run(bench: ChatBench, run_folder: Path, announce: Announce) -> dict[str, Any]:
    """Measure everything and return the report."""
    checkpoint = Checkpoint.resolve(bench.checkpoint)
    report: dict[str, Any] = {
        "machine": describe_machine(bench.device),
        "settings": {
            "checkpoint": checkpoint.reference,
            "dtype": bench.dtype,
            "prompt_tokens": PROMPT_TOKENS,
            "new_tokens": bench.new_tokens,
            "rounds": bench.rounds,
        },
    }
    announce("starting the server")
    chosen = render_for_run(
        run_folder, ["smollm2_chat"], checkpoint=bench.checkpoint, profile=_profile(bench.device), progress=announce
    )
    with Stack.start(chosen.repository, run_folder, models=chosen.models, progress=announce) as stack:
        report |= _measure(bench, checkpoint, stack, announce)
    return report


def _profile(device: str) -> str:
    return "gpu" if device == "cuda" else "default"


def _measure(bench: ChatBench, checkpoint: Checkpoint, stack: Stack, announce: Announce) -> dict[str, Any]:
    dtype: torch.dtype = getattr(torch, bench.dtype)
    prompts = _Prompts(checkpoint.config.vocab_size)
    announce("loading transformers' model and the engine")
    transformers_side = TransformersSide(checkpoint, bench.device, dtype, bench.new_tokens)
    products = WeightProductsSide(checkpoint.config, bench.device, dtype, bench.new_tokens)
    settings = EngineSettings(
        device=bench.device,
        dtype=bench.dtype,
        max_rows=max(*bench.batches, CONCURRENT),
        # The same few prompts come again and again; remembering them would skip work the other side does.
        prefix_caching=False,
    )
    engine = EngineSide(checkpoint, settings, bench.new_tokens)
    gateway = GatewaySide(stack.gateway.url, "smollm2_chat", bench.new_tokens)
    stage = StageSide(stack.server.grpc_address, "smollm2_chat_thinker")
    with httpx.Client(timeout=600) as client:
        sections = {
            "one_row": alternate(
                {
                    "generate": lambda: transformers_side.generate(prompts.take(1)),
                    "weight_products": lambda: products.rate(1),
                    "engine": lambda: engine.rate(prompts.take(1)),
                    "engine_decode": lambda: engine.decode_rate(prompts.take(1)),
                    "gateway": lambda: gateway.rate(prompts.take(1)),
                },
                bench.rounds,
                announce,
            ),
            "eight_rows": alternate(
                {
                    "generate_one_by_one": lambda: transformers_side.generate_one_by_one(prompts.take(CONCURRENT)),
                    "generate_batch": lambda: transformers_side.generate(prompts.take(CONCURRENT)),
                    "weight_products": lambda: products.rate(CONCURRENT),
                    "engine": lambda: engine.rate(prompts.take(CONCURRENT)),
                    "gateway": lambda: gateway.rate(prompts.take(CONCURRENT)),
                },
                bench.rounds,
                announce,
            ),
            "first_token_s": alternate(
                {
                    "engine": lambda: engine.first_token_s(prompts.take(1)[0]),
                    "stage": lambda: stage.first_token_s(prompts.take(1)[0]),
                    "gateway": lambda: gateway.first_token_s(client, prompts.take(1)[0]),
                },
                FIRST_TOKEN_ROUNDS,
                announce,
            ),
        }
    stage.stop()
    sweep = _sweep(bench, engine, prompts, products, announce)
    return {
        "sections": {
            name: {side: samples.as_json() for side, samples in sides.items()} for name, sides in sections.items()
        },
        "sweep": sweep,
        "targets": [target.as_json() for target in _targets(sections)],
    }


def _targets(sections: dict[str, dict[str, Samples]]) -> list[Target]:
    one, eight, first = sections["one_row"], sections["eight_rows"], sections["first_token_s"]

    def ratio(sides: dict[str, Samples], over: str, under: str) -> float:
        return sides[over].median / sides[under].median

    added_ms = (first["gateway"].median - first["stage"].median) * 1000
    return [
        Target("1 row: engine / generate", ratio(one, "engine", "generate"), 1.05),
        Target("1 row: engine decode / weight products", ratio(one, "engine_decode", "weight_products"), 0.85),
        Target("8 rows: engine / generate one by one", ratio(eight, "engine", "generate_one_by_one"), 3.0),
        Target("8 rows: engine / generate at batch 8", ratio(eight, "engine", "generate_batch"), 0.9),
        Target("first token: gateway and orchestrator add, ms", added_ms, 15.0, is_at_least=False),
        Target("8 rows: through the gateway / engine", ratio(eight, "gateway", "engine"), 0.9),
    ]


def _sweep(
    bench: ChatBench, engine: EngineSide, prompts: _Prompts, products: WeightProductsSide, announce: Announce
) -> dict[str, Any]:
    """Engine decode rates over batch sizes, against the time it takes to read the weights once a step."""
    bandwidth = copy_bandwidth_bytes_per_s(bench.device)
    rows: dict[str, Any] = {}
    for batch in bench.batches:
        side = {"decode": lambda batch=batch: engine.decode_rate(prompts.take(batch))}
        samples = alternate(side, bench.rounds, announce)["decode"]
        floor_rate = batch * bandwidth / products.num_bytes
        rows[str(batch)] = samples.as_json() | {"share_of_bandwidth_floor": samples.median / floor_rate}
    return {"weight_bytes": products.num_bytes, "copy_bandwidth_bytes_per_s": bandwidth, "rows": rows}


class _Prompts:
    """Random token ids, new ones for every call, so that no cache of prefixes helps anybody."""

    def __init__(self, vocab_size: int) -> None:
        self._random = random.Random(time.time_ns())
        self._vocab_size = vocab_size

    def take(self, count: int) -> list[list[int]]:
        # The first ids of a vocabulary are its special tokens.
        return [[self._random.randrange(100, self._vocab_size) for _ in range(PROMPT_TOKENS)] for _ in range(count)]
