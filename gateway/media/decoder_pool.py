# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A small pool of decoder processes, started when first needed. One crash or hang is one request's error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from tritone.errors import Internal, Overloaded
from tritone.gateway.media.decoder_process import DecoderProcess, ProcessFailed, Reply
from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.limits import DecoderSettings

_log = logging.getLogger("tritone.gateway.media")


class DecoderPool:
    """Owns the processes. A job waits for a free one; too many waiting ones are refused."""

    def __init__(self, settings: DecoderSettings) -> None:
        self._settings = settings
        self._turns = asyncio.Semaphore(settings.num_workers)
        self._idle: list[DecoderProcess] = []
        self._busy: set[DecoderProcess] = set()
        self._num_waiting = 0
        self._held_bytes = 0
        self._is_closed = False

    @property
    def processes(self) -> tuple[DecoderProcess, ...]:
        return (*self._idle, *self._busy)

    async def decode(self, job: Mapping[str, Any], content: bytes | bytearray | memoryview, *, max_bytes: int) -> Reply:
        """The reply to one job. `max_bytes` bounds its tensors."""
        is_first = not self._held_bytes
        if self._num_waiting >= self._settings.max_waiting or (
            self._held_bytes + len(content) > self._settings.max_held_bytes and not is_first
        ):
            raise Overloaded("Too many media files are waiting to be decoded.", retry_after_s=1.0)
        self._held_bytes += len(content)
        try:
            await self._wait_for_turn()
            try:
                return await self._decode(job, content, max_bytes)
            finally:
                self._turns.release()
        finally:
            self._held_bytes -= len(content)

    async def close(self) -> None:
        """End every process; jobs under way fail."""
        self._is_closed = True
        processes, self._idle = self.processes, []
        await asyncio.gather(*(process.kill() for process in processes))

    async def _wait_for_turn(self) -> None:
        self._num_waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._num_waiting -= 1

    async def _decode(self, job: Mapping[str, Any], content: bytes | bytearray | memoryview, max_bytes: int) -> Reply:
        process = await self._take()
        self._busy.add(process)
        is_good = False
        try:
            async with asyncio.timeout(self._settings.job_timeout_s):
                reply = await process.run(job, content, settings=self._settings, max_bytes=max_bytes)
            is_good = True
            return reply
        except MediaFault:
            is_good = True
            raise
        except TimeoutError:
            _log.warning("a media decoder was killed at its time limit")
            raise MediaFault(Fault.TOO_COSTLY) from None
        except ProcessFailed:
            # Not the file's doing: what reads files is the worker's child, whose end the worker reports.
            _log.warning("a media decoder process ended by itself")
            raise Internal("The gateway failed to decode media.") from None
        finally:
            self._busy.discard(process)
            if is_good and not self._is_closed:
                self._idle.append(process)
            else:
                # A cancelled request comes by here too; its file must not go on costing.
                await asyncio.shield(process.kill())

    async def _take(self) -> DecoderProcess:
        while self._idle:
            process = self._idle.pop()
            if process.is_running():
                return process
            _log.warning("an idle media decoder had ended by itself")
            await process.kill()
        return await self._start()

    async def _start(self) -> DecoderProcess:
        if self._is_closed:
            raise Internal("The gateway is shutting down.")
        try:
            process = await DecoderProcess.start(self._settings)
        except (OSError, ProcessFailed):
            _log.exception("a media decoder process did not start")
            raise Internal("The gateway cannot decode media now.") from None
        _log.info("media decoder started", extra={"fields": {"isolation": sorted(process.isolation)}})
        return process
