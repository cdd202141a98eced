# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The way in for media: a client's value becomes arrays, or an `InvalidRequest` that names the field.

Routes hand over what the client wrote and what they want back. What is behind `MediaReader` (fetching, base64, decoder
processes) is nobody else's business, and no client string goes further than here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tritone.errors import Internal, InvalidRequest
from tritone.gateway.media.decoded import (
    AudioForm,
    DecodedAudio,
    DecodedImage,
    DecodedVideo,
    ImageForm,
    VideoForm,
)
from tritone.gateway.media.decoder_pool import DecoderPool
from tritone.gateway.media.decoder_process import Reply
from tritone.gateway.media.faults import Fault, MediaFault, invalid_request
from tritone.gateway.media.fetch import Fetcher
from tritone.gateway.media.formats import MediaKind, sniff
from tritone.gateway.media.limits import DecoderSettings, FetchSettings, MediaLimits
from tritone.gateway.media.sources import MediaSource, SourceForm, bytes_of, form_of

# What OpenAI's `image_url` and its like take, and what `input_audio.data` and its like take.
URL_FORMS: frozenset[SourceForm] = frozenset({"data_url", "url"})
BASE64_FORMS: frozenset[SourceForm] = frozenset({"base64"})
UPLOAD_FORMS: frozenset[SourceForm] = frozenset({"upload"})
ANY_FORM: frozenset[SourceForm] = URL_FORMS | BASE64_FORMS | UPLOAD_FORMS

_MAX_REPLY_RATE_HZ = 1_000_000
_IMAGE_FORM, _AUDIO_FORM, _VIDEO_FORM = ImageForm(), AudioForm(), VideoForm()


class MediaReader:
    """Reads media fields. One per gateway; `close` it with the application."""

    def __init__(
        self,
        *,
        limits: MediaLimits | None = None,
        fetch: FetchSettings | None = None,
        decoder: DecoderSettings | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        self._limits = limits or MediaLimits()
        self._fetcher = fetcher or Fetcher(fetch or FetchSettings())
        self._pool = DecoderPool(decoder or DecoderSettings())

    @property
    def pool(self) -> DecoderPool:
        return self._pool

    async def read_image(
        self,
        source: MediaSource,
        *,
        field: str,
        form: ImageForm = _IMAGE_FORM,
        forms: Collection[SourceForm] = ANY_FORM,
        limits: MediaLimits | None = None,
    ) -> DecodedImage:
        """One still image."""
        limits = limits or self._limits
        max_bytes = limits.max_image_pixels * 4
        reply = await self._read(source, "image", field, asdict(form), forms, limits, max_bytes)
        pixels = _tensor(reply, "pixels", np.uint8, rank=3)
        if pixels.shape[2] != {"RGB": 3, "RGBA": 4, "L": 1}[form.mode]:
            raise _broken_reply()
        return DecodedImage(pixels)

    async def read_images(
        self,
        sources: Sequence[MediaSource],
        *,
        field: str,
        form: ImageForm = _IMAGE_FORM,
        forms: Collection[SourceForm] = ANY_FORM,
        limits: MediaLimits | None = None,
    ) -> list[DecodedImage]:
        """A list of still images, bounded in number and in pixels taken together."""
        limits = limits or self._limits
        # Before anything is looked at: the list may have a million items.
        if len(sources) > limits.max_images:
            raise invalid_request(Fault.TOO_MANY_ITEMS, field=field, kind="image", limits=limits)
        images: list[DecodedImage] = []
        num_pixels = 0
        for position, source in enumerate(sources):
            images.append(
                await self.read_image(source, field=f"{field}[{position}]", form=form, forms=forms, limits=limits)
            )
            num_pixels += images[-1].pixels.shape[0] * images[-1].pixels.shape[1]
            if num_pixels > limits.max_images_pixels:
                raise InvalidRequest(
                    f"The images of `{field}` have more than {limits.max_images_pixels} pixels together.", field=field
                )
        return images

    async def read_audio(
        self,
        source: MediaSource,
        *,
        field: str,
        form: AudioForm = _AUDIO_FORM,
        forms: Collection[SourceForm] = ANY_FORM,
        limits: MediaLimits | None = None,
    ) -> DecodedAudio:
        """The first audio track of an audio or video file."""
        limits = limits or self._limits
        max_bytes = limits.max_audio_decoded_bytes
        wanted = {"sample_rate_hz": form.sample_rate_hz}
        reply = await self._read(source, "audio", field, wanted, forms, limits, max_bytes)
        return await self._audio(reply, form, "audio", field, limits)

    async def read_video(
        self,
        source: MediaSource,
        *,
        field: str,
        form: VideoForm = _VIDEO_FORM,
        forms: Collection[SourceForm] = ANY_FORM,
        limits: MediaLimits | None = None,
    ) -> DecodedVideo:
        """The first video track of a file, and its audio if `form` says so and there is any."""
        limits = limits or self._limits
        wanted = {
            "frames_per_second": form.frames_per_second,
            "max_side": form.max_side,
            "with_audio": form.with_audio,
            "sample_rate_hz": form.audio.sample_rate_hz,
        }
        max_bytes = limits.max_video_decoded_bytes + limits.max_audio_decoded_bytes + 4 * limits.max_video_frames
        reply = await self._read(source, "video", field, wanted, forms, limits, max_bytes)
        frames = _tensor(reply, "frames", np.uint8, rank=4)
        times_s = _tensor(reply, "times_s", np.float32, rank=1)
        if len(frames) != len(times_s) or frames.shape[3] != 3:
            raise _broken_reply()
        audio: DecodedAudio | None = None
        if "samples" in reply.tensors:
            audio = await self._audio(reply, form.audio, "video", field, limits)
        return DecodedVideo(frames, times_s, audio)

    async def close(self) -> None:
        self._fetcher.close()
        await self._pool.close()

    @staticmethod
    async def _audio(reply: Reply, form: AudioForm, kind: MediaKind, field: str, limits: MediaLimits) -> DecodedAudio:
        samples = _tensor(reply, "samples", np.float32, rank=2)
        sample_rate_hz = reply.header.get("sample_rate_hz")
        if not isinstance(sample_rate_hz, int) or not 0 < sample_rate_hz <= _MAX_REPLY_RATE_HZ:
            raise _broken_reply()
        # A float file can hold NaN, and one NaN spoils a whole batch.
        if not await asyncio.to_thread(_is_finite, samples):
            raise invalid_request(Fault.UNDECODABLE, field=field, kind=kind, limits=limits)
        if form.mix_to_mono and samples.shape[1] > 1:
            # FFmpeg's own mix is 3 dB louder and clips.
            samples = await asyncio.to_thread(samples.mean, axis=1, keepdims=True)
        return DecodedAudio(samples, sample_rate_hz)

    async def _read(
        self,
        source: MediaSource,
        kind: MediaKind,
        field: str,
        form: Mapping[str, Any],
        forms: Collection[SourceForm],
        limits: MediaLimits,
        max_decoded_bytes: int,
    ) -> Reply:
        try:
            content = await self._content(source, kind, forms, limits)
            media_format = sniff(bytes(content[:16]))
            if media_format is None or kind not in media_format.kinds:
                raise MediaFault(Fault.NOT_MEDIA)
            job = {"kind": kind, "format": media_format.name, "form": dict(form), "limits": asdict(limits)}
            return await self._pool.decode(job, content, max_bytes=max_decoded_bytes)
        except MediaFault as refused:
            raise invalid_request(refused.fault, field=field, kind=kind, limits=limits) from None

    async def _content(
        self, source: MediaSource, kind: MediaKind, forms: Collection[SourceForm], limits: MediaLimits
    ) -> bytes | bytearray | memoryview:
        max_bytes = {
            "image": limits.max_image_bytes,
            "audio": limits.max_audio_bytes,
            "video": limits.max_video_bytes,
        }[kind]
        form = form_of(source)
        if form not in forms:
            raise MediaFault(Fault.WRONG_FORM)
        content: bytes | bytearray | memoryview
        if form == "url" and isinstance(source, str):
            content = await self._fetcher.fetch(source, kind=kind, max_bytes=max_bytes)
        else:
            content = await bytes_of(source, kind=kind, max_bytes=max_bytes)
        if not len(content):
            raise MediaFault(Fault.EMPTY)
        return content


def _is_finite(samples: NDArray[np.float32]) -> bool:
    # Not isfinite().all(): that makes a second array.
    return bool(np.isfinite(samples.min()) and np.isfinite(samples.max()))


def _tensor(reply: Reply, name: str, dtype: type[Any], *, rank: int) -> NDArray[Any]:
    tensor = reply.tensors.get(name)
    if tensor is None or tensor.dtype != dtype or tensor.ndim != rank or 0 in tensor.shape:
        raise _broken_reply()
    return tensor


def _broken_reply() -> Internal:
    return Internal("The gateway failed to decode media.")
