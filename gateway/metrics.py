# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway's own metrics. Owns its registry, so several gateways live in one process."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from tritone.gateway.machine import num_threads, shared_memory
from tritone.gateway.record import Outcome, RequestRecord

_FIRST_TOKEN_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_GAP_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_QUEUE_BUCKETS_S = (0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Places(Protocol):
    """Who knows how many generations run and wait."""

    @property
    def num_running(self) -> int: ...

    @property
    def num_waiting(self) -> int: ...


class HeldBytes(Protocol):
    """Who knows how much of request bodies is in memory."""

    held_bytes: int


class GatewayMetrics:
    """Counters, gauges and histograms, named `tritone_gateway_*`, and `process_*` of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        labels = ("route", "model")
        self._received = Counter(
            "tritone_gateway_received_requests",
            "Requests that arrived; what is not in tritone_gateway_requests_total yet is being answered",
            registry=self.registry,
        )
        self._requests = Counter(
            "tritone_gateway_requests",
            "Finished requests; ok + failed + cancelled + rejected is all of them",
            (*labels, "outcome"),
            registry=self.registry,
        )
        self._rejected = Counter(
            "tritone_gateway_rejected_requests",
            "Rejected requests by the code of their error",
            ("route", "reason"),
            registry=self.registry,
        )
        self._inflight = Gauge("tritone_gateway_inflight_requests", "Requests being answered", registry=self.registry)
        self._first_token = Histogram(
            "tritone_gateway_time_to_first_token_seconds",
            "From the request's arrival to its first token",
            labels,
            registry=self.registry,
            buckets=_FIRST_TOKEN_BUCKETS_S,
        )
        self._gap = Histogram(
            "tritone_gateway_inter_chunk_seconds",
            "Between two chunks of one request",
            labels,
            registry=self.registry,
            buckets=_GAP_BUCKETS_S,
        )
        self._queue = Histogram(
            "tritone_gateway_queue_seconds",
            "From a complete request to its place among the running ones",
            ("route",),
            registry=self.registry,
            buckets=_QUEUE_BUCKETS_S,
        )
        self._duration = Histogram(
            "tritone_gateway_request_seconds", "From arrival to the end of the answer", labels, registry=self.registry
        )
        self._prompt_tokens = Counter(
            "tritone_gateway_prompt_tokens", "Prompt tokens processed", labels, registry=self.registry
        )
        self._completion_tokens = Counter(
            "tritone_gateway_completion_tokens", "Tokens generated", labels, registry=self.registry
        )
        self._gauge("tritone_gateway_threads", "Threads of the process").set_function(num_threads)
        self._gauge("tritone_shm_used_bytes", "Used bytes of /dev/shm").set_function(lambda: shared_memory().used_bytes)
        self._gauge("tritone_shm_size_bytes", "Size of /dev/shm").set_function(lambda: shared_memory().size_bytes)

    def watch(self, places: Places, bodies: HeldBytes) -> None:
        """Show the counts of those who own them."""
        running = self._gauge("tritone_gateway_running_generations", "Generations that have a place")
        running.set_function(lambda: places.num_running)
        waiting = self._gauge("tritone_gateway_waiting_generations", "Generations that wait for a place")
        waiting.set_function(lambda: places.num_waiting)
        held = self._gauge("tritone_gateway_body_bytes", "Request bodies in memory, without the first 64 KiB of each")
        held.set_function(lambda: bodies.held_bytes)

    def started(self) -> None:
        """A request arrived."""
        self._received.inc()
        self._inflight.inc()

    def finished(self, record: RequestRecord, outcome: Outcome, duration_s: float) -> None:
        """A request ended."""
        self._inflight.dec()
        self._requests.labels(record.route, record.model, outcome.value).inc()
        if outcome is Outcome.REJECTED:
            self._rejected.labels(record.route, record.rejected_for or "other").inc()
        self._duration.labels(record.route, record.model).observe(duration_s)
        if record.prompt_tokens:
            self._prompt_tokens.labels(record.route, record.model).inc(record.prompt_tokens)
        if record.completion_tokens:
            self._completion_tokens.labels(record.route, record.model).inc(record.completion_tokens)

    def queued(self, record: RequestRecord, seconds: float) -> None:
        """A generation got its place after `seconds`."""
        self._queue.labels(record.route).observe(seconds)

    def chunk_clock(self, record: RequestRecord) -> ChunkClock:
        """The stop-watch of one request; its label lookups are done once, here."""
        labels = (record.route, record.model)
        return ChunkClock(record, self._first_token.labels(*labels), self._gap.labels(*labels))

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(name, meaning, registry=self.registry)


class ChunkClock:
    """Times the chunks of one request."""

    def __init__(self, record: RequestRecord, first_token: Histogram, gap: Histogram) -> None:
        self._record = record
        self._first_token = first_token
        self._gap = gap
        self._last_s: float | None = None

    def tick(self, now_s: float, num_tokens: int) -> None:
        """A chunk of `num_tokens` arrived at `now_s` of the event loop's clock."""
        record = self._record
        record.num_chunks += 1
        record.completion_tokens += num_tokens
        if self._last_s is None:
            record.first_token_s = now_s - record.started_s
            self._first_token.observe(record.first_token_s)
        else:
            self._gap.observe(now_s - self._last_s)
        self._last_s = now_s
