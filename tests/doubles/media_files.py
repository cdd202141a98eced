# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Makes media files for tests, good ones and hostile ones, on the spot: nothing is read from disk."""

from __future__ import annotations

import io
import random
import struct
import wave
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]


def picture(height: int = 40, width: int = 60) -> Pixels:
    """A picture with a different value at every corner."""
    rows, columns = np.mgrid[0:height, 0:width]
    pixels: Pixels = np.stack([rows * 255 // height, columns * 255 // width, (rows + columns) % 256], axis=2).astype(
        np.uint8
    )
    return pixels


def encoded(pixels: NDArray[Any], image_format: str = "PNG", **options: object) -> bytes:
    """`pixels` in an image format of Pillow's."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, image_format, **options)
    return file.getvalue()


def huge_png(side: int = 30_000, *, interlaced: bool = False) -> bytes:
    """A valid one-bit PNG of `side` squared in a few KB: runs of zeros deflate 1,000 to 1, and again in the test."""
    row = bytes(1 + (side + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(64 if interlaced else side)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def png_with_profile(profile_bytes: int) -> bytes:
    """A small PNG with a colour profile of that size."""
    png = encoded(picture())
    profile = b"p\0\0" + zlib.compress(bytes(profile_bytes))
    return png[:33] + _chunk(b"iCCP", profile) + png[33:]


def animated_webp(num_frames: int) -> bytes:
    """A WebP of many frames, put together from one lossless frame of one pixel."""
    still = io.BytesIO()
    Image.new("RGB", (1, 1), "red").save(still, "WEBP", lossless=True)
    bitstream = still.getvalue()[12:]
    frame = bytes(6) + bytes(6) + (40).to_bytes(3, "little") + b"\0" + bitstream
    body = _riff(b"VP8X", b"\x02\0\0\0" + bytes(6)) + _riff(b"ANIM", bytes(6)) + _riff(b"ANMF", frame) * num_frames
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def animated_gif(num_frames: int) -> bytes:
    """A GIF of many frames of one pixel."""
    head = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\0\x0a\0\0\0" + b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\0"
    return head + frame * num_frames + b"\x3b"


def tone(seconds: float, sample_rate_hz: int = 16_000, channels: int = 1) -> NDArray[np.float32]:
    """`[S, C]`: 440 Hz at half the full scale."""
    times = np.arange(int(seconds * sample_rate_hz)) / sample_rate_hz
    return np.repeat((0.5 * np.sin(2 * np.pi * 440 * times)).astype(np.float32)[:, None], channels, axis=1)


def wav(samples: NDArray[np.float32], sample_rate_hz: int = 16_000) -> bytes:
    """A 16-bit WAV file of `samples [S, C]`."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(samples.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(sample_rate_hz)
        writer.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


def float_wav(samples: NDArray[np.float32], sample_rate_hz: int = 16_000) -> bytes:
    """A float WAV file; unlike 16-bit ones it can hold NaN."""
    data = samples.astype("<f4").tobytes()
    channels = samples.shape[1]
    head = struct.pack("<HHIIHH", 3, channels, sample_rate_hz, sample_rate_hz * channels * 4, channels * 4, 32)
    body = _riff(b"fmt ", head) + _riff(b"data", data)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def audio_file(
    samples: NDArray[np.float32],
    sample_rate_hz: int,
    *,
    container: str,
    codec: str,
    on_packet: Callable[[bytes], int] = lambda packet: 1,
) -> bytes:
    """`samples` encoded by FFmpeg. `on_packet` says how often a packet is written."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=sample_rate_hz, layout="mono" if samples.shape[1] == 1 else "stereo")
        assert isinstance(stream, av.AudioStream)
        _mux_audio(output, stream, samples, sample_rate_hz, on_packet)
    return file.getvalue()


def long_opus(seconds: float, *, claimed_seconds: float | None = None, packet_bytes: int = 104) -> bytes:
    """Silence in Ogg Opus, 120 ms a packet, padded so that eight hours are 25 MB. `claimed_seconds` lies about it."""
    file = io.BytesIO()
    # Code 3: six frames of 20 ms without content, then padding.
    packet_data = b"\xfb\x46" + bytes([packet_bytes - 3]) + bytes(packet_bytes - 3)
    with av.open(file, "w", format="ogg") as output:
        stream = output.add_stream("libopus", rate=48_000, layout="mono")
        stream.codec_context.open()
        for index in range(round(seconds / 0.12)):
            packet = av.Packet(packet_data)
            packet.stream, packet.time_base = stream, Fraction(1, 48_000)
            packet.pts = packet.dts = index * 5760
            packet.duration = 5760
            output.mux(packet)
    content = bytearray(file.getvalue())
    if claimed_seconds is not None:
        page = content.rindex(b"OggS")
        content[page + 6 : page + 14] = struct.pack("<q", round(claimed_seconds * 48_000))
        content[page + 22 : page + 26] = bytes(4)
        content[page + 22 : page + 26] = struct.pack("<I", _ogg_crc(content[page:]))
    return bytes(content)


def flac_of_silence(seconds: float, sample_rate_hz: int, channels: int = 8) -> bytes:
    """FLAC of a rate and number of channels that few recordings have: a few bytes for each 100 KB it decodes to."""
    file = io.BytesIO()
    layout = {1: "mono", 2: "stereo", 8: "7.1"}[channels]
    with av.open(file, "w", format="flac") as output:
        stream = output.add_stream("flac", rate=sample_rate_hz, layout=layout)
        block = np.zeros((1, 4608 * channels), np.int16)
        for index in range(round(seconds * sample_rate_hz / 4608)):
            frame = av.AudioFrame.from_ndarray(block, format="s16", layout=layout)
            frame.sample_rate, frame.pts, frame.time_base = sample_rate_hz, index * 4608, Fraction(1, sample_rate_hz)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def video_file(
    num_frames: int,
    *,
    height: int = 48,
    width: int = 64,
    frames_per_second: int = 10,
    container: str = "mp4",
    codec: str = "libx264",
    audio: NDArray[np.float32] | None = None,
    audio_rate_hz: int = 16_000,
    is_live: bool = False,
) -> bytes:
    """A video whose frame `t` is grey of value `8 t`, with AAC audio if `audio [S, C]` is given."""
    file = io.BytesIO()
    with av.open(file, "w", format=container, options={"live": "1"} if is_live else {}) as output:
        stream = output.add_stream(codec, rate=frames_per_second)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        audio_stream = None
        if audio is not None:
            audio_stream = output.add_stream("aac", rate=audio_rate_hz, layout="mono")
        for index in range(num_frames):
            frame = av.VideoFrame.from_ndarray(np.full((height, width, 3), 8 * index % 256, np.uint8), format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, frames_per_second)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
        if audio_stream is not None and audio is not None:
            _mux_audio(output, audio_stream, audio, audio_rate_hz, lambda packet: 1)
    return file.getvalue()


def video_with_long_audio(seconds: float, *, container: str = "mp4", is_live: bool = False) -> bytes:
    """One second of video and `seconds` of silent AAC at 8 kHz. A live Matroska file says nothing of its length."""
    silence: list[bytes] = []

    def keep(packet: bytes) -> int:
        silence.append(packet)
        return 0

    audio_file(np.zeros((16_000, 1), np.float32), 8_000, container="mp4", codec="aac", on_packet=keep)
    file = io.BytesIO()
    with av.open(file, "w", format=container, options={"live": "1"} if is_live else {}) as output:
        video = output.add_stream("libx264", rate=10)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        audio = output.add_stream("aac", rate=8_000, layout="mono")
        audio.codec_context.open()
        for index in range(10):
            frame = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 10)
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        for index in range(round(seconds * 8_000 / 1024)):
            packet = av.Packet(silence[4])
            packet.stream, packet.time_base = audio, Fraction(1, 8_000)
            packet.pts = packet.dts = index * 1024
            packet.duration = 1024
            output.mux(packet)
    return file.getvalue()


def with_sample_duration(mp4: bytes, old: int, new: int) -> bytes:
    """`mp4` whose table of sample durations says `new` where it said `old`: it lies about its length."""
    content = bytearray(mp4)
    position = content.find(b"stts")
    while position >= 0:
        (num_entries,) = struct.unpack_from(">I", content, position + 8)
        for entry in range(num_entries):
            place = position + 12 + 8 * entry + 4
            if struct.unpack_from(">I", content, place)[0] == old:
                struct.pack_into(">I", content, place, new)
        position = content.find(b"stts", position + 4)
    return bytes(content)


def with_rotation(mp4: bytes) -> bytes:
    """`mp4` marked by its camera as to be shown turned clockwise by 90 degrees."""
    content = bytearray(mp4)
    matrix = content.index(b"tkhd") + 4 + 40
    fixed = 1 << 16
    struct.pack_into(">9i", content, matrix, 0, fixed, 0, -fixed, 0, 0, 48 * fixed, 0, 1 << 30)
    return bytes(content)


def mutated(file: bytes, seed: int) -> bytes:
    """`file` with bytes changed, cut out, repeated or cut off, the same for the same seed."""
    source = random.Random(seed)
    content = bytearray(file)
    for _ in range(source.randint(1, 12)):
        position = source.randrange(len(content))
        length = source.randint(1, 32)
        match source.randrange(5):
            case 0:
                content[position] = source.randrange(256)
            case 1:
                content[position : position + length] = source.randbytes(length)
            case 2:
                del content[position : position + length]
            case 3:
                content[position:position] = content[position : position + length]
            case _:
                content[position : position + 4] = source.choice((b"\xff\xff\xff\xff", bytes(4), b"\x7f\xff\xff\xff"))
        if len(content) < 64:
            break
    return bytes(content[: source.randint(16, len(content))] if source.random() < 0.2 else content)


def _mux_audio(
    output: av.container.OutputContainer,
    stream: av.AudioStream,
    samples: NDArray[np.float32],
    sample_rate_hz: int,
    on_packet: Callable[[bytes], int],
) -> None:
    layout = "mono" if samples.shape[1] == 1 else "stereo"
    whole = np.ascontiguousarray(samples.reshape(1, -1))
    frame = av.AudioFrame.from_ndarray(whole, format="flt", layout=layout)
    frame.sample_rate, frame.pts, frame.time_base = sample_rate_hz, 0, Fraction(1, sample_rate_hz)
    for packet in (*stream.encode(frame), *stream.encode(None)):
        for _ in range(on_packet(bytes(packet))):
            output.mux(packet)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _riff(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        crc = value << 24
        for _ in range(8):
            crc = ((crc << 1) ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
        table.append(crc)
    return table


_CRC_TABLE = _crc_table()


def _ogg_crc(page: bytes | bytearray) -> int:
    crc = 0
    for byte in page:
        crc = ((crc << 8) ^ _CRC_TABLE[(crc >> 24) ^ byte]) & 0xFFFFFFFF
    return crc
