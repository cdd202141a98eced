# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds and settings of media. Pure data; who reads the environment is not known here."""

from __future__ import annotations

from dataclasses import dataclass, field

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class MediaLimits:
    """What one media field may hold. `max_*_bytes` are sizes as sent, after base64; decoded sizes say so."""

    max_image_bytes: int = 20 * MEBIBYTE
    max_image_pixels: int = 50_000_000
    max_icc_bytes: int = MEBIBYTE
    # Images of one list, for instance the frames of a video sent one by one.
    max_images: int = 64
    max_images_pixels: int = 100_000_000

    max_audio_bytes: int = 25 * MEBIBYTE
    max_audio_seconds: float = 600.0
    # Counted as float32 at the rate and channels of the file, and again after resampling.
    max_audio_decoded_bytes: int = 256 * MEBIBYTE
    min_sample_rate_hz: int = 4_000
    max_sample_rate_hz: int = 192_000
    max_channels: int = 8

    max_video_bytes: int = 48 * MEBIBYTE
    max_video_seconds: float = 600.0
    # Decoded, kept or not.
    max_video_frames: int = 36_000
    max_frame_pixels: int = 4096 * 2304
    # Frames that are kept, as RGB.
    max_video_decoded_bytes: int = 256 * MEBIBYTE


@dataclass(frozen=True)
class FetchSettings:
    """Remote media. Fetching is off while `domains` is empty.

    A domain is `host`, `*.host` (its subdomains), either with `:port`, or `*` (every public host). Without a port
    only the scheme's own is allowed.
    """

    domains: tuple[str, ...] = ()
    allow_http: bool = False
    timeout_s: float = 10.0
    max_redirects: int = 3
    max_concurrent: int = 8
    # Empty: the system's certificates.
    ca_file: str = ""


@dataclass(frozen=True)
class DecoderSettings:
    """The decoder processes."""

    num_workers: int = 2
    max_waiting: int = 64
    # Files of jobs that wait or run, taken together: what a burst of uploads may hold in memory.
    max_held_bytes: int = 512 * MEBIBYTE
    start_timeout_s: float = 30.0
    job_timeout_s: float = 30.0
    job_cpu_s: int = 30
    # Address space on top of what an idle worker has.
    max_memory_bytes: int = 1024 * MEBIBYTE
    # Forms of isolation a worker must have reached before it may decode: see `sandbox.Isolation`.
    required: frozenset[str] = field(default=frozenset({"no_new_privileges"}))
