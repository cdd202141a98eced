# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The thinker as a Triton model: an AR engine behind the stage contract.

Turns requests into engine submissions and engine events into chunks. Knows nothing of scheduling or networks.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np

from tritone.backends.ar.engine import Engine, Event, RequestDone, RequestFailed, TokenChunk
from tritone.backends.ar.placement import resolve_device
from tritone.backends.ar.prompt import render_prompt
from tritone.backends.ar.request import GenerationRequest, parse_request
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.core import protocol
from tritone.backends.core.chunk import Chunk
from tritone.backends.core.decoupled_model import DecoupledModel
from tritone.backends.core.outbox import Outbox, ResponseSender
from tritone.backends.core.protocol import ChunkKind
from tritone.backends.models.checkpoint import Checkpoint
from tritone.errors import Cancelled, InvalidRequest

logger = logging.getLogger(__name__)

# Triton gives a model five seconds of our promise to end; the engine's step in flight gets most of them.
ENGINE_STOP_S = 3.0
ENGINE_NICENESS = 10
# How long a step may take before the engine counts as stalled: far longer than the longest that is in order. On a CPU
# one step computes up to `max_step_tokens` of a prompt, on a few slow cores if need be.
STALL_TIMEOUT_S = {"cuda": 10.0, "cpu": 120.0}


class ThinkerStage(DecoupledModel):
    """Text in, streamed text and token ids out.

    Inputs: `params` (messages, prompt or neither, with sampling settings) and optionally `input_ids` [T] int32.
    Outputs: the chunk tensors of `backends.core.protocol.THINKER_OUTPUTS`.
    """

    def load(self, settings: dict[str, Any], args: dict[str, str]) -> None:
        """Load the checkpoint and start the engine's loop."""
        settings = dict(settings)
        self._checkpoint = Checkpoint.resolve(settings.pop("checkpoint"))
        stall_timeout_s = _stall_timeout_s(settings.pop("stall_timeout_s", None))
        self._outbox = Outbox(chunk_interval_s=_chunk_interval_s(settings.pop("chunk_interval_ms", 0)))
        self._handle_of: dict[int, str] = {}
        self._id_of: dict[str, int] = {}
        # Held while a request is submitted and registered, so that no event of it is published in between.
        self._registration = threading.Lock()
        engine_settings = EngineSettings.from_mapping(settings)
        device = resolve_device(engine_settings).type
        if device == "cpu":
            # The engine's threads take every core. The server, which wakes for a moment to pass each response on, must
            # not wait behind them.
            os.nice(ENGINE_NICENESS)
        # In a thread that ends: OpenMP keeps a team of workers for every thread that has used PyTorch, and once the
        # teams of two threads outnumber the cores their workers sleep between operations. The engine's thread must
        # be the only one: 28 against 17 tokens/s for SmolLM2-135M on two cores.
        with ThreadPoolExecutor(1, thread_name_prefix="load") as loader:
            self._engine = loader.submit(Engine, self._checkpoint, engine_settings, self._publish).result()
        self._stall_timeout_s = stall_timeout_s or STALL_TIMEOUT_S[device]
        self._engine.start()

    def begin(self, handle: str, params: dict[str, Any], request: Any, sender: ResponseSender) -> None:
        """Validate, tokenise and submit one request."""
        input_ids = self.pb_utils.get_input_tensor_by_name(request, protocol.INPUT_IDS.name)
        parsed = parse_request(params, has_input_ids=input_ids is not None)
        if input_ids is not None:
            prompt_ids = tuple(int(i) for i in np.asarray(input_ids.as_numpy()).reshape(-1))
            if not prompt_ids:
                raise InvalidRequest("'input_ids' is empty", field=protocol.INPUT_IDS.name)
        else:
            prompt_ids = tuple(render_prompt(self._checkpoint.tokenizer, parsed, self._engine.context_tokens))
        generation = GenerationRequest(prompt_token_ids=prompt_ids, sampling=parsed.sampling, n=parsed.n)
        with self._registration:
            request_id = self._engine.submit(generation)
            self._handle_of[request_id] = handle
            self._id_of[handle] = request_id
            self._outbox.open(handle, sender)
            if params.get(protocol.ACCEPT_KEY):
                self._outbox.put(handle, Chunk(ChunkKind.ACCEPTED, details={"handle": handle}))
            self.live.add(handle, sender)
        logger.info("request %s is %s", parsed.log_id, handle)

    def cancel(self, handle: str) -> None:
        """Drop the request's rows before the engine's next step."""
        with self._registration:
            request_id = self._id_of.get(handle)
        if request_id is not None:
            self._engine.cancel(request_id)

    def unload(self) -> None:
        """Stop the engine, end what is left with an error and send it."""
        self._engine.stop(ENGINE_STOP_S)
        for handle in self._outbox.open_handles():
            self._outbox.fail(handle, Cancelled("the stage is shutting down"))
        self._outbox.stop(1.0)

    def is_alive(self) -> bool:
        """Whether the engine has begun a step of late; an idle one does so every half second."""
        return time.monotonic() - self._engine.statistics().heartbeat_s < self._stall_timeout_s

    def _publish(self, events: list[Event]) -> None:
        """Called by the engine once per step, from its thread."""
        with self._registration:
            for event in events:
                handle = self._handle_of.get(event.request_id)
                if handle is None:
                    continue
                if isinstance(event, TokenChunk):
                    self._outbox.put(handle, _text_chunk(event))
                    self.metrics.count("tokens_total", len(event.token_ids))
                else:
                    self._end(event, handle)
        self._report_load()

    def _end(self, event: RequestDone | RequestFailed, handle: str) -> None:
        del self._handle_of[event.request_id]
        del self._id_of[handle]
        self.live.remove(handle)
        if isinstance(event, RequestFailed):
            self._outbox.fail(handle, event.error)
            if not isinstance(event.error, Cancelled):
                logger.error("%s failed: %s", handle, event.error.message)
            outcome = "cancelled_total" if isinstance(event.error, Cancelled) else "failed_total"
            self.metrics.count(outcome)
            return
        self._outbox.put(handle, _done_chunk(event), is_final=True)
        self.metrics.count("ok_total")
        self.metrics.count("queue_seconds_total", event.queue_s)
        self.metrics.count("first_token_seconds_total", event.first_token_s)
        self.metrics.count("prompt_tokens_total", event.prompt_tokens)
        self.metrics.count("cached_tokens_total", event.cached_tokens)

    def _report_load(self) -> None:
        statistics = self._engine.statistics()
        self.metrics.set("rows_running", statistics.running_rows)
        self.metrics.set("requests_waiting", statistics.waiting_requests)
        self.metrics.set("kv_blocks_used", statistics.kv_blocks_used)
        self.metrics.set("kv_blocks", statistics.kv_blocks_total)


def _chunk_interval_s(interval_ms: Any) -> float:
    if isinstance(interval_ms, bool) or not isinstance(interval_ms, int | float) or not 0 <= interval_ms <= 10_000:
        raise ValueError(f"chunk_interval_ms is {interval_ms!r}; allowed: a number from 0 to 10000")
    return interval_ms / 1000


def _stall_timeout_s(timeout_s: Any) -> float | None:
    if timeout_s is None:
        return None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 1 <= timeout_s <= 3600:
        raise ValueError(f"stall_timeout_s is {timeout_s!r}; allowed: a number from 1 to 3600, or null")
    return float(timeout_s)


def _text_chunk(event: TokenChunk) -> Chunk:
    details = None
    if event.logprobs is not None:
        details = {"logprobs": [asdict(entry) for entry in event.logprobs]}
    return Chunk(
        ChunkKind.TEXT,
        choice_index=event.choice_index,
        text=event.text,
        token_ids=event.token_ids,
        finish_reason=event.finish_reason,
        details=details,
    )


def _done_chunk(event: RequestDone) -> Chunk:
    usage = {
        "prompt_tokens": event.prompt_tokens,
        "completion_tokens": event.completion_tokens,
        "cached_tokens": event.cached_tokens,
    }
    timing = {"queue_s": event.queue_s, "first_token_s": event.first_token_s, "total_s": event.total_s}
    return Chunk(ChunkKind.DONE, details={"usage": usage, "timing": timing})
