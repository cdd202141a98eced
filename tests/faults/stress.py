# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""How long the server, the relay and the transport hold under streams that start, end and are cancelled.

    python tests/faults/stress.py --streams 64 --seconds 60 --cancels 0.5 [--hog] [--stacks]

Starts a server of its own with the fault pipeline and prints one JSON line: what held, what came back wrong, how fast.
With --hog the orchestrator's interpreter is busy half of the time. With --stacks the processes of a server that
stopped are shown to gdb before it is ended. The exit status is 1 when something died, hung or was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.fault_command import FaultCommand  # noqa: E402
from faults.render import write_fault_pipeline  # noqa: E402

from tritone.errors import TritoneError  # noqa: E402
from tritone.gateway.transport import GenerationCall  # noqa: E402
from tritone.gateway.triton_transport import TritonTransport  # noqa: E402
from tritone.tools.launch import start_triton  # noqa: E402
from tritone.tools.triton_server import TritonServer  # noqa: E402

SILENCE_S = 8.0  # nothing arriving for so long is a hang
MODEL = "faults"


class Stress:
    """Owns the counts of one run."""

    def __init__(self, server: TritonServer, options: argparse.Namespace) -> None:
        self._server = server
        self._options = options
        self._random = random.Random(options.seed)
        self.counts: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.first_s: list[float] = []
        self._last_sign = time.monotonic()

    async def run(self) -> str:
        """`held`, or what stopped it."""
        transport = TritonTransport(self._server.grpc_address)
        until = time.monotonic() + self._options.seconds
        streams = [asyncio.create_task(self._stream(transport, until)) for _ in range(self._options.streams)]
        verdict = "held"
        while verdict == "held" and not all(stream.done() for stream in streams):
            await asyncio.sleep(0.25)
            if self._server.has_ended():
                verdict = "the server died"
            elif time.monotonic() - self._last_sign > SILENCE_S:
                verdict = "nothing moves"
        if verdict != "held":
            for stream in streams:
                stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        await transport.close()
        return verdict

    async def _stream(self, transport: TritonTransport, until: float) -> None:
        while time.monotonic() < until:
            chunks = self._random.choice((1, 1, 2, 5, 60))
            command = FaultCommand(chunks=chunks, interval_ms=3, delay_ms=self._random.choice((0, 0, 0, 30)))
            is_cancelled = self._random.random() < self._options.cancels
            try:
                # Half of the cancels meet the end of a stream.
                limit_s = self._random.choice((0.05, 0.003 * chunks + 0.02)) * self._random.random()
                async with asyncio.timeout(limit_s if is_cancelled else None):
                    await self._ask(transport, command)
                self.counts["finished"] += 1
            except TimeoutError:
                self.counts["cancelled"] += 1
            except TritoneError as error:
                self.errors[error.message] += 1
                await asyncio.sleep(0.05)

    async def _ask(self, transport: TritonTransport, command: FaultCommand) -> None:
        params = {"prompt": command.prompt(), "accept": True}
        stream = transport.open(GenerationCall(MODEL, json.dumps(params).encode()))
        began, text, expected = time.monotonic(), "", 0
        try:
            async for chunk in stream:
                if chunk.text and not text:
                    self.first_s.append(time.monotonic() - began)
                text += chunk.text
                self.counts["wrong"] += chunk.chunk_index != expected
                expected += 1
                self._last_sign = time.monotonic()
            self.counts["wrong"] += text != command.answer()
        finally:
            stream.cancel()


def processes(repository: Path) -> list[int]:
    """The server that serves `repository` and its stubs."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text()
        except OSError:
            continue
        if str(repository) in command and "server_guard" not in command:
            found.append(int(folder.name))
    return found


def show_stacks(repository: Path) -> None:
    """Every thread of every process, by gdb."""
    for pid in processes(repository):
        subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"], check=False)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--cancels", type=float, default=0.5, help="share of streams that are cancelled")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hog", action="store_true")
    parser.add_argument("--stacks", action="store_true")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="tritone-stress-") as name:
        repository = Path(name) / "repository"
        write_fault_pipeline(repository, MODEL, relay_is_busy=options.hog)
        server = start_triton(repository, Path(name))
        try:
            stress = Stress(server, options)
            began = time.monotonic()
            verdict = asyncio.run(stress.run())
            seconds = time.monotonic() - began
            if verdict != "held" and options.stacks:
                show_stacks(repository)
        finally:
            server.stop()
    print(json.dumps(report(options, stress, verdict, seconds)))
    return int(verdict != "held" or stress.counts["wrong"] > 0)


def report(options: argparse.Namespace, stress: Stress, verdict: str, seconds: float) -> dict[str, Any]:
    """The figures of a run."""
    first = sorted(stress.first_s)
    num_ended = stress.counts["finished"] + stress.counts["cancelled"]
    return {
        "streams": options.streams,
        "hog": options.hog,
        "verdict": verdict,
        "seconds": round(seconds, 1),
        **{key: stress.counts[key] for key in ("finished", "cancelled", "wrong")},
        "errors": dict(stress.errors),
        "streams_per_s": round(num_ended / seconds, 1),
        "first_ms": {f"p{int(share * 100)}": round(first[int(len(first) * share)] * 1e3, 1) for share in (0.5, 0.99)}
        if first
        else {},
    }


if __name__ == "__main__":
    sys.exit(main())
