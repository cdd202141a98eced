# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A `Transport` that plays scripts. Each call runs a script: chunks, pauses and errors, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tritone.ensembles.protocol import CAPABILITIES_PARAMETER, ROLE_PARAMETER, ChunkKind
from tritone.errors import Cancelled, Overloaded, TritoneError
from tritone.gateway.transport import Chunk, ChunkStream, GenerationCall, ModelState, ModelStatus, Transport


class Hang:
    """A step that never ends; only a cancel gets past it."""


@dataclass(frozen=True)
class Pause:
    """A step that waits."""

    seconds: float


Step = Chunk | Pause | Hang | TritoneError
Script = Sequence[Step]


def text_script(
    pieces: Sequence[str],
    *,
    accept: bool = False,
    n: int = 1,
    finish_reason: str = "stop",
    prompt_tokens: int = 3,
    logprobs: bool = False,
    pause_s: float = 0.0,
) -> list[Step]:
    """What a stage answers: each piece is one token of every choice."""
    steps: list[Step] = []
    index = 0

    def add(kind: ChunkKind, **values: Any) -> None:
        nonlocal index
        steps.append(Chunk(index, kind, **values))
        index += 1

    if accept:
        add(ChunkKind.ACCEPTED, details=b'{"handle":"00"}')
    for position, piece in enumerate(pieces):
        for choice in range(n):
            if pause_s:
                steps.append(Pause(pause_s))
            is_last = position == len(pieces) - 1
            add(
                ChunkKind.TEXT,
                choice_index=choice,
                text=piece,
                num_tokens=1,
                finish_reason=finish_reason if is_last else None,
                details=orjson.dumps({"logprobs": [token_logprob(piece)]}) if logprobs else b"",
            )
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(pieces) * n, "cached_tokens": 0}
    add(ChunkKind.DONE, details=orjson.dumps({"usage": usage}))
    return steps


def token_logprob(piece: str) -> dict[str, Any]:
    """One token's entry in a chunk's details."""
    entry = {"token": piece, "id": 7, "logprob": -0.5, "bytes": list(piece.encode())}
    return {**entry, "top": [entry, {**entry, "token": "other", "logprob": -1.5}]}


def reply_hello(call: GenerationCall) -> Script:
    """The default script: obeys `n`, `accept` and `logprobs`."""
    params = orjson.loads(call.params)
    return text_script(
        ["Hello", ",", " world"],
        accept=bool(params.get("accept")),
        n=params.get("n", 1),
        logprobs=bool(params.get("logprobs")),
    )


class FakeStream(ChunkStream):
    """Plays one script."""

    def __init__(self, script: Script) -> None:
        self._steps = iter(script)
        self._cancelled = asyncio.Event()
        self.is_cancelled_early = False
        self.has_ended = False

    async def __anext__(self) -> Chunk:
        for step in self._steps:
            if self._cancelled.is_set():
                raise Cancelled("cancelled")
            if isinstance(step, Chunk):
                return step
            if isinstance(step, TritoneError):
                self.has_ended = True
                raise step
            await self._wait(step.seconds if isinstance(step, Pause) else None)
        self.has_ended = True
        raise StopAsyncIteration

    def cancel(self) -> None:
        if not self.has_ended and not self._cancelled.is_set():
            self.is_cancelled_early = True
        self._cancelled.set()

    async def _wait(self, seconds: float | None) -> None:
        try:
            await asyncio.wait_for(self._cancelled.wait(), seconds)
        except TimeoutError:
            return
        raise Cancelled("cancelled")


def capabilities(**changes: Any) -> dict[str, Any]:
    """The capabilities of a text pipeline."""
    return {
        "routes": ["chat", "completions"],
        "stages": ["fake_thinker"],
        "context_tokens": 512,
        "vocab_size": 1000,
        "tool_format": "hermes",
        "created": 1760000000,
        **changes,
    }


@dataclass
class FakeTransport(Transport):
    """Serves the pipelines in `pipelines` with the script that `script_for` gives for each call."""

    script_for: Callable[[GenerationCall], Script] = reply_hello
    pipelines: dict[str, dict[str, Any]] = field(default_factory=lambda: {"fake": capabilities()})
    statuses: dict[str, ModelStatus] = field(default_factory=dict)
    is_away: bool = False
    calls: list[GenerationCall] = field(default_factory=list)
    streams: list[FakeStream] = field(default_factory=list)
    is_closed: bool = False

    def open(self, call: GenerationCall) -> ChunkStream:
        self.calls.append(call)
        away = [Overloaded("the inference server cannot be reached, try again", retry_after_s=2.0)]
        stream = FakeStream(away if self.is_away else self.script_for(call))
        self.streams.append(stream)
        return stream

    def params(self, index: int = -1) -> dict[str, Any]:
        """The parsed `params` of a call."""
        params: dict[str, Any] = orjson.loads(self.calls[index].params)
        return params

    async def is_ready(self) -> bool:
        return not self.is_away

    async def models(self) -> list[ModelStatus]:
        if self.is_away:
            raise Overloaded("the inference server cannot be reached, try again", retry_after_s=2.0)
        stages = {stage for described in self.pipelines.values() for stage in described["stages"]}
        found = {name: ModelStatus(name, ModelState.READY) for name in (*self.pipelines, *stages)}
        return list({**found, **self.statuses}.values())

    async def parameters(self, model: str) -> dict[str, str]:
        if model not in self.pipelines:
            return {ROLE_PARAMETER: "stage"}
        text = orjson.dumps(self.pipelines[model]).decode()
        return {ROLE_PARAMETER: "pipeline", CAPABILITIES_PARAMETER: text}

    async def close(self) -> None:
        self.is_closed = True
