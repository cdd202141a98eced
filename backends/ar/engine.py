# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The AR engine: a loop of steps over all live rows, fed by `submit` and `cancel` from any thread.

One thread steps and publishes; it alone touches rows, pool and model. Other threads only append to two inboxes under a
lock. A row's own fault fails its request; a fault of the model fails the rows of that step; the loop goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import torch

from tritone.backends.ar.admission import Admission
from tritone.backends.ar.block_pool import BlockPool
from tritone.backends.ar.events import (
    EngineStatistics,
    Event,
    RequestDone,
    RequestFailed,
    TokenChunk,
)
from tritone.backends.ar.kv_cache import num_blocks
from tritone.backends.ar.placement import resolve_device, resolve_dtype, set_threads
from tritone.backends.ar.request import GenerationRequest
from tritone.backends.ar.row import Request, Row
from tritone.backends.ar.runner import make_runner
from tritone.backends.ar.sampler import Draw, draw
from tritone.backends.ar.scheduler import Scheduler, StepPlan
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.ar.step_batch import step_batch
from tritone.backends.ar.token_texts import TokenTexts
from tritone.backends.core.protocol import FinishReason
from tritone.backends.models.checkpoint import Checkpoint
from tritone.errors import Cancelled, Internal, Overloaded, TritoneError

__all__ = ["Engine", "EngineStatistics", "Event", "RequestDone", "RequestFailed", "TokenChunk"]

logger = logging.getLogger(__name__)

Publish = Callable[[list[Event]], None]
IDLE_WAIT_S = 0.5


class Engine:
    """Serves generation requests. `publish` gets all events of a step at once, on the stepping thread."""

    def __init__(self, checkpoint: Checkpoint, settings: EngineSettings, publish: Publish) -> None:
        self.settings = settings
        self._publish = publish
        device = resolve_device(settings)
        dtype = resolve_dtype(settings, device)
        set_threads(settings, device)
        config = checkpoint.decoder_config
        self.context_tokens = min(settings.context_tokens or config.max_position, config.max_position)
        self.vocab_size = config.vocab_size
        blocks = num_blocks(settings, config, self.context_tokens, dtype, device)
        self._pool = BlockPool(blocks)
        self._scheduler = Scheduler(settings, self._pool, prefers_runs=device.type == "cpu")
        with torch.inference_mode():
            self._runner = make_runner(checkpoint, settings, blocks, self.context_tokens, dtype, device)
        self._admission = Admission(checkpoint, settings, self.context_tokens)
        self._texts = TokenTexts(checkpoint.tokenizer.backend_tokenizer)
        self._requests: dict[int, Request] = {}
        # Shared with other threads, under the condition's lock.
        self._wake = threading.Condition()
        self._submitted: list[Request] = []
        self._cancelled: list[int] = []
        self._num_waiting = 0
        self._num_open = 0
        self._next_id = 0
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._counts = dict.fromkeys(("prompt", "generated", "cached", "steps", "done", "failed", "cancelled"), 0)
        self._heartbeat_s = time.monotonic()
        logger.info(
            "engine: %s on %s, %s, %d KV blocks of %d tokens, context %d",
            checkpoint.reference, device, dtype, blocks, settings.block_tokens, self.context_tokens,
        )  # fmt: skip

    # --- any thread -----------------------------------------------------------------------------------------------

    def submit(self, request: GenerationRequest) -> int:
        """Queue a request and return its id. Raises `InvalidRequest` or `Overloaded`; then nothing is queued."""
        self._refuse_if_full()
        guide = self._admission.check(request)
        with self._wake:
            self._refuse_if_full()
            request_id = self._next_id
            self._next_id += 1
            rows = self._admission.rows(request_id, request, guide)
            self._submitted.append(Request(request_id, request, rows, time.monotonic()))
            self._num_waiting += 1
            self._num_open += 1
            self._wake.notify()
        return request_id

    def cancel(self, request_id: int) -> None:
        """Drop a request before the next step; it ends with `RequestFailed(Cancelled)`. Unknown ids are ignored."""
        with self._wake:
            self._cancelled.append(request_id)
            self._wake.notify()

    def start(self) -> None:
        """Start the stepping thread."""
        if self._thread is not None:
            raise RuntimeError("the engine is already started")
        self._thread = threading.Thread(target=self._loop, name="tritone-ar-engine", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread after its current step; requests still open fail with `Overloaded`."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                logger.error("the engine thread did not end within %.1f s", timeout_s)

    def statistics(self) -> EngineStatistics:
        """A snapshot; its numbers may be a step apart from each other."""
        counts, scheduler = self._counts, self._scheduler
        return EngineStatistics(
            running_rows=len(scheduler.running),
            waiting_requests=self._num_waiting,
            kv_blocks_used=self._pool.num_held,
            kv_blocks_total=self._pool.num_blocks,
            prompt_tokens=counts["prompt"],
            generated_tokens=counts["generated"],
            cached_tokens=counts["cached"],
            prefix_queries=scheduler.num_prefix_queries,
            prefix_hits=scheduler.num_prefix_hits,
            steps=counts["steps"],
            recomputes=scheduler.num_recomputes,
            requests_done=counts["done"],
            requests_failed=counts["failed"],
            requests_cancelled=counts["cancelled"],
            heartbeat_s=self._heartbeat_s,
        )

    # --- the stepping thread --------------------------------------------------------------------------------------

    @torch.inference_mode()
    def step(self) -> bool:
        """Admit, plan, run, publish, free. False if there was nothing to do."""
        self._heartbeat_s = time.monotonic()
        events: list[Event] = []
        self._take_inboxes(events)
        plan = self._scheduler.plan()
        if plan.spans:
            self._note_admitted(plan)
            draws = self._run(plan, events)
            self._advance(plan, draws, events)
            self._counts["steps"] += 1
        if events:
            self._publish(events)
        return bool(plan.spans or events)

    def _loop(self) -> None:
        while True:
            with self._wake:
                if self._is_stopping:
                    break
            try:
                did_work = self.step()
            except Exception:
                # Our own bookkeeping or the publisher failed: nothing can be said about the rows in flight.
                logger.exception("an engine step failed")
                self._fail_all(Internal("the engine failed while this request was running"))
                continue
            with self._wake:
                if not did_work and not self._submitted and not self._cancelled and not self._is_stopping:
                    self._wake.wait(IDLE_WAIT_S)
        self._fail_all(Overloaded("the server is shutting down"))

    def _refuse_if_full(self) -> None:
        if self._is_stopping:
            raise Overloaded("the server is shutting down")
        # Counted over all open requests: which of them wait for a row is known only between two steps.
        if self._num_open >= self.settings.max_rows + self.settings.max_waiting:
            raise Overloaded(f"the queue is full: {self._num_open} requests are open already", retry_after_s=1.0)

    def _take_inboxes(self, events: list[Event]) -> None:
        with self._wake:
            submitted, self._submitted = self._submitted, []
            cancelled, self._cancelled = self._cancelled, []
        for request in submitted:
            self._requests[request.request_id] = request
            for row in request.rows:
                self._scheduler.add(row)
        for request_id in cancelled:
            if request_id in self._requests:
                self._fail(self._requests[request_id], Cancelled("the request was cancelled"), events)

    def _note_admitted(self, plan: StepPlan) -> None:
        for row in plan.admitted:
            request = self._requests[row.request_id]
            if request.admitted_s is None:
                request.admitted_s = time.monotonic()
                self._counts["prompt"] += row.num_prompt
                with self._wake:
                    self._num_waiting -= 1

    def _run(self, plan: StepPlan, events: list[Event]) -> list[Draw]:
        """Draws of the sampled rows, in order; none if the model failed, and the step's requests with it."""
        try:
            batch = step_batch(plan, self.settings.block_tokens)
            logits = self._runner.run(batch)
            self._scheduler.computed(plan)
            rows = [span.row for span in plan.spans if span.is_sampled]
            return draw(logits, rows) if rows else []
        except Exception:
            logger.exception("the model failed in a step of %d rows", len(plan.spans))
            for span in plan.spans:
                request = self._requests.get(span.row.request_id)
                if request is not None:
                    self._fail(request, Internal("the model failed while this request was running"), events)
            return []

    def _advance(self, plan: StepPlan, draws: list[Draw], events: list[Event]) -> None:
        """Give each sampled row its token, and end what has ended."""
        if not draws:
            return
        sampled = [span.row for span in plan.spans if span.is_sampled]
        for row, drawn in zip(sampled, draws, strict=True):
            request = self._requests.get(row.request_id)
            if request is None:  # another choice of it has failed in this step
                continue
            try:
                if drawn.error is not None:
                    raise drawn.error
                events.append(self._append(row, drawn))
            except TritoneError as error:
                self._fail(request, error, events)
                continue
            except Exception:
                logger.exception("a row failed")
                self._fail(request, Internal("this request could not be continued"), events)
                continue
            if request.first_token_s is None:
                request.first_token_s = time.monotonic()
            if row.finish_reason is not None:
                self._scheduler.remove(row)
                request.open_rows -= 1
                if request.open_rows == 0:
                    events.append(self._done(request))

    def _append(self, row: Row, drawn: Draw) -> TokenChunk:
        """Add a drawn token to its row; the chunk says what it shows and whether it ends the row."""
        token_id = drawn.token_id
        row.token_ids.append(token_id)
        self._counts["generated"] += 1
        if row.guide is not None:
            row.guide.accept(token_id)
        text = ""
        if token_id in row.stop_ids:
            row.finish_reason = FinishReason.STOP
        else:
            piece = row.detokenizer.push(token_id, may_stop=row.num_output >= row.sampling.min_tokens)
            text = piece.text
            if piece.is_stopped:
                row.finish_reason = FinishReason.STOP
        if row.finish_reason is None and row.guide is not None and row.guide.is_complete:
            row.finish_reason = FinishReason.STOP
        if row.finish_reason is None and row.num_tokens >= row.max_total:
            row.finish_reason = FinishReason.LENGTH
        if row.finish_reason is not None:
            text += row.detokenizer.flush()
        logprobs = (self._texts.logprobs(drawn),) if drawn.logprob is not None else None
        return TokenChunk(row.request_id, row.choice_index, text, (token_id,), row.finish_reason, logprobs)

    def _forget(self, request: Request) -> None:
        del self._requests[request.request_id]
        with self._wake:
            self._num_open -= 1
            if request.admitted_s is None:
                self._num_waiting -= 1

    def _done(self, request: Request) -> RequestDone:
        self._forget(request)
        now = time.monotonic()
        start = request.submitted_s
        cached = request.rows[0].num_cached
        self._counts["done"] += 1
        self._counts["cached"] += cached
        return RequestDone(
            request_id=request.request_id,
            prompt_tokens=len(request.generation.prompt_token_ids),
            completion_tokens=sum(row.num_output for row in request.rows),
            cached_tokens=cached,
            queue_s=(request.admitted_s or now) - start,
            first_token_s=(request.first_token_s or now) - start,
            total_s=now - start,
        )

    def _fail(self, request: Request, error: TritoneError, events: list[Event]) -> None:
        """End a request early and free what it holds."""
        self._forget(request)
        for row in request.rows:
            self._scheduler.remove(row)
        self._counts["cancelled" if isinstance(error, Cancelled) else "failed"] += 1
        events.append(RequestFailed(request.request_id, error))

    def _fail_all(self, error: TritoneError) -> None:
        events: list[Event] = []
        self._take_inboxes(events)
        for request in list(self._requests.values()):
            self._fail(request, error, events)
        if events:
            try:
                self._publish(events)
            except Exception:
                logger.exception("publishing the end of %d requests failed", len(events))
