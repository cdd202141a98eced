# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A thousand broken files: each is decoded or refused in our own words, and none stops the next (reliability T16)."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import pytest
from doubles.media_files import (
    animated_gif,
    audio_file,
    encoded,
    mutated,
    picture,
    png_with_profile,
    tone,
    video_file,
    wav,
)

from tritone.errors import InvalidRequest
from tritone.gateway.media.decoded import VideoForm
from tritone.gateway.media.faults import Fault, invalid_request
from tritone.gateway.media.limits import MediaLimits
from tritone.gateway.media.reader import MediaReader

pytestmark = pytest.mark.asyncio(loop_scope="module")
NUM_FILES = 1000
OUR_WORDS = {
    invalid_request(fault, field="media", kind=kind, limits=MediaLimits()).message
    for fault in Fault
    for kind in ("image", "audio", "video")
}


class Sample(NamedTuple):
    kind: str
    file: bytes


def samples() -> list[Sample]:
    pixels = picture(24, 32)
    images = [encoded(pixels), encoded(pixels, "JPEG"), encoded(pixels, "WEBP"), encoded(pixels, "BMP")]
    images += [
        encoded(pixels, "GIF"),
        animated_gif(1),
        png_with_profile(100),
        encoded(pixels, "JPEG", progressive=True),
    ]
    audio = [wav(tone(0.1))]
    for container, codec, rate in (
        ("flac", "flac", 48_000),
        ("ogg", "libopus", 48_000),
        ("mp3", "libmp3lame", 44_100),
        ("adts", "aac", 44_100),
        ("mp4", "aac", 44_100),
        ("webm", "libopus", 48_000),
    ):
        audio.append(audio_file(tone(0.3, rate), rate, container=container, codec=codec))
    video = [video_file(4, audio=tone(0.4)), video_file(4, container="webm", codec="libvpx-vp9")]
    kinds = (("image", images), ("audio", audio), ("video", video))
    return [Sample(kind, file) for kind, files in kinds for file in files]


async def test_a_thousand_broken_files(reader: MediaReader) -> None:
    outcomes: Counter[str] = Counter()
    whole = samples()
    await reader.read_image(whole[0].file, field="media")
    (pid,) = (process.pid for process in reader.pool.processes)
    for seed in range(NUM_FILES):
        sample = whole[seed % len(whole)]
        file = mutated(sample.file, seed)
        try:
            if sample.kind == "image":
                await reader.read_image(file, field="media")
            elif sample.kind == "audio":
                await reader.read_audio(file, field="media")
            else:
                await reader.read_video(file, field="media", form=VideoForm(with_audio=True))
            outcomes["decoded"] += 1
        except InvalidRequest as refused:
            assert refused.field == "media" and refused.message in OUR_WORDS, (seed, refused.message)
            assert not re.search(r"0x|/|Error|av\.|PIL|\.py", refused.message.replace("data:image/", ""))
            outcomes["refused"] += 1
    assert outcomes.total() == NUM_FILES
    # 60 of 100 are refused here; a mutation of samples alone only changes how a file sounds.
    assert outcomes["refused"] > NUM_FILES // 3 and outcomes["decoded"] > NUM_FILES // 20
    # None of them took the worker down, and good files still are.
    assert [process.pid for process in reader.pool.processes] == [pid]
    for sample in whole[:3]:
        await reader.read_image(sample.file, field="media")
