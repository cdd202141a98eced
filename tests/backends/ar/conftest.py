# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Drives an engine without its thread and collects what it publishes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tritone.backends.ar.engine import Engine
from tritone.backends.ar.events import Event, RequestDone, RequestFailed, TokenChunk
from tritone.backends.ar.request import GenerationRequest, SamplingParams
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.models.checkpoint import Checkpoint

MAX_STEPS = 20_000


@dataclass
class Driver:
    """An engine stepped by hand."""

    engine: Engine
    events: list[Event] = field(default_factory=list)

    def submit(self, prompt: list[int], *, n: int = 1, **sampling: Any) -> int:
        """Submit a prompt; greedy unless told otherwise."""
        params = SamplingParams(**{"temperature": 0.0, "max_tokens": 16, **sampling})
        return self.engine.submit(GenerationRequest(tuple(prompt), params, n))

    def run(self) -> None:
        """Step until nothing is left to do."""
        for _ in range(MAX_STEPS):
            if not self.engine.step():
                break
        else:
            raise AssertionError("the engine did not come to rest")
        assert self.engine.statistics().kv_blocks_used == 0, "blocks leaked"
        assert self.engine.statistics().waiting_requests == 0
        assert self.engine.statistics().running_rows == 0

    def chunks(self, request_id: int, choice: int = 0) -> list[TokenChunk]:
        """All chunks of one choice."""
        mine = [e for e in self.events if isinstance(e, TokenChunk) and e.request_id == request_id]
        return [chunk for chunk in mine if chunk.choice_index == choice]

    def tokens(self, request_id: int, choice: int = 0) -> list[int]:
        """Token ids of one choice."""
        return [token for chunk in self.chunks(request_id, choice) for token in chunk.token_ids]

    def text(self, request_id: int, choice: int = 0) -> str:
        """Text of one choice."""
        return "".join(chunk.text for chunk in self.chunks(request_id, choice))

    def end(self, request_id: int) -> RequestDone | RequestFailed:
        """The one event that ended the request, which is also its last."""
        mine = [event for event in self.events if event.request_id == request_id]
        ends = [event for event in mine if isinstance(event, RequestDone | RequestFailed)]
        assert len(ends) == 1 and mine[-1] is ends[0]
        return ends[0]

    def generate(self, prompt: list[int], **sampling: Any) -> list[int]:
        """Token ids of one request run by itself."""
        request_id = self.submit(prompt, **sampling)
        self.run()
        assert isinstance(self.end(request_id), RequestDone)
        return self.tokens(request_id)


DriverMaker = Callable[..., Driver]


def _drive(checkpoint: Checkpoint, **settings: Any) -> Driver:
    small = {"device": "cpu", "max_rows": 8, "max_step_tokens": 256, "num_threads": 1}
    events: list[Event] = []
    engine = Engine(checkpoint, EngineSettings(**{**small, **settings}), events.extend)
    return Driver(engine, events)


@pytest.fixture(scope="session")
def drive() -> DriverMaker:
    """Makes a driver for a checkpoint and settings."""
    return _drive
