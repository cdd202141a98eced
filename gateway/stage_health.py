# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Watches the heartbeats of all models on Triton's metrics page, and tells running requests when one of theirs is lost.

The server itself goes on saying ready after a model's process has died, and its requests would wait for ever. Owns the
readings and the list of requests to tell. Without a metrics page every model counts as alive.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tritone.ensembles.protocol import READ_INTERVAL_S, HeartbeatJudge, StageProcess, read_beats
from tritone.errors import Overloaded, TritoneError
from tritone.gateway.transport import Transport

METRICS_TIMEOUT_S = 2.0
MAX_METRICS_BYTES = 16 << 20
_PROBE_TIMEOUT_S = 1.5
_RETRY_AFTER_S = 5.0

_log = logging.getLogger("tritone.gateway.stage_health")

Tell = Callable[[TritoneError], None]


class _Listener(NamedTuple):
    """A running request."""

    models: frozenset[str]
    since_s: float
    tell: Tell


class StageHealth:
    """Used from the event loop only."""

    def __init__(self, transport: Transport, metrics_url: str) -> None:
        self._transport = transport
        self._metrics_url = metrics_url
        self._judge = HeartbeatJudge()
        self._known: set[str] = set()
        self._lost: frozenset[StageProcess] = frozenset()
        # For each process, the time of the last reading that did not show it yet.
        self._absent_at_s: dict[StageProcess, float] = {}
        self._read_at_s = 0.0
        self._listeners: dict[int, _Listener] = {}
        self._next_key = 0
        self._watch: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch, where a metrics page is configured."""
        if self._metrics_url and self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End watching."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch

    @property
    def down(self) -> frozenset[str]:
        """Models that are dead or stalled, or were taken away: they were alive, and none of their processes is."""
        return frozenset(self._known - {process.model for process in self._judge.processes - self._lost})

    def refuse_if_down(self, models: frozenset[str]) -> None:
        """Raise `Overloaded` when a request that needs `models` cannot be served now."""
        for model in sorted(models & self.down):
            raise _stopped(model)

    @contextmanager
    def listening(self, models: frozenset[str], tell: Tell) -> Iterator[None]:
        """Within the block `tell` is called, at most once for each loss, when one of `models` is lost."""
        key, self._next_key = self._next_key, self._next_key + 1
        self._listeners[key] = _Listener(models, asyncio.get_running_loop().time(), tell)
        try:
            yield
        finally:
            del self._listeners[key]

    def take(self, page: str, now_s: float) -> None:
        """Judge one reading of the metrics page."""
        beats = read_beats(page)
        self._judge.take(beats, now_s)
        self._known.update(process.model for process in beats)
        for process in beats:
            self._absent_at_s.setdefault(process, self._read_at_s)
        self._absent_at_s = {process: self._absent_at_s[process] for process in beats}
        self._read_at_s = now_s
        lost = self._judge.lost
        for process in sorted(lost - self._lost):
            _log.error("a model stopped", extra={"fields": {"model": process.model, "pid": process.pid}})
            self._tell_all(process.model)
        for process in sorted(self._lost - lost):
            _log.warning("a lost model is gone or back", extra={"fields": {"model": process.model, "pid": process.pid}})
        self._lost = lost

    def _tell_all(self, model: str) -> None:
        """Tell the requests that may have been with the lost process: all but those younger than its successor."""
        successors = [
            absent_s
            for process, absent_s in self._absent_at_s.items()
            if process.model == model and process not in self._judge.lost
        ]
        before_s = max(successors, default=float("inf"))
        for listener in tuple(self._listeners.values()):
            if model in listener.models and listener.since_s <= before_s:
                listener.tell(_stopped(model))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        has_answered = False
        while True:
            began_s = loop.time()
            try:
                page = await asyncio.to_thread(fetch_metrics, self._metrics_url)
                if page is not None:
                    has_answered = True
                    self.take(page.decode("utf-8", "replace"), loop.time())
                elif has_answered and not await self._is_server_there():
                    has_answered = False
                    self._lose_server()
            except Exception:
                _log.exception("the heartbeats could not be read")
            await asyncio.sleep(max(0.0, READ_INTERVAL_S - (loop.time() - began_s)))

    async def _is_server_there(self) -> bool:
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                return await self._transport.is_ready()
        except TimeoutError:
            return False

    def _lose_server(self) -> None:
        _log.error("the inference server does not answer")
        for listener in tuple(self._listeners.values()):
            listener.tell(Overloaded("The inference server stopped; try again.", retry_after_s=_RETRY_AFTER_S))


def fetch_metrics(url: str) -> bytes | None:
    """Triton's metrics page; none when it cannot be read. Blocks for `METRICS_TIMEOUT_S` at most between bytes."""
    # No proxies: the page is next door, and the environment's proxy must not see it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=METRICS_TIMEOUT_S) as answer:
            text: bytes = answer.read(MAX_METRICS_BYTES + 1)
    except (OSError, ValueError, http.client.HTTPException):
        return None
    return text if len(text) <= MAX_METRICS_BYTES else None


def _stopped(model: str) -> Overloaded:
    return Overloaded(f"The stage {model} stopped; try again.", retry_after_s=_RETRY_AFTER_S)
