# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway's own metrics. Owns its registry, so several gateways live in one process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tritone.gateway.record import Outcome, RequestRecord

_FIRST_TOKEN_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_GAP_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class GatewayMetrics:
    """Counters, gauges and histograms, named `tritone_gateway_*`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("route", "model")
        self._requests = Counter(
            "tritone_gateway_requests",
            "Finished requests; ok + failed + cancelled + rejected is all of them",
            (*labels, "outcome"),
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
        self._duration = Histogram(
            "tritone_gateway_request_seconds", "From arrival to the end of the answer", labels, registry=self.registry
        )
        self._prompt_tokens = Counter(
            "tritone_gateway_prompt_tokens", "Prompt tokens processed", labels, registry=self.registry
        )
        self._completion_tokens = Counter(
            "tritone_gateway_completion_tokens", "Tokens generated", labels, registry=self.registry
        )

    def started(self) -> None:
        """A request arrived."""
        self._inflight.inc()

    def finished(self, record: RequestRecord, outcome: Outcome, duration_s: float) -> None:
        """A request ended."""
        self._inflight.dec()
        self._requests.labels(record.route, record.model, outcome.value).inc()
        self._duration.labels(record.route, record.model).observe(duration_s)
        if record.prompt_tokens:
            self._prompt_tokens.labels(record.route, record.model).inc(record.prompt_tokens)
        if record.completion_tokens:
            self._completion_tokens.labels(record.route, record.model).inc(record.completion_tokens)

    def chunk_clock(self, record: RequestRecord) -> ChunkClock:
        """The stop-watch of one request; its label lookups are done once, here."""
        labels = (record.route, record.model)
        return ChunkClock(record, self._first_token.labels(*labels), self._gap.labels(*labels))

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


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
