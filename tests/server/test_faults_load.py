# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Many streams at once through one orchestrator: cancels, overload, first chunks, and a stage that dies under them.

Covers reliability T36, T37, T39, T40 and the relay's part of T42 on the real server. Bounds are hang guards at ten
times what is promised; the figures are printed (`pytest -s`).
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator

import httpx
import pytest
import tritonclient.grpc as triton
from faults.calls import HANG_S, WAYS, wait_until
from faults.fault_command import CANCEL, CRASHES, FaultCommand
from faults.registry import FAULTS
from faults.served import SMALL_SLOTS, SMALL_WAITING

from tritone.errors import Overloaded, TritoneError
from tritone.gateway.transport import Chunk, ChunkStream, GenerationCall
from tritone.gateway.triton_transport import TritonTransport
from tritone.tools.stack import Stack

GUARD = 10.0  # how far from the promise a bound stands
ORCHESTRATOR, STAGE = FAULTS.name, FAULTS.stages[0]


@pytest.fixture
async def transport(faults: Stack) -> AsyncIterator[TritonTransport]:
    transport = TritonTransport(faults.server.grpc_address)
    yield transport
    await transport.close()


def start(transport: TritonTransport, command: FaultCommand, model: str = ORCHESTRATOR) -> ChunkStream:
    return transport.open(GenerationCall(model, json.dumps(FAULTS.params_of(command)).encode()))


async def read(stream: ChunkStream) -> list[tuple[float, Chunk]]:
    """Every chunk with its time; numbers without a gap."""
    try:
        chunks = [(time.monotonic(), chunk) async for chunk in stream]
    finally:
        stream.cancel()
    assert [chunk.chunk_index for _, chunk in chunks] == list(range(len(chunks)))
    return chunks


def text_of(chunks: list[tuple[float, Chunk]]) -> str:
    return "".join(chunk.text for _, chunk in chunks)


async def first_chunk_s(stream: ChunkStream) -> float:
    began = time.monotonic()
    try:
        await anext(stream)
        return time.monotonic() - began
    finally:
        stream.cancel()


def open_requests(faults: Stack, model: str) -> float:
    """How many requests a model's own metrics call open; they are a second old at most."""
    page = httpx.get(faults.server.metrics_url).text
    [line] = [line for line in page.splitlines() if line.startswith(f'tritone_stage_requests_open{{model="{model}"}}')]
    return float(line.split()[-1])


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@pytest.mark.parametrize("num_streams", [33, 64, 128])
async def test_first_chunks_and_running_streams_under_many_slow_starters(
    transport: TritonTransport, num_streams: int
) -> None:
    """Reliability T39."""
    running = FaultCommand(chunks=60, interval_ms=50)
    runners = [asyncio.create_task(read(start(transport, running))) for _ in range(4)]
    await asyncio.sleep(0.5)
    slow = FaultCommand(delay_ms=500)
    firsts = await asyncio.gather(*(first_chunk_s(start(transport, slow)) for _ in range(num_streams)))
    stalls = []
    for chunks in await asyncio.gather(*runners):
        assert text_of(chunks) == running.answer()
        times = [at for at, _ in chunks]
        stalls.append(max(b - a for a, b in zip(times, times[1:], strict=False)) - running.interval_ms / 1000)
    p50, p99 = statistics.median(firsts), percentile(list(firsts), 0.99)
    figures = {"first p50": p50, "first p99": p99, "stall": max(stalls)}
    print(f"\n{num_streams} streams:", {name: f"{seconds * 1e3:.0f} ms" for name, seconds in figures.items()})
    assert p99 <= 2 * GUARD * p50
    assert max(stalls) <= 0.2 * GUARD


async def test_a_storm_of_cancels_among_starters(faults: Stack, transport: TritonTransport) -> None:
    """Reliability T36: 64 cancelled within 10 ms while 64 start."""
    await asyncio.sleep(0.5)
    endless = FaultCommand(chunks=2, never_final=True)
    doomed = [start(transport, endless) for _ in range(64)]
    for stream in doomed:
        await anext(stream)
    good = FaultCommand(chunks=10, interval_ms=10)
    starters = [asyncio.create_task(read(start(transport, good))) for _ in range(64)]
    began = time.monotonic()
    for stream in doomed:
        stream.cancel()
    took_s = time.monotonic() - began
    answers = await asyncio.gather(*starters)
    assert all(text_of(chunks) == good.answer() for chunks in answers)
    freed_s = await asyncio.to_thread(
        wait_until, lambda: open_requests(faults, STAGE) == 0 == open_requests(faults, ORCHESTRATOR), GUARD
    )
    print(f"\n64 cancels in {took_s * 1e3:.1f} ms; everything free {freed_s:.2f} s after the last answer")


async def test_a_cancel_before_the_first_chunk_frees_the_place(transport: TritonTransport) -> None:
    """Reliability T37: on the server with few places, so that a freed one shows in who is served."""
    silent = FaultCommand(delay_ms=60_000)
    held = [start(transport, silent, "small") for _ in range(SMALL_SLOTS + SMALL_WAITING)]
    await asyncio.sleep(1.0)
    with pytest.raises(Overloaded):
        await read(start(transport, FaultCommand(), "small"))
    for stream in held:
        stream.cancel()
    began = time.monotonic()
    while True:
        try:
            chunks = await read(start(transport, FaultCommand(), "small"))
            break
        except Overloaded:
            assert time.monotonic() - began < GUARD
            await asyncio.sleep(0.02)
    print(f"\na place was free and its request answered {time.monotonic() - began:.2f} s after the cancel")
    assert text_of(chunks) == FaultCommand().answer()


async def test_a_cancel_that_fails_in_the_stage_ends_the_request_all_the_same(
    faults: Stack, transport: TritonTransport
) -> None:
    stream = start(transport, FaultCommand(raise_in=CANCEL, interval_ms=50, chunks=1000))
    await anext(stream)
    stream.cancel()
    good = FaultCommand()
    assert text_of(await read(start(transport, good))) == good.answer()
    await asyncio.to_thread(wait_until, lambda: open_requests(faults, ORCHESTRATOR) == 0, GUARD)


async def completed_per_second(faults: Stack, num_clients: int, duration_s: float) -> tuple[float, int]:
    """What `num_clients` clients of `small` get done, and how often one was refused."""
    body = FAULTS.body_of(FaultCommand(delay_ms=100)) | {"model": "small"}
    began, done, refused = time.monotonic(), 0, 0

    async def ask(client: httpx.AsyncClient) -> None:
        nonlocal done, refused
        while time.monotonic() < began + duration_s:
            answer = await client.post(faults.gateway.url + FAULTS.route, json=body)
            if answer.status_code == 200:
                assert FAULTS.text_of(answer.json()) == FaultCommand().answer()
                done += 1
            else:
                assert answer.status_code in (429, 503)
                assert int(answer.headers["retry-after"]) >= 1
                refused += 1
                await asyncio.sleep(0.25)

    async with httpx.AsyncClient(timeout=HANG_S, limits=httpx.Limits(max_connections=None)) as client:
        await asyncio.gather(*(ask(client) for _ in range(num_clients)))
    return done / (time.monotonic() - began), refused


async def test_more_clients_than_places_are_refused_and_goodput_holds(faults: Stack) -> None:
    """Reliability T40: at the number of places + 1, twice and ten times as many."""
    places = SMALL_SLOTS + SMALL_WAITING
    peak, refused = await completed_per_second(faults, places, 2.0)
    assert not refused
    for num_clients in (places + 1, 2 * places, 10 * places):
        goodput, refused = await completed_per_second(faults, num_clients, 2.0)
        print(f"\n{num_clients} clients for {places} places: {goodput / peak:.0%} of the peak, {refused} refused")
        assert refused
        assert goodput >= 0.9 * peak / GUARD


async def _first_chunks(transport: TritonTransport, model: str, num: int) -> list[float]:
    return [await first_chunk_s(start(transport, FaultCommand(), model)) for _ in range(num)]


async def test_the_way_through_the_orchestrator_is_short(transport: TritonTransport) -> None:
    figures = {model: statistics.median(await _first_chunks(transport, model, 60)) for model in (STAGE, ORCHESTRATOR)}
    print("\nfirst chunk, one stream:", {model: f"{seconds * 1e3:.2f} ms" for model, seconds in figures.items()})
    assert figures[ORCHESTRATOR] - figures[STAGE] < 0.008 * GUARD


@pytest.mark.parametrize("crash", CRASHES)
async def test_a_stage_that_dies_ends_its_streams_at_once_and_loads_again(faults: Stack, crash: str) -> None:
    """The relay's part of reliability T42: nobody waits for a process that has gone."""
    transport = TritonTransport(faults.server.grpc_address)
    try:
        await asyncio.to_thread(_wait_for_answer, faults)
        streams = [start(transport, FaultCommand(chunks=1000, interval_ms=50)) for _ in range(32)]
        for stream in streams:
            await anext(stream)
        killer = start(transport, FaultCommand(crash=crash, interval_ms=50))
        began = time.monotonic()
        ends = await asyncio.gather(*map(_error_of, [killer, *streams]))
        ended_s = time.monotonic() - began
        assert {type(error) for error in ends} == {Overloaded}
        assert ended_s < 5.0
        print(f"\n{crash}: 33 streams ended with an error within {ended_s:.2f} s")
    finally:
        await transport.close()
        await asyncio.to_thread(_reload, faults)


async def _error_of(stream: ChunkStream) -> TritoneError | None:
    try:
        await read(stream)
    except TritoneError as error:
        return error
    return None


def _wait_for_answer(faults: Stack) -> None:
    good = FaultCommand()
    assert WAYS["orchestrator"](faults, FAULTS, good).text == good.answer()


def _reload(faults: Stack) -> None:
    with triton.InferenceServerClient(faults.server.grpc_address) as client:
        client.unload_model(STAGE)
        began = time.monotonic()
        while True:
            try:
                client.load_model(STAGE)
                break
            except triton.InferenceServerException:
                # The unload is still under way.
                assert time.monotonic() - began < HANG_S
                time.sleep(0.2)
        wait_until(lambda: client.is_model_ready(STAGE), HANG_S)
    _wait_for_answer(faults)
