# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Images, inside a decoder process: header first, then pixels, upright and in the mode that was asked for.

Knows nothing of processes or pipes. Colour profiles are bounded and ignored.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

from PIL import BmpImagePlugin, GifImagePlugin, Image, ImageFile, ImageOps, JpegImagePlugin, PngImagePlugin
from PIL import WebPImagePlugin as WebP

from tritone.gateway.media.faults import Fault, MediaFault
from tritone.gateway.media.limits import MediaLimits

# Opened by class: Pillow's own choice would load its other forty readers.
_READERS: dict[str, type[ImageFile.ImageFile]] = {
    "png": PngImagePlugin.PngImageFile,
    "jpeg": JpegImagePlugin.JpegImageFile,
    "gif": GifImagePlugin.GifImageFile,
    "webp": WebP.WebPImageFile,
    "bmp": BmpImagePlugin.BmpImageFile,
}
_CHANNELS = {"RGB": 3, "RGBA": 4, "L": 1}
# Converted and sent a strip at a time, so no second copy of a large image exists.
_STRIP_PIXELS = 1 << 20


class ImageBlocks(NamedTuple):
    """A decoded image as rows of bytes `[H, W, C]`."""

    height: int
    width: int
    channels: int
    blocks: Iterator[bytes]


def decode_image(content: io.BytesIO, *, format_name: str, mode: str, limits: MediaLimits) -> ImageBlocks:
    """Decode one still image."""
    PngImagePlugin.MAX_TEXT_CHUNK = limits.max_icc_bytes
    PngImagePlugin.MAX_TEXT_MEMORY = 4 * limits.max_icc_bytes
    image: Image.Image = _READERS[format_name](content)
    width, height = image.size
    if width * height > limits.max_image_pixels:
        raise MediaFault(Fault.TOO_MANY_PIXELS)
    if getattr(image, "is_animated", False):
        raise MediaFault(Fault.ANIMATED)
    if len(image.info.get("icc_profile") or b"") > limits.max_icc_bytes:
        raise MediaFault(Fault.BIG_PROFILE)
    image.load()
    image = _upright(image)
    width, height = image.size
    return ImageBlocks(height, width, _CHANNELS[mode], _strips(image, mode))


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        # A broken note on orientation does not make the picture unreadable.
        return image


def _strips(image: Image.Image, mode: str) -> Iterator[bytes]:
    width, height = image.size
    rows = max(1, _STRIP_PIXELS // width)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows)))
        yield _converted(strip, mode).tobytes()


def _converted(strip: Image.Image, mode: str) -> Image.Image:
    if strip.mode.startswith("I;16"):
        # 16-bit grey, of which the upper byte is kept.
        strip = strip.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if mode == "RGBA":
        return strip.convert("RGBA")
    if strip.has_transparency_data:
        strip = strip.convert("RGBA")
        strip = Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip)
    return strip.convert(mode)
