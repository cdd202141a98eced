# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway's end of one decoder process: starts it, hands it a job, reads the reply, ends it.

Knows nothing of pools. A process is used for one job at a time; after any failure but a refused file it is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.framing import (
    PREFIX_BYTES,
    BadFrame,
    header_bytes,
    header_length,
    read_header,
    tensor_heads,
)
from tritone.gateway.media.limits import DecoderSettings

_MAX_CONTROL_BYTES = 4096


class ProcessFailed(Exception):
    """The process did not start, broke off or sent what is not of the protocol."""


class Reply(NamedTuple):
    """The tensors of a decoded file by name, and the rest of the header."""

    tensors: dict[str, NDArray[Any]]
    header: dict[str, Any]


class DecoderProcess:
    """One running worker. Make it with `start`."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._is_killed = False
        self.isolation: frozenset[str] = frozenset()
        # Resident memory of the last job at its highest.
        self.last_peak_bytes = 0

    @classmethod
    async def start(cls, settings: DecoderSettings) -> DecoderProcess:
        """Start a worker and wait until it has given up its rights."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Not through a thread: the kernel ends the worker when the thread that started it ends.
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "tritone.gateway.media.worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                # Nothing of the gateway's environment, keys among it, is there to be found.
                env={"LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"},
                start_new_session=True,
            )
        ours.setblocking(False)
        started = cls(process, ours)
        try:
            async with asyncio.timeout(settings.start_timeout_s):
                started.isolation = frozenset((await started._report())["isolation"])
            if not settings.required <= started.isolation:
                raise ProcessFailed("isolation")
        except TimeoutError:
            await started.kill()
            raise ProcessFailed("start") from None
        except BaseException:
            await started.kill()
            raise
        return started

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        # Not poll(): it would reap the process, and `kill` needs its number to be taken still.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    async def run(
        self,
        job: Mapping[str, Any],
        content: bytes | bytearray | memoryview,
        *,
        settings: DecoderSettings,
        max_bytes: int,
    ) -> Reply:
        """Have one file decoded. `max_bytes` bounds what a reply may hold."""
        pipe, theirs = socket.socketpair()
        with pipe:
            pipe.setblocking(False)
            with theirs:
                limits = {"max_memory_bytes": settings.max_memory_bytes, "cpu_s": settings.job_cpu_s}
                try:
                    socket.send_fds(self._control, [json.dumps(limits).encode()], [theirs.fileno()])
                except OSError:
                    raise ProcessFailed("gone") from None
            fault: Fault | None = None
            header: dict[str, Any] = {}
            tensors: dict[str, NDArray[Any]] = {}
            try:
                header, tensors = await _exchange(pipe, {**job, "num_bytes": len(content)}, content, max_bytes)
            except MediaFault as refused:
                fault = refused.fault
            except (BadFrame, OSError):
                fault = Fault.UNDECODABLE
        # Always read: it proves that the child is gone, and the next job must not find it.
        status = await self._report()
        self.last_peak_bytes = status["peak_bytes"]
        if status["exit"] != 0:
            # The kernel's answer to too much CPU time or memory is SIGKILL.
            fault = Fault.TOO_COSTLY if os.WTERMSIG(status["exit"]) == signal.SIGKILL else Fault.UNDECODABLE
        if fault is not None:
            raise MediaFault(fault)
        return Reply(tensors, header)

    async def kill(self) -> None:
        """End the worker and what it forked, and wait until it is gone."""
        self._control.close()
        # Once: afterwards the number may be another process's.
        if not self._is_killed:
            self._is_killed = True
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        await asyncio.to_thread(self._process.wait)

    async def _report(self) -> dict[str, Any]:
        try:
            message = await asyncio.get_running_loop().sock_recv(self._control, _MAX_CONTROL_BYTES)
        except OSError:
            message = b""
        if not message:
            raise ProcessFailed("gone")
        report: dict[str, Any] = json.loads(message)
        return report


async def _exchange(
    pipe: socket.socket, job: Mapping[str, Any], content: bytes | bytearray | memoryview, max_bytes: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(pipe, header_bytes(job))
    await loop.sock_sendall(pipe, content)
    prefix = bytearray(PREFIX_BYTES)
    await _receive_into(pipe, memoryview(prefix))
    text = bytearray(header_length(prefix))
    await _receive_into(pipe, memoryview(text))
    header = read_header(text)
    if "fault" in header:
        raise MediaFault(_known_fault(header["fault"]))
    tensors: dict[str, NDArray[Any]] = {}
    for head in tensor_heads(header, max_bytes=max_bytes):
        tensor: NDArray[Any] = np.empty(head.shape, head.dtype)
        if tensor.nbytes:
            await _receive_into(pipe, tensor.reshape(-1).view(np.uint8).data)
        tensors[head.name] = tensor
    return header, tensors


async def _receive_into(pipe: socket.socket, view: memoryview) -> None:
    loop = asyncio.get_running_loop()
    while view:
        count = await loop.sock_recv_into(pipe, view)
        if not count:
            raise BadFrame("broken off")
        view = view[count:]


def _known_fault(value: Any) -> Fault:
    try:
        return Fault(value)
    except ValueError:
        raise BadFrame("fault") from None
