# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder process: `python -m tritone.gateway.media.worker FD`.

It imports, gives up its rights, and waits. For each job it gets a socket, forks, and the child alone reads the file,
decodes and answers under hard limits, then exits: no byte of a client is ever read in a process that sees another's.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import socket
import sys
from array import array
from collections.abc import Iterable
from typing import Any

import av
import av.logging

from tritone.gateway.media.decode_av import AudioBlocks, decode_audio, decode_video
from tritone.gateway.media.decode_image import decode_image
from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.framing import (
    PREFIX_BYTES,
    header_length,
    read_header,
    receive_exactly,
    send_reply,
)
from tritone.gateway.media.limits import MediaLimits
from tritone.gateway.media.sandbox import (
    JobLimits,
    die_with_parent,
    filter_system_calls,
    isolate_worker,
    limit_job,
)

_LATE_IMPORTS = (
    *(f"PIL.{name}" for name in ("ExifTags", "ImageChops", "ImageColor", "ImageMode", "ImagePalette", "TiffTags")),
    *(f"PIL.{name}" for name in ("ImageSequence", "MpoImagePlugin", "TiffImagePlugin", "ImageMath")),
    *(f"encodings.{name}" for name in ("ascii", "latin_1", "utf_16", "cp1252")),
)
_FLOAT32_NAME = "float32"
Reply = tuple[dict[str, Any], Iterable[bytes | bytearray]]


def main(control_fd: int) -> None:
    """Serve jobs until the gateway closes its end."""
    _import_everything()
    av.logging.set_libav_level(av.logging.PANIC)
    control = socket.socket(fileno=control_fd)
    isolation = isolate_worker()
    control.send(json.dumps({"isolation": isolation.names()}).encode())
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
        if not message:
            return
        limits = JobLimits(**json.loads(message))
        child = os.fork()
        if child == 0:
            control.close()
            _run_job(socket.socket(fileno=descriptors[0]), limits)
        os.close(descriptors[0])
        _, status, usage = os.wait4(child, 0)
        report = {"exit": status, "peak_bytes": usage.ru_maxrss * 1024}
        control.send(json.dumps(report).encode())


def _import_everything() -> None:
    """Load what the libraries import when first needed: by then no file can be opened."""
    for module in pkgutil.walk_packages(av.__path__, "av."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _LATE_IMPORTS:
        importlib.import_module(name)


def _run_job(pipe: socket.socket, limits: JobLimits) -> None:
    """Do one job and leave; never returns."""
    code = 1
    try:
        die_with_parent()
        limit_job(limits)
        filter_system_calls()
        _answer(pipe)
        code = 0
    finally:
        os._exit(code)


def _answer(pipe: socket.socket) -> None:
    job = read_header(receive_exactly(pipe, header_length(receive_exactly(pipe, PREFIX_BYTES))))
    received = receive_exactly(pipe, job["num_bytes"])
    content = io.BytesIO(received)
    del received
    try:
        header, blocks = _decode(content, job)
    except MediaFault as refused:
        header, blocks = {"fault": refused.fault.value}, ()
    except MemoryError:
        header, blocks = {"fault": Fault.TOO_COSTLY.value}, ()
    except Exception:
        # Whatever a library found wrong, its words stay here.
        header, blocks = {"fault": Fault.UNDECODABLE.value}, ()
    send_reply(pipe, header, blocks)


def _decode(content: io.BytesIO, job: dict[str, Any]) -> Reply:
    limits = MediaLimits(**job["limits"])
    form, format_name = job["form"], job["format"]
    if job["kind"] == "image":
        image = decode_image(content, format_name=format_name, limits=limits, **form)
        shape = [image.height, image.width, image.channels]
        return {"tensors": [_head("pixels", "uint8", shape)]}, image.blocks
    if job["kind"] == "audio":
        audio = decode_audio(content, format_name=format_name, limits=limits, **form)
        return {"tensors": [_audio_head(audio)], "sample_rate_hz": audio.sample_rate_hz}, [audio.content]
    video = decode_video(content, format_name=format_name, limits=limits, **form)
    num_frames = len(video.times_s)
    heads = [
        _head("frames", "uint8", [num_frames, video.height, video.width, 3]),
        _head("times_s", _FLOAT32_NAME, [num_frames]),
    ]
    blocks: list[bytes | bytearray] = [video.content, array("f", video.times_s).tobytes()]
    header: dict[str, Any] = {"tensors": heads}
    if video.audio is not None:
        heads.append(_audio_head(video.audio))
        blocks.append(video.audio.content)
        header["sample_rate_hz"] = video.audio.sample_rate_hz
    return header, blocks


def _audio_head(audio: AudioBlocks) -> dict[str, Any]:
    return _head("samples", _FLOAT32_NAME, [audio.num_samples, audio.num_channels])


def _head(name: str, dtype: str, shape: list[int]) -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": shape}


if __name__ == "__main__":
    main(int(sys.argv[1]))
