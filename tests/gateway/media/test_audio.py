# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Audio through the decoder process: formats, rates, bombs (reliability T07)."""

from __future__ import annotations

import numpy as np
import pytest
from doubles.media_files import audio_file, flac_of_silence, float_wav, long_opus, tone, video_file, wav
from numpy.typing import NDArray

from tritone.errors import InvalidRequest
from tritone.gateway.media.decoded import AudioForm
from tritone.gateway.media.limits import MediaLimits
from tritone.gateway.media.reader import MediaReader

pytestmark = pytest.mark.asyncio(loop_scope="module")
# The promise: what a hostile file may add to the resident memory of its job.
MAX_ADDED_BYTES = 300_000_000


async def refusal(reader: MediaReader, content: bytes, limits: MediaLimits | None = None) -> str:
    with pytest.raises(InvalidRequest) as refused:
        await reader.read_audio(content, field="audio", limits=limits)
    assert refused.value.field == "audio"
    return refused.value.message


async def usual_bytes(reader: MediaReader) -> int:
    await reader.read_audio(wav(tone(0.1)), field="audio")
    return reader.pool.processes[0].last_peak_bytes


def loudest_hz(samples: NDArray[np.float32], sample_rate_hz: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples[:, 0] * np.hanning(len(samples))))
    return float(np.fft.rfftfreq(len(samples), 1 / sample_rate_hz)[spectrum.argmax()])


async def test_wav_is_exact(reader: MediaReader) -> None:
    audio = await reader.read_audio(wav(tone(0.5)), field="audio")
    assert audio.sample_rate_hz == 16_000 and audio.samples.shape == (8000, 1) and audio.seconds == 0.5
    assert audio.samples.dtype == np.float32
    np.testing.assert_allclose(audio.samples, tone(0.5), atol=2 / 32768)


@pytest.mark.parametrize(
    ("container", "codec", "sample_rate_hz"),
    [
        ("wav", "pcm_s24le", 44_100),
        ("wav", "pcm_mulaw", 8_000),
        ("flac", "flac", 96_000),
        ("ogg", "libopus", 48_000),
        ("webm", "libopus", 48_000),
        ("mp3", "libmp3lame", 44_100),
        ("adts", "aac", 44_100),
        ("mp4", "aac", 48_000),
        ("ipod", "alac", 44_100),
    ],
)
async def test_formats(reader: MediaReader, container: str, codec: str, sample_rate_hz: int) -> None:
    file = audio_file(tone(1.0, sample_rate_hz, 2), sample_rate_hz, container=container, codec=codec)
    audio = await reader.read_audio(file, field="audio")
    assert audio.sample_rate_hz == sample_rate_hz and audio.samples.shape[1] == 2
    assert abs(audio.seconds - 1.0) < 0.08
    assert abs(loudest_hz(audio.samples, sample_rate_hz) - 440) < 3


async def test_rate_and_channels_that_are_asked_for(reader: MediaReader) -> None:
    samples = tone(1.0, 44_100, 2)
    samples[:, 1] *= 0.5
    form = AudioForm(sample_rate_hz=24_000, mix_to_mono=True)
    audio = await reader.read_audio(wav(samples, 44_100), field="audio", form=form)
    assert audio.sample_rate_hz == 24_000 and audio.samples.shape[1] == 1
    assert abs(len(audio.samples) - 24_000) <= 32
    np.testing.assert_allclose(audio.samples[1000:20_000], 0.75 * tone(1.0, 24_000)[1000:20_000], atol=0.01)


async def test_the_audio_of_a_video(reader: MediaReader) -> None:
    audio = await reader.read_audio(video_file(5, audio=tone(1.0)), field="audio")
    assert abs(loudest_hz(audio.samples, audio.sample_rate_hz) - 440) < 3
    assert "no audio track" in await refusal(reader, video_file(5))


async def test_eight_hours_of_opus_in_25_megabytes(reader: MediaReader) -> None:
    usual = await usual_bytes(reader)
    file = long_opus(8 * 3600)
    assert 24_000_000 < len(file) < 25 << 20
    assert "more than 600 seconds" in await refusal(reader, file)
    # 80 MB here: the file is read to its end, and nothing is decoded.
    assert reader.pool.processes[0].last_peak_bytes < usual + MAX_ADDED_BYTES


async def test_a_file_that_lies_about_its_length_is_counted(reader: MediaReader) -> None:
    usual = await usual_bytes(reader)
    file = long_opus(3600, claimed_seconds=10)
    assert "more than 600 seconds" in await refusal(reader, file)
    # 150 MB here: ten minutes at 48 kHz are 115.
    assert reader.pool.processes[0].last_peak_bytes < usual + MAX_ADDED_BYTES


async def test_a_forged_rate(reader: MediaReader) -> None:
    assert "sample rate outside 4000..192000 Hz" in await refusal(reader, flac_of_silence(1, 655_350))
    head = bytearray(wav(tone(1.0)))
    for rate in (0, 1, 3999, 192_001, 2**31 - 1, 2**32 - 1):
        head[24:28] = rate.to_bytes(4, "little")
        await refusal(reader, bytes(head))


async def test_decoded_bytes_are_counted(reader: MediaReader) -> None:
    usual = await usual_bytes(reader)
    file = flac_of_silence(60, 192_000)
    assert len(file) < 64_000
    assert "more than 268435456 bytes once decoded" in await refusal(reader, file)
    # 276 MB here.
    assert reader.pool.processes[0].last_peak_bytes < usual + MAX_ADDED_BYTES


async def test_decoded_bytes_are_counted_before_resampling(reader: MediaReader) -> None:
    with pytest.raises(InvalidRequest, match="268435456 bytes once decoded"):
        await reader.read_audio(flac_of_silence(60, 192_000), field="audio", form=AudioForm(sample_rate_hz=8_000))


async def test_decoded_bytes_are_counted_again_after_resampling(reader: MediaReader) -> None:
    limits = MediaLimits(max_audio_decoded_bytes=100_000)
    with pytest.raises(InvalidRequest, match="100000 bytes once decoded"):
        await reader.read_audio(
            wav(tone(1.0, 8_000), 8_000), field="audio", form=AudioForm(sample_rate_hz=48_000), limits=limits
        )


async def test_seconds_and_channels_are_exact(reader: MediaReader) -> None:
    file = wav(tone(2.0, 8_000, 2), 8_000)
    await reader.read_audio(file, field="audio", limits=MediaLimits(max_audio_seconds=2.0, max_channels=2))
    assert "1.9 seconds" in await refusal(reader, file, MediaLimits(max_audio_seconds=1.9))
    assert "more than 1 audio channels" in await refusal(reader, file, MediaLimits(max_channels=1))


async def test_numbers_that_are_none(reader: MediaReader) -> None:
    for value in (np.nan, np.inf, -np.inf):
        samples = tone(0.1)
        samples[7] = value
        assert await refusal(reader, float_wav(samples)) == "`audio` cannot be decoded as audio."


async def test_files_without_sound(reader: MediaReader) -> None:
    assert await refusal(reader, wav(tone(0.0))) == "`audio` cannot be decoded as audio."
    assert await refusal(reader, wav(tone(1.0))[:44]) == "`audio` cannot be decoded as audio."
    # AVI holds RIFF too, and the playlists of FFmpeg name other files.
    for other in (
        b"RIFF\0\0\0\0AVI LIST",
        b"#EXTM3U\nfile:///etc/passwd\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
    ):
        assert await refusal(reader, other) == "`audio` is not audio in a format this server reads."
