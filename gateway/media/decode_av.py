# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Audio and video, inside a decoder process: FFmpeg with one demuxer, a short list of decoders, and memory as its only
input. Seconds, frames and bytes are counted while decoding, whatever the file says of itself.

Knows nothing of processes or pipes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import av
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream
from PIL import Image

from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.limits import MediaLimits

AUDIO_DECODERS = frozenset(
    {"aac", "alac", "flac", "mp3", "mp3float", "opus", "libopus", "vorbis"}
    | {"pcm_alaw", "pcm_mulaw", "pcm_f32le", "pcm_f64le", "pcm_s16be", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_u8"}
)
VIDEO_DECODERS = frozenset({"h264", "hevc", "libdav1d", "vp8", "vp9"})
# Encoders leave a broken packet at a cut now and then; players skip it, and so do we, this often.
_MAX_BAD_PACKETS = 16
_MAX_STREAMS = 16
_FLOAT_BYTES = 4


class AudioBlocks(NamedTuple):
    """`[S, C] float32`, as bytes."""

    num_samples: int
    num_channels: int
    sample_rate_hz: int
    content: bytearray


class VideoBlocks(NamedTuple):
    """`[T, H, W, 3] uint8` as bytes, the time of each frame, and the audio if it was asked for."""

    height: int
    width: int
    times_s: list[float]
    content: bytearray
    audio: AudioBlocks | None


def decode_audio(content: io.BytesIO, *, format_name: str, sample_rate_hz: int, limits: MediaLimits) -> AudioBlocks:
    """The first audio track of a file, with all its channels, at `sample_rate_hz` or, if that is 0, its own rate."""
    with _open(content, format_name, limits) as container:
        stream = _audio_stream(container)
        if stream is None:
            raise MediaFault(Fault.NO_AUDIO)
        _check_audio_head(stream, limits)
        if _declared_seconds(container, stream) > limits.max_audio_seconds:
            raise MediaFault(Fault.AUDIO_TOO_LONG)
        collector = _AudioCollector(sample_rate_hz, limits, max_seconds=limits.max_audio_seconds)
        decoding = _Decoding()
        for packet in container.demux(stream):
            for frame in decoding.frames(packet):
                collector.add(frame)
        return collector.finish()


def decode_video(
    content: io.BytesIO,
    *,
    format_name: str,
    frames_per_second: float,
    max_side: int,
    with_audio: bool,
    sample_rate_hz: int,
    limits: MediaLimits,
) -> VideoBlocks:
    """The first video track of a file. Its audio track is held to the same time whether it is wanted or not."""
    with _open(content, format_name, limits) as container:
        stream = next((s for s in container.streams.video if s.codec_context.name in VIDEO_DECODERS), None)
        if stream is None:
            raise MediaFault(Fault.NO_VIDEO)
        _check_video_head(container, stream, limits)
        frames = _FrameCollector(frames_per_second, max_side, limits)
        audio_stream = _audio_stream(container)
        audio: _AudioCollector | None = None
        tracks: list[VideoStream | AudioStream] = [stream]
        if audio_stream is not None:
            tracks.append(audio_stream)
            _check_audio_head(audio_stream, limits)
            if _declared_seconds(container, audio_stream) > limits.max_video_seconds:
                raise MediaFault(Fault.AUDIO_TOO_LONG)
            if with_audio:
                audio = _AudioCollector(sample_rate_hz, limits, max_seconds=limits.max_video_seconds)
        decoding = _Decoding()
        audio_decoding = _Decoding()
        for packet in container.demux(*tracks):
            if packet.stream.type == "video":
                for frame in decoding.frames(packet):
                    frames.add(frame)
            elif audio is not None:
                for frame in audio_decoding.frames(packet):
                    audio.add(frame)
            elif _packet_seconds(packet) > limits.max_video_seconds:
                raise MediaFault(Fault.AUDIO_TOO_LONG)
        return frames.finish(audio.finish() if audio is not None else None)


def _open(content: io.BytesIO, format_name: str, limits: MediaLimits) -> InputContainer:
    decoders = ",".join(sorted(AUDIO_DECODERS | VIDEO_DECODERS))
    return av.open(
        content,
        mode="r",
        format=format_name,
        metadata_errors="ignore",
        io_open=_refuse_to_open,
        container_options={
            "format_whitelist": format_name,
            # The probe of the streams decodes too.
            "codec_whitelist": decoders,
            # No protocol has this name: whatever a file refers to, nothing is opened.
            "protocol_whitelist": "none",
            "max_streams": str(_MAX_STREAMS),
            "probesize": str(4 << 20),
            "analyzeduration": "5000000",
        },
    )


def _refuse_to_open(url: str, flags: int, options: dict[str, Any]) -> Any:
    raise PermissionError("media files may not refer to others")


class _Decoding:
    """Decodes packets of one track and skips a few broken ones."""

    def __init__(self) -> None:
        self._num_bad = 0

    def frames(self, packet: Packet[Any]) -> Iterator[Any]:
        try:
            yield from packet.decode()
        except av.error.EOFError:
            return
        except av.error.InvalidDataError:
            self._num_bad += 1
            if self._num_bad > _MAX_BAD_PACKETS:
                raise MediaFault(Fault.UNDECODABLE) from None


class _AudioCollector:
    """Counts and keeps decoded audio."""

    def __init__(self, sample_rate_hz: int, limits: MediaLimits, *, max_seconds: float) -> None:
        self._wanted_rate_hz = sample_rate_hz
        self._limits = limits
        self._max_seconds = max_seconds
        self._num_samples = 0
        self._decoded_bytes = 0
        self._resampler: AudioResampler | None = None
        self._source = (0, 0)
        self._rate_hz = 0
        self._channels = 0
        self._content = bytearray()

    def add(self, frame: AudioFrame) -> None:
        source = (frame.sample_rate, frame.layout.nb_channels)
        _check_audio_shape(*source, self._limits)
        if self._resampler is None:
            self._start(frame)
            self._source = source
        elif source != self._source:
            raise MediaFault(Fault.BAD_RATE)
        self._num_samples += frame.samples
        if self._num_samples > self._max_seconds * frame.sample_rate:
            raise MediaFault(Fault.AUDIO_TOO_LONG)
        self._decoded_bytes += frame.samples * source[1] * _FLOAT_BYTES
        if self._decoded_bytes > self._limits.max_audio_decoded_bytes:
            raise MediaFault(Fault.AUDIO_TOO_LARGE)
        self._resample(frame)

    def finish(self) -> AudioBlocks:
        if self._resampler is not None:
            self._resample(None)
        num_samples = len(self._content) // (_FLOAT_BYTES * max(1, self._channels))
        if num_samples == 0:
            raise MediaFault(Fault.UNDECODABLE)
        return AudioBlocks(num_samples, self._channels, self._rate_hz, self._content)

    def _start(self, frame: AudioFrame) -> None:
        self._rate_hz = self._wanted_rate_hz or frame.sample_rate
        self._channels = frame.layout.nb_channels
        self._resampler = AudioResampler(format="flt", layout=frame.layout, rate=self._rate_hz)

    def _resample(self, frame: AudioFrame | None) -> None:
        assert self._resampler is not None
        for resampled in self._resampler.resample(frame):
            num_bytes = resampled.samples * self._channels * _FLOAT_BYTES
            if len(self._content) + num_bytes > self._limits.max_audio_decoded_bytes:
                raise MediaFault(Fault.AUDIO_TOO_LARGE)
            self._content += memoryview(resampled.planes[0])[:num_bytes]


class _FrameCollector:
    """Counts decoded frames and keeps those that the wanted rate asks for."""

    def __init__(self, frames_per_second: float, max_side: int, limits: MediaLimits) -> None:
        self._interval_s = 1 / frames_per_second if frames_per_second else 0.0
        self._max_side = max_side
        self._limits = limits
        self._reformatter = VideoReformatter()
        self._num_decoded = 0
        self._start_s: float | None = None
        self._next_s = 0.0
        self._size = (0, 0)
        self._rotation = 0
        self._times_s: list[float] = []
        self._content = bytearray()

    def add(self, frame: VideoFrame) -> None:
        self._num_decoded += 1
        if self._num_decoded > self._limits.max_video_frames:
            raise MediaFault(Fault.TOO_MANY_FRAMES)
        if frame.width * frame.height > self._limits.max_frame_pixels:
            raise MediaFault(Fault.TOO_MANY_PIXELS)
        if frame.pts is None or frame.time_base is None:
            return
        time_s = float(frame.pts * frame.time_base)
        if self._start_s is None:
            self._start_s = time_s
        time_s -= self._start_s
        if time_s > self._limits.max_video_seconds:
            raise MediaFault(Fault.VIDEO_TOO_LONG)
        # Half a millisecond: time stamps are rounded to the units of the container.
        if time_s < self._next_s - 0.0005:
            return
        while self._interval_s and self._next_s <= time_s + 0.0005:
            self._next_s += self._interval_s
        self._keep(frame, time_s)

    def finish(self, audio: AudioBlocks | None) -> VideoBlocks:
        if not self._times_s:
            raise MediaFault(Fault.UNDECODABLE)
        width, height = self._size if self._rotation % 180 == 0 else reversed(self._size)
        return VideoBlocks(height, width, self._times_s, self._content, audio)

    def _keep(self, frame: VideoFrame, time_s: float) -> None:
        if not self._times_s:
            self._size = self._scaled(frame.width, frame.height)
            self._rotation = frame.rotation if frame.rotation % 90 == 0 else 0
        width, height = self._size
        if len(self._content) + width * height * 3 > self._limits.max_video_decoded_bytes:
            raise MediaFault(Fault.VIDEO_TOO_LARGE)
        # More threads than this one are not allowed here.
        rgb = self._reformatter.reformat(frame, width=width, height=height, format="rgb24", threads=1)
        plane = rgb.planes[0]
        image = Image.frombuffer("RGB", (width, height), bytes(plane), "raw", "RGB", plane.line_size, 1)
        if self._rotation:
            image = image.rotate(self._rotation, expand=True)
        self._content += image.tobytes()
        self._times_s.append(time_s)

    def _scaled(self, width: int, height: int) -> tuple[int, int]:
        longest = max(width, height)
        if not self._max_side or longest <= self._max_side:
            return width, height
        return max(1, width * self._max_side // longest), max(1, height * self._max_side // longest)


def _audio_stream(container: InputContainer) -> AudioStream | None:
    return next((s for s in container.streams.audio if s.codec_context.name in AUDIO_DECODERS), None)


def _check_audio_head(stream: AudioStream, limits: MediaLimits) -> None:
    context = stream.codec_context
    context.thread_count = 1
    _check_audio_shape(context.sample_rate or 0, context.layout.nb_channels, limits)


def _check_audio_shape(sample_rate_hz: int, num_channels: int, limits: MediaLimits) -> None:
    if not limits.min_sample_rate_hz <= sample_rate_hz <= limits.max_sample_rate_hz:
        raise MediaFault(Fault.BAD_RATE)
    if num_channels > limits.max_channels:
        raise MediaFault(Fault.TOO_MANY_CHANNELS)


def _check_video_head(container: InputContainer, stream: VideoStream, limits: MediaLimits) -> None:
    context = stream.codec_context
    context.thread_count = 1
    # A stream may grow its frames later; the decoder then refuses before it allocates.
    context.options = {"max_pixels": str(limits.max_frame_pixels)}
    if context.width * context.height > limits.max_frame_pixels:
        raise MediaFault(Fault.TOO_MANY_PIXELS)
    if stream.frames > limits.max_video_frames:
        raise MediaFault(Fault.TOO_MANY_FRAMES)
    if _declared_seconds(container, stream) > limits.max_video_seconds:
        raise MediaFault(Fault.VIDEO_TOO_LONG)


def _declared_seconds(container: InputContainer, stream: AudioStream | VideoStream) -> float:
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return (container.duration or 0) / 1_000_000


def _packet_seconds(packet: Packet[Any]) -> float:
    if packet.pts is None or packet.time_base is None:
        return 0.0
    return float(packet.pts * packet.time_base)
