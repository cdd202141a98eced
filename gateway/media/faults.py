# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with media, and the words for it. No message holds anything of the input or of a library."""

from __future__ import annotations

from enum import StrEnum

from tritone.errors import InvalidRequest
from tritone.gateway.media.formats import MediaKind
from tritone.gateway.media.limits import MediaLimits


class Fault(StrEnum):
    """The closed set of reasons; the value is what crosses the decoder's pipe."""

    NOT_MEDIA = "not_media"
    BAD_BASE64 = "bad_base64"
    BAD_DATA_URL = "bad_data_url"
    WRONG_FORM = "wrong_form"
    EMPTY = "empty"
    TOO_MANY_BYTES = "too_many_bytes"
    TOO_MANY_ITEMS = "too_many_items"
    UNDECODABLE = "undecodable"
    TOO_COSTLY = "too_costly"
    TOO_MANY_PIXELS = "too_many_pixels"
    ANIMATED = "animated"
    BIG_PROFILE = "big_profile"
    NO_AUDIO = "no_audio"
    NO_VIDEO = "no_video"
    BAD_RATE = "bad_rate"
    TOO_MANY_CHANNELS = "too_many_channels"
    AUDIO_TOO_LONG = "audio_too_long"
    AUDIO_TOO_LARGE = "audio_too_large"
    VIDEO_TOO_LONG = "video_too_long"
    VIDEO_TOO_LARGE = "video_too_large"
    TOO_MANY_FRAMES = "too_many_frames"
    FETCHING_OFF = "fetching_off"
    URL_REFUSED = "url_refused"
    FETCH_FAILED = "fetch_failed"
    FETCH_TIMEOUT = "fetch_timeout"


class MediaFault(Exception):
    """Media that is refused; becomes an `InvalidRequest` where the field is known."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


def invalid_request(fault: Fault, *, field: str, kind: MediaKind, limits: MediaLimits) -> InvalidRequest:
    """The error a client sees."""
    max_bytes = {"image": limits.max_image_bytes, "audio": limits.max_audio_bytes, "video": limits.max_video_bytes}
    pixels = limits.max_frame_pixels if kind == "video" else limits.max_image_pixels
    text = {
        Fault.NOT_MEDIA: f"is not {kind} in a format this server reads.",
        Fault.BAD_BASE64: "is not valid base64.",
        Fault.BAD_DATA_URL: f"must be a data URL of the form data:{kind}/<format>;base64,<data>.",
        Fault.WRONG_FORM: f"does not hold {kind} in a form this field takes.",
        Fault.EMPTY: "is empty.",
        Fault.TOO_MANY_BYTES: f"is larger than {max_bytes[kind]} bytes.",
        Fault.TOO_MANY_ITEMS: f"has more than {limits.max_images} items.",
        Fault.UNDECODABLE: f"cannot be decoded as {kind}.",
        Fault.TOO_COSTLY: "takes too much time or memory to decode.",
        Fault.TOO_MANY_PIXELS: f"has more than {pixels} pixels.",
        Fault.ANIMATED: "has more than one frame; send a still image.",
        Fault.BIG_PROFILE: f"has a colour profile of more than {limits.max_icc_bytes} bytes.",
        Fault.NO_AUDIO: "has no audio track this server decodes.",
        Fault.NO_VIDEO: "has no video track this server decodes.",
        Fault.BAD_RATE: (
            f"has a sample rate outside {limits.min_sample_rate_hz}..{limits.max_sample_rate_hz} Hz, "
            "or one that changes."
        ),
        Fault.TOO_MANY_CHANNELS: f"has more than {limits.max_channels} audio channels.",
        Fault.AUDIO_TOO_LONG: f"has more than {_audio_seconds(kind, limits):g} seconds of audio.",
        Fault.AUDIO_TOO_LARGE: f"has audio of more than {limits.max_audio_decoded_bytes} bytes once decoded.",
        Fault.VIDEO_TOO_LONG: f"is longer than {limits.max_video_seconds:g} seconds.",
        Fault.VIDEO_TOO_LARGE: f"has frames of more than {limits.max_video_decoded_bytes} bytes once decoded.",
        Fault.TOO_MANY_FRAMES: f"has more than {limits.max_video_frames} frames.",
        Fault.FETCHING_OFF: "is a URL, and this server does not fetch media; send a data URL.",
        Fault.URL_REFUSED: "is a URL this server may not fetch.",
        Fault.FETCH_FAILED: f"is a URL that did not answer with {kind} this server reads.",
        Fault.FETCH_TIMEOUT: "is a URL that did not answer in time.",
    }[fault]
    return InvalidRequest(f"`{field}` {text}", field=field)


def _audio_seconds(kind: MediaKind, limits: MediaLimits) -> float:
    return limits.max_video_seconds if kind == "video" else limits.max_audio_seconds
