# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Decoder processes: a crash, a hang or a greedy file is one request's error; nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from doubles.media_files import encoded, flac_of_silence, long_opus, picture

from tritone.errors import Internal, InvalidRequest, Overloaded
from tritone.gateway.media.decoded import AudioForm
from tritone.gateway.media.limits import DecoderSettings, MediaLimits
from tritone.gateway.media.reader import MediaReader

PNG = encoded(picture())
SETTINGS = DecoderSettings(num_workers=1, start_timeout_s=100, job_timeout_s=100)
# Lets a file be decoded for seconds.
PATIENT = MediaLimits(max_audio_seconds=1e6, max_audio_decoded_bytes=2000 << 20)


@asynccontextmanager
async def reading(settings: DecoderSettings = SETTINGS) -> AsyncIterator[MediaReader]:
    media = MediaReader(decoder=settings)
    try:
        yield media
    finally:
        await media.close()


def pids(media: MediaReader) -> list[int]:
    return [process.pid for process in media.pool.processes]


async def child_at_work(media: MediaReader) -> psutil.Process:
    """The forked child of the only worker, once it decodes."""
    async with asyncio.timeout(60):
        while True:
            await asyncio.sleep(0.01)
            for pid in pids(media):
                for child in psutil.Process(pid).children():
                    if child.memory_info().rss > 60_000_000:
                        return child


def num_worker_fds(pid: int) -> int:
    """Open descriptors of a worker; only root may look."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir())) if os.geteuid() == 0 else 0


async def ended(process: psutil.Process) -> None:
    async with asyncio.timeout(30):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)


def slow_file() -> bytes:
    return long_opus(3000)


async def test_nothing_runs_before_the_first_file() -> None:
    async with reading() as media:
        assert not pids(media)
        with pytest.raises(InvalidRequest):
            await media.read_image(b"no picture", field="image")
        assert not pids(media)


async def test_a_process_is_used_again_and_ends_with_the_pool() -> None:
    async with reading() as media:
        for _ in range(3):
            await media.read_image(PNG, field="image")
            with pytest.raises(InvalidRequest):
                await media.read_image(PNG[:100], field="image")
        (pid,) = pids(media)
    assert not psutil.pid_exists(pid)
    with pytest.raises(Internal):
        await media.read_image(PNG, field="image")


async def test_files_are_decoded_side_by_side() -> None:
    async with reading(replace(SETTINGS, num_workers=2)) as media:
        images = await asyncio.gather(*(media.read_image(PNG, field="image") for _ in range(12)))
        assert all(image.pixels.shape == (40, 60, 3) for image in images)
        assert len(pids(media)) == 2


@pytest.mark.parametrize("fatal", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
async def test_a_crash_while_decoding_is_one_requests_error(fatal: signal.Signals) -> None:
    async with reading() as media:
        await media.read_image(PNG, field="image")
        before = pids(media)
        request = asyncio.create_task(media.read_audio(slow_file(), field="audio", limits=PATIENT))
        other = asyncio.create_task(media.read_image(PNG, field="image"))
        (await child_at_work(media)).send_signal(fatal)
        with pytest.raises(InvalidRequest) as refused:
            await request
        expected = "takes too much" if fatal is signal.SIGKILL else "cannot be decoded as audio."
        assert expected in refused.value.message
        assert (await other).pixels.shape == (40, 60, 3)
        assert pids(media) == before


async def test_the_death_of_the_worker_is_one_requests_error() -> None:
    async with reading() as media:
        request = asyncio.create_task(media.read_audio(slow_file(), field="audio", limits=PATIENT))
        child = await child_at_work(media)
        (before,) = pids(media)
        os.kill(before, signal.SIGKILL)
        with pytest.raises(Internal):
            await request
        await media.read_image(PNG, field="image")
        assert pids(media) != [before]
        # The kernel ended what the worker had forked.
        await ended(child)


async def test_the_death_of_an_idle_worker_is_noticed() -> None:
    async with reading() as media:
        await media.read_image(PNG, field="image")
        (before,) = pids(media)
        os.kill(before, signal.SIGKILL)
        await ended(psutil.Process(before))
        # The request that finds it dead starts another one.
        assert (await media.read_image(PNG, field="image")).pixels.shape == (40, 60, 3)
        assert pids(media) != [before]


async def test_a_hang_is_ended_at_the_time_limit() -> None:
    async with reading(replace(SETTINGS, job_timeout_s=1.0)) as media:
        await media.read_image(PNG, field="image")
        (before,) = pids(media)
        psutil.Process(before).suspend()
        with pytest.raises(InvalidRequest, match="takes too much time or memory"):
            await media.read_image(PNG, field="image")
        assert not psutil.pid_exists(before)


async def test_cpu_time_is_limited() -> None:
    async with reading(replace(SETTINGS, job_cpu_s=1)) as media:
        with pytest.raises(InvalidRequest, match="takes too much time or memory"):
            # At a low rate, so that it is not memory that ends it.
            form = AudioForm(sample_rate_hz=4_000)
            await media.read_audio(long_opus(7000), field="audio", form=form, limits=PATIENT)
        await media.read_image(PNG, field="image")


async def test_memory_is_limited() -> None:
    async with reading(replace(SETTINGS, max_memory_bytes=96 << 20)) as media:
        await media.read_image(PNG, field="image")
        with pytest.raises(InvalidRequest, match="takes too much time or memory"):
            await media.read_audio(flac_of_silence(60, 192_000), field="audio", limits=PATIENT)
        await media.read_image(PNG, field="image")


async def test_a_cancelled_request_stops_costing() -> None:
    async with reading() as media:
        request = asyncio.create_task(media.read_audio(slow_file(), field="audio", limits=PATIENT))
        child = await child_at_work(media)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await ended(child)
        assert not pids(media)
        await media.read_image(PNG, field="image")


async def test_a_request_cancelled_while_it_waits_takes_no_turn() -> None:
    async with reading() as media:
        first = asyncio.create_task(media.read_image(PNG, field="image"))
        waiting = [asyncio.create_task(media.read_image(PNG, field="image")) for _ in range(5)]
        await asyncio.sleep(0)
        for task in waiting[::2]:
            task.cancel()
        done = await asyncio.gather(first, *waiting, return_exceptions=True)
        assert [isinstance(outcome, BaseException) for outcome in done] == [False, True, False, True, False, True]
        await media.read_image(PNG, field="image")


async def test_no_more_wait_than_allowed() -> None:
    async with reading(replace(SETTINGS, max_waiting=3)) as media:
        outcomes = await asyncio.gather(
            *(media.read_image(PNG, field="image") for _ in range(8)), return_exceptions=True
        )
        refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert refused and all(isinstance(outcome, Overloaded) for outcome in refused)
        assert len(refused) < 8


async def test_no_more_bytes_wait_than_allowed() -> None:
    async with reading(replace(SETTINGS, max_held_bytes=2 * len(PNG))) as media:
        outcomes = await asyncio.gather(
            *(media.read_image(PNG, field="image") for _ in range(5)), return_exceptions=True
        )
        assert [isinstance(outcome, Overloaded) for outcome in outcomes] == [False, False, True, True, True]
        await media.read_image(PNG, field="image")


async def test_a_worker_that_cannot_be_isolated_does_not_decode() -> None:
    async with reading(replace(SETTINGS, required=frozenset({"a_moat"}))) as media:
        with pytest.raises(Internal):
            await media.read_image(PNG, field="image")
        assert not pids(media)


async def test_descriptors_and_processes_stay_flat() -> None:
    own = psutil.Process()
    async with reading() as media:
        await media.read_image(PNG, field="image")
        worker = psutil.Process(pids(media)[0])
        before = (own.num_fds(), own.num_threads(), num_worker_fds(worker.pid))
        for _ in range(30):
            await media.read_image(PNG, field="image")
            with pytest.raises(InvalidRequest):
                await media.read_image(PNG[:90], field="image")
        after = (own.num_fds(), own.num_threads(), num_worker_fds(worker.pid))
        assert after == before
        assert not worker.children()


async def test_a_worker_knows_nothing_of_the_gateways_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONE_API_KEYS", "secret-key")
    async with reading() as media:
        await media.read_image(PNG, field="image")
        if os.geteuid() != 0:
            # Hidden from everybody else, its own user too.
            with pytest.raises(PermissionError):
                Path(f"/proc/{pids(media)[0]}/environ").read_bytes()
            return
        environment = Path(f"/proc/{pids(media)[0]}/environ").read_bytes()
    assert b"LC_ALL" in environment and b"secret" not in environment
