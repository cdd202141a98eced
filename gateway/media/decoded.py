# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What reading media gives: NumPy arrays, and the forms a caller may ask for.

Shapes: `H`, `W` pixels, `C` channels, `S` samples, `T` frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ImageForm:
    """`RGB` shows transparent pixels over white; `RGBA` keeps alpha; `L` is grey."""

    mode: Literal["RGB", "RGBA", "L"] = "RGB"


@dataclass(frozen=True)
class AudioForm:
    """Rate wanted (0: that of the file), and whether channels are averaged into one."""

    sample_rate_hz: int = 0
    mix_to_mono: bool = False


@dataclass(frozen=True)
class VideoForm:
    """Frames kept per second (0: all), longest side in pixels (0: as it is), and the audio, if wanted."""

    frames_per_second: float = 0.0
    max_side: int = 0
    with_audio: bool = False
    audio: AudioForm = AudioForm()


@dataclass(frozen=True)
class DecodedImage:
    """`pixels [H, W, 1|3|4] uint8`, upright."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class DecodedAudio:
    """`samples [S, C] float32` around -1..1."""

    samples: NDArray[np.float32]
    sample_rate_hz: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate_hz


@dataclass(frozen=True)
class DecodedVideo:
    """`frames [T, H, W, 3] uint8`, `times_s [T] float32` from the start of the video, and its audio if asked for."""

    frames: NDArray[np.uint8]
    times_s: NDArray[np.float32]
    audio: DecodedAudio | None
