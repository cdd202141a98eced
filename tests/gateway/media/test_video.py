# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Video through the decoder process: frames, times, audio track, bombs (reliability T07)."""

from __future__ import annotations

import numpy as np
import pytest
from doubles.media_files import tone, video_file, video_with_long_audio, wav, with_rotation, with_sample_duration

from tritone.errors import InvalidRequest
from tritone.gateway.media.decoded import AudioForm, VideoForm
from tritone.gateway.media.limits import MediaLimits
from tritone.gateway.media.reader import MediaReader

pytestmark = pytest.mark.asyncio(loop_scope="module")
WITH_AUDIO = VideoForm(with_audio=True)


async def refusal(
    reader: MediaReader, content: bytes, limits: MediaLimits | None = None, form: VideoForm = WITH_AUDIO
) -> str:
    with pytest.raises(InvalidRequest) as refused:
        await reader.read_video(content, field="video", limits=limits, form=form)
    assert refused.value.field == "video"
    return refused.value.message


@pytest.mark.parametrize(
    ("container", "codec"), [("mp4", "libx264"), ("webm", "libvpx"), ("webm", "libvpx-vp9"), ("matroska", "libx264")]
)
async def test_formats(reader: MediaReader, container: str, codec: str) -> None:
    video = await reader.read_video(video_file(20, container=container, codec=codec), field="video")
    assert video.frames.shape == (20, 48, 64, 3) and video.audio is None
    np.testing.assert_allclose(video.times_s, np.arange(20) / 10, atol=0.002)
    np.testing.assert_allclose(video.frames.mean(axis=(1, 2, 3)), 8 * np.arange(20), atol=4)


async def test_frames_and_size_that_are_asked_for(reader: MediaReader) -> None:
    form = VideoForm(frames_per_second=2, max_side=33, with_audio=True, audio=AudioForm(8_000))
    video = await reader.read_video(video_file(25, audio=tone(2.0)), field="video", form=form)
    assert video.frames.shape == (5, 24, 33, 3)
    np.testing.assert_allclose(video.times_s, [0, 0.5, 1, 1.5, 2], atol=0.002)
    np.testing.assert_allclose(video.frames.mean(axis=(1, 2, 3)), [0, 40, 80, 120, 160], atol=4)
    assert video.audio is not None and video.audio.sample_rate_hz == 8_000
    assert abs(video.audio.seconds - 2.0) < 0.2


async def test_videos_come_upright(reader: MediaReader) -> None:
    file = video_file(3)
    assert (await reader.read_video(file, field="video")).frames.shape == (3, 48, 64, 3)
    assert (await reader.read_video(with_rotation(file), field="video")).frames.shape == (3, 64, 48, 3)


async def test_an_audio_track_of_eight_hours(reader: MediaReader) -> None:
    await reader.read_video(video_file(3), field="video")
    usual = reader.pool.processes[0].last_peak_bytes
    file = video_with_long_audio(8 * 3600)
    for form in (WITH_AUDIO, VideoForm()):
        assert "more than 600 seconds of audio" in await refusal(reader, file, form=form)
        assert reader.pool.processes[0].last_peak_bytes < usual + 300_000_000


async def test_an_audio_track_that_lies_about_its_length(reader: MediaReader) -> None:
    file = with_sample_duration(video_with_long_audio(900), 1024, 1)
    assert "more than 600 seconds of audio" in await refusal(reader, file)
    # Not decoded, so nothing to count.
    assert len((await reader.read_video(file, field="video")).frames)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (MediaLimits(max_frame_pixels=48 * 64 - 1), "pixels"),
        (MediaLimits(max_video_frames=19), "more than 19 frames"),
        (MediaLimits(max_video_seconds=1.5), "longer than 1.5 seconds"),
        (MediaLimits(max_video_decoded_bytes=20 * 48 * 64 * 3 - 1), "once decoded"),
        (MediaLimits(max_video_bytes=100), "larger than 100 bytes"),
    ],
)
async def test_limits(reader: MediaReader, limits: MediaLimits, words: str) -> None:
    file = video_file(20)
    assert words in await refusal(reader, file, limits)
    exact = MediaLimits(
        max_frame_pixels=48 * 64,
        max_video_frames=20,
        max_video_seconds=2.0,
        max_video_decoded_bytes=20 * 48 * 64 * 3,
        max_video_bytes=len(file),
    )
    assert len((await reader.read_video(file, field="video", limits=exact)).frames) == 20


@pytest.mark.parametrize("container", ["mp4", "matroska"])
async def test_frames_and_seconds_are_counted_whatever_the_file_says(reader: MediaReader, container: str) -> None:
    file = video_file(40, container=container)
    # 10 frames a second in units of 1/10240.
    lying = with_sample_duration(file, 1024, 1)
    assert "more than 19 frames" in await refusal(reader, lying, MediaLimits(max_video_frames=19))
    assert "longer than 2 seconds" in await refusal(reader, file, MediaLimits(max_video_seconds=2))


async def test_files_that_say_nothing_of_their_length_are_counted(reader: MediaReader) -> None:
    file = video_with_long_audio(900, container="matroska", is_live=True)
    for form in (WITH_AUDIO, VideoForm()):
        assert "more than 600 seconds of audio" in await refusal(reader, file, form=form)
    file = video_file(10, container="matroska", is_live=True)
    assert len((await reader.read_video(file, field="video")).frames) == 10
    assert "longer than 0.5 seconds" in await refusal(reader, file, MediaLimits(max_video_seconds=0.5), VideoForm())


async def test_decoders_that_are_not_used(reader: MediaReader) -> None:
    for codec in ("jpeg2000", "mpeg4"):
        assert "no video track" in await refusal(reader, video_file(3, container="mov", codec=codec))
    assert "not video" in await refusal(reader, wav(tone(1.0)))
