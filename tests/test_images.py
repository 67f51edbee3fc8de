"""Images in numbers: dimensions from the first bytes, and tokens by the rules of providers."""

from __future__ import annotations

import base64
import io

import pytest
from drawn import png
from hypothesis import given
from hypothesis import strategies as st

from skillc.images import (
    ImageInfo,
    data_uri,
    image_info,
    image_tokens,
    info_of_uri,
    most_image_tokens,
)

SIDES = st.integers(1, 300)


@pytest.mark.parametrize(
    ("format_", "options"),
    [
        ("PNG", {}),
        ("GIF", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\0\0" + b"x" * 90}),
    ],
)
@given(width=SIDES, height=SIDES)
def test_dimensions_are_those_that_pillow_reads(
    format_: str, options: dict[str, object], width: int, height: int
) -> None:
    image = pytest.importorskip("PIL.Image")
    stream = io.BytesIO()
    image.new("RGB", (width, height), (9, 99, 199)).save(stream, format_, **options)
    assert image_info(stream.getvalue()) == ImageInfo(format_.lower(), width, height)


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"RIFF    WEBP"])
)
def test_any_bytes_have_dimensions_or_none(data: bytes, head: bytes) -> None:
    found = image_info(head + data)
    assert found is None or min(found.width, found.height) > 0


def test_a_data_uri_gives_its_dimensions() -> None:
    assert info_of_uri(data_uri(png(40, 30), "png")) == ImageInfo("png", 40, 30)
    # Metadata before the frame header of a JPEG may be longer than the part that is decoded first.
    stream = io.BytesIO()
    pytest.importorskip("PIL.Image").new("RGB", (50, 60)).save(stream, "JPEG")
    body = stream.getvalue()
    notes = b"".join(b"\xff\xfe\xff\xff" + b"n" * 65_533 for _ in range(3))
    assert info_of_uri(data_uri(body[:2] + notes + body[2:], "jpeg")) == ImageInfo("jpeg", 50, 60)
    for other in ("https://example.org/a.png", "data:image/png;base64,!", "data:text/plain;base64,aGk="):
        assert info_of_uri(other) is None
    assert base64.b64decode(data_uri(b"abc", "png").partition(",")[2]) == b"abc"


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        # The examples that the providers give.
        ("openai/gpt-4o", 1024, 1024, 765),
        ("openai/gpt-4o", 2048, 4096, 1105),
        ("openai/gpt-4.1-mini", 1024, 1024, 1659),
        ("anthropic/claude-sonnet-4-5", 200, 200, 54),
        ("anthropic/claude-sonnet-4-5", 1000, 1000, 1334),
        ("gemini/gemini-2.5-flash", 300, 384, 258),
        ("gemini/gemini-2.5-flash", 960, 540, 516),
        ("hosted_vllm/Qwen/Qwen2.5-VL-7B", 280, 280, 100),
    ],
)
def test_tokens_are_those_of_the_published_rules(model: str, width: int, height: int, tokens: int) -> None:
    assert image_tokens(model, width, height) == tokens


@given(
    model=st.sampled_from(["openai/gpt-5", "openai/gpt-4o-mini", "anthropic/claude-x", "gemini/g", "exec/x"]),
    w=SIDES,
    h=SIDES,
)
def test_a_bound_is_at_least_twice_the_estimate(model: str, w: int, h: int) -> None:
    assert most_image_tokens(model, w * 40, h * 40) >= 2 * image_tokens(model, w * 40, h * 40) > 0
