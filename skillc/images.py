"""Images: format and dimensions from the first bytes, scaling down, and the tokens that providers charge for them.

The token rules are those that the providers publish. An estimate is for `plan`; a bound is what the ledger reserves.
Scaling is Pillow's (the extra `images`), imported at the first image that needs it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from math import ceil, sqrt
from typing import Literal

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

MEDIA_TYPES = {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
"""The formats that all providers read, with their media types."""

LARGEST_BYTES = 20_000_000
"""The most bytes of one image that any of the large providers accepts within a request; some accept fewer."""

_DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,", re.ASCII)
# The dimensions of most images are within so many bytes.
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """Format, and width and height in pixels."""

    format: str
    width: int
    height: int


def image_info(data: bytes) -> ImageInfo | None:
    """Read format and dimensions of a PNG, JPEG, GIF or WebP image; None for anything else or a damaged header."""
    for name, read in _READERS.items():
        try:
            size = read(data)
        except IndexError:
            size = None
        if size is not None and min(size) > 0:
            return ImageInfo(name, *size)
    return None


def _number(data: bytes, at: int, size: int, order: Literal["big", "little"]) -> int:
    part = data[at : at + size]
    if len(part) < size:
        raise IndexError(at)
    return int.from_bytes(part, order)


def _png(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    return _number(data, 16, 4, "big"), _number(data, 20, 4, "big")


def _gif(data: bytes) -> tuple[int, int] | None:
    if data[:6] not in (b"GIF87a", b"GIF89a"):
        return None
    return _number(data, 6, 2, "little"), _number(data, 8, 2, "little")


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Skip the segments before the frame header, which contains the dimensions."""
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _number(data, at + 7, 2, "big"), _number(data, at + 5, 2, "big")
        else:
            at += 2 + _number(data, at + 2, 2, "big")
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        return _number(data, 24, 3, "little") + 1, _number(data, 27, 3, "little") + 1
    if kind == b"VP8L":
        bits = _number(data, 21, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _number(data, 26, 2, "little") & 0x3FFF, _number(data, 28, 2, "little") & 0x3FFF
    return None


_READERS: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "png": _png,
    "jpeg": _jpeg,
    "gif": _gif,
    "webp": _webp,
}


# ---- data URIs ------------------------------------------------------------------------------------


def data_uri(data: bytes, format_: str) -> str:
    """Return an image as a data URI."""
    return f"data:{MEDIA_TYPES[format_]};base64,{base64.b64encode(data).decode()}"


def info_of_uri(uri: str) -> ImageInfo | None:
    """Read the dimensions of a data URI; None if it is no image in base64."""
    start = _DATA_URI.match(uri)
    if start is None:
        return None
    try:
        head = base64.b64decode(uri[start.end() : start.end() + _HEAD_BYTES * 4 // 3 // 4 * 4])
        return image_info(head) or image_info(base64.b64decode(uri[start.end() :]))
    except ValueError:
        return None


# ---- scaling --------------------------------------------------------------------------------------

_JPEG_QUALITY = 90


def scaled_size(width: int, height: int, most: int | None) -> tuple[int, int]:
    """Return the dimensions of an image whose longer side has at most `most` pixels; None leaves them as they are."""
    longer = max(width, height)
    if most is None or longer <= most:
        return width, height
    return max(1, round(width * most / longer)), max(1, round(height * most / longer))


def require_pillow(what: str) -> None:
    """Check that images can be scaled down; `what` begins the message.

    Raises:
        SkillcError: Pillow is not installed.
    """
    if find_spec("PIL") is None:
        raise SkillcError(
            f"{what}: Pillow, which scales images down, is not installed", hint='`pip install "skillc[images]"`'
        )


def scale_down(data: bytes, info: ImageInfo, most: int) -> tuple[bytes, str]:
    """Return content and format of an image whose longer side has at most `most` pixels.

    An image within the limit is returned unchanged. A larger one becomes a PNG, or stays a JPEG, turned as its EXIF
    data require and without them; of an animation the first frame is kept.

    Raises:
        ValueError: it cannot be decoded.
    """
    if scaled_size(info.width, info.height, most) == (info.width, info.height):
        return data, info.format
    from PIL import Image, ImageOps

    try:
        with Image.open(BytesIO(data)) as opened:
            upright = ImageOps.exif_transpose(opened)
            image = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
        small = image.resize(scaled_size(*image.size, most), Image.Resampling.LANCZOS)
        written = BytesIO()
        if info.format == "jpeg":
            small.save(written, "JPEG", quality=_JPEG_QUALITY)
        else:
            small.save(written, "PNG")
    except (OSError, SyntaxError, EOFError, ValueError, Image.DecompressionBombError) as problem:
        raise ValueError(" ".join(str(problem).split())) from problem
    return written.getvalue(), "jpeg" if info.format == "jpeg" else "png"


# ---- tokens ---------------------------------------------------------------------------------------


def image_tokens(model: str, width: int, height: int) -> int:
    """Estimate the tokens of an image of so many pixels in a prompt, by the rule of the model's provider.

    A model (`provider/name`) of an unknown provider counts one token for 28 x 28 pixels, at most 16,384.
    """
    for pattern, rule in _RULES:
        if pattern.search(model):
            return rule(width, height)
    return _by_patches(width, height, side=28, most=_MOST_PATCHES)


def most_image_tokens(model: str, width: int, height: int) -> int:
    """Bound the tokens of an image.

    Newer models of a provider read images at higher resolutions, so the bound is at least twice the estimate, and a
    token for 28 x 28 pixels up to 5,000. Some models charge a fixed amount, so it has a least value.
    """
    known = any(pattern.search(model) for pattern, _ in _RULES)
    patches = _by_patches(width, height, side=28, most=_MOST_NEWER)
    return max(2 * image_tokens(model, width, height), patches, _LEAST_KNOWN if known else _LEAST_UNKNOWN)


# The most tokens of any size of image: a fixed amount with some models, tiles of a fixed size with others.
_LEAST_KNOWN, _LEAST_UNKNOWN = 1_500, 8_192
_MOST_PATCHES, _MOST_NEWER = 16_384, 5_000


def _by_tiles(base: int, tile: int) -> Callable[[int, int], int]:
    """OpenAI: within 2,048 x 2,048 pixels, the shorter side at most 768, then tiles of 512 x 512."""

    def tokens(width: int, height: int) -> int:
        scale = min(1.0, 2048 / max(width, height))
        scale *= min(1.0, 768 / (min(width, height) * scale))
        return base + tile * ceil(width * scale / 512) * ceil(height * scale / 512)

    return tokens


def _by_patches(width: int, height: int, *, side: int, most: int) -> int:
    """Patches of `side` x `side` pixels; a larger image is scaled down to `most` patches."""
    patches = ceil(width / side) * ceil(height / side)
    return min(patches, most)


def _multiplied(factor: float) -> Callable[[int, int], int]:
    """OpenAI: patches of 32 x 32 pixels, at most 1,536, each a number of tokens."""
    return lambda width, height: ceil(_by_patches(width, height, side=32, most=1_536) * factor)


def _anthropic(width: int, height: int) -> int:
    """A token for 750 pixels of an image within 1,568 pixels a side and 1.2 megapixels."""
    scale = min(1.0, 1568 / max(width, height), sqrt(1_200_000 / (width * height)))
    return ceil(width * height * scale * scale / 750)


def _gemini(width: int, height: int) -> int:
    """258 tokens for a small image, else for each tile of 768 x 768 pixels."""
    if max(width, height) <= 384:
        return 258
    return 258 * ceil(width / 768) * ceil(height / 768)


_RULES: tuple[tuple[re.Pattern[str], Callable[[int, int], int]], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"claude", _anthropic),
        (r"gemini", _gemini),
        (r"gpt-4o-mini", _by_tiles(2_833, 5_667)),
        (r"gpt-(4\.1|5[.\d]*)-nano", _multiplied(2.46)),
        (r"gpt-(4\.1|5[.\d]*)-mini", _multiplied(1.62)),
        (r"o4-mini", _multiplied(1.72)),
        (r"gpt-(4o|4\.1|4\.5)", _by_tiles(85, 170)),
        (r"gpt-5", _by_tiles(70, 140)),
        (r"(^|/)o[13]\b", _by_tiles(75, 150)),
    )
)
