"""`pixels`: images are scaled down before they are sent, counted and shown."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from drawn import png
from hypothesis import given
from hypothesis import strategies as st

import skillc.images
from skillc.data.attachments import BadFile, image_label, image_to_send, read_image
from skillc.data.dataset import load, sizes_of
from skillc.errors import SkillcError
from skillc.frontend import check_source, plan_file
from skillc.images import ImageInfo, image_info, image_tokens, scale_down, scaled_size
from skillc.plan.digest import plan_digest
from skillc.program.emitted import module_source
from skillc.program.inputs import target_inputs
from skillc.syntax.source import Source

Image = pytest.importorskip("PIL.Image")

PROGRAM = """language 1
task { INPUT; output team: "billing" | "shipping"; ROLLOUT }
skill sort_pages { about = "Sort a page."; trainable section rules }
model target    = "openai/gpt-4o"
model optimizer = "openai/gpt-5.5"
data { train = "train.jsonl"; validation = "validation.jsonl" }
budget { steps = 1 }
goal right = exact_match(team)
gate better = candidate.right > incumbent.right
"""


def drawn(form: str, mode: str = "RGB", size: tuple[int, int] = (90, 30), **options: Any) -> bytes:
    image = Image.new(mode, size, 1)
    image.paste(0, (0, 0, size[0] // 2, size[1]))
    written = io.BytesIO()
    image.save(written, form, **options)
    return written.getvalue()


def shop(folder: Path, given: str = "input page: image { pixels = 64 }") -> Path:
    for side, first in (("train", 0), ("validation", 2)):
        rows = []
        for i in (first, first + 1):
            (folder / f"{i}.png").write_bytes(png(200, 100, shade=i) if i else png(60, 30))
            rows.append({"page": f"{i}.png", "team": "billing"})
        (folder / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "pages.skill").write_text(PROGRAM.replace("INPUT", given).replace("ROLLOUT", ""))
    return folder / "pages.skill"


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 2000))
def test_the_longer_side_has_the_limit_and_the_other_keeps_the_ratio(width: int, height: int, most: int) -> None:
    got = scaled_size(width, height, most)
    if max(width, height) <= most:
        assert got == (width, height)
    else:
        assert max(got) == most
        assert abs(min(got) - max(1, min(width, height) * most / max(width, height))) <= 0.5
    assert scaled_size(width, height, None) == (width, height)


@pytest.mark.parametrize(
    ("form", "mode", "options", "becomes"),
    [
        ("PNG", "RGB", {}, "png"),
        ("PNG", "RGBA", {}, "png"),
        ("PNG", "P", {}, "png"),
        ("PNG", "1", {}, "png"),
        ("PNG", "I;16", {}, "png"),
        ("JPEG", "RGB", {}, "jpeg"),
        ("JPEG", "L", {}, "jpeg"),
        ("JPEG", "CMYK", {}, "jpeg"),
        ("GIF", "P", {}, "png"),
        ("WEBP", "RGBA", {}, "png"),
    ],
)
def test_images_of_every_kind_are_scaled_down(form: str, mode: str, options: dict[str, Any], becomes: str) -> None:
    data = drawn(form, mode, **options)
    info = image_info(data)
    assert info is not None
    content, format_ = scale_down(data, info, 45)
    assert (format_, image_info(content)) == (becomes, ImageInfo(becomes, 45, 15))
    assert scale_down(data, info, 45)[0] == content
    assert scale_down(data, info, 90) == (data, info.format)


def test_a_photograph_is_turned_as_its_exif_data_say() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = drawn("JPEG", exif=exif)
    info = image_info(data)
    assert info is not None
    content, _ = scale_down(data, info, 45)
    assert image_info(content) == ImageInfo("jpeg", 15, 45)
    assert not Image.open(io.BytesIO(content)).getexif()


def test_an_image_that_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    (tmp_path / "cut.png").write_bytes(png(200, 100)[:60])
    assert image_to_send(tmp_path / "cut.png", None).content == png(200, 100)[:60]
    with pytest.raises(BadFile, match="cannot be scaled down"):
        image_to_send(tmp_path / "cut.png", 50)
    (tmp_path / "pages.skill").write_text(
        PROGRAM.replace("INPUT", "input page: image { pixels = 9 }").replace("ROLLOUT", "")
    )
    task = plan_file(tmp_path / "pages.skill", complete=False).plan.task
    with pytest.raises(SkillcError, match=r"the image `cut\.png` cannot be scaled down"):
        target_inputs(task, {"page": "cut.png"}, tmp_path)


def test_the_digest_is_that_of_the_content_that_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(200, 100))
    whole, half, same = (image_to_send(path, pixels) for pixels in (None, 100, 200))
    assert whole == same
    assert whole.digest == read_image(path).digest != half.digest
    assert image_info(half.content) == ImageInfo("png", 100, 50)
    path.write_bytes(png(200, 100, shade=99))
    assert image_to_send(path, 100).digest != half.digest


def test_prompts_labels_and_estimates_are_those_of_the_scaled_images(tmp_path: Path) -> None:
    plan = plan_file(shop(tmp_path), complete=False).plan
    dataset = load(plan.task, plan.data, tmp_path)
    labels = {each.inputs["page"]: each.labels["page"] for each in (*dataset.train, *dataset.validation)}
    assert labels["0.png"].startswith("[image 0.png, 60 x 30 pixels, ")
    assert labels["1.png"].startswith("[image 1.png, 200 x 100 pixels, sent as 64 x 32, ")
    assert labels["1.png"] == image_label("1.png", read_image(tmp_path / "1.png"), 64)
    sizes = sizes_of(plan, dataset, tmp_path)
    model = plan.models["target"].model
    assert sizes.images.mean == -(-(image_tokens(model, 60, 30) + 3 * image_tokens(model, 64, 32)) // 4)

    images: dict[str, str] = {}
    (short,) = (target_inputs(plan.task, {"page": "1.png"}, tmp_path, images)["page"].url,)
    content = base64.b64decode(images[short].partition(",")[2])
    assert image_info(content) == ImageInfo("png", 64, 32)
    assert target_inputs(plan.task, {"page": "1.png"}, tmp_path)["page"].url == images[short]
    assert target_inputs(plan.task, {"page": "https://a.org/1.png"}, tmp_path)["page"].url == "https://a.org/1.png"


def test_the_emitted_module_sends_what_the_compile_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillc.document.skill_md import to_skill_md
    from skillc.plan.initial import initial_document

    plan = plan_file(shop(tmp_path, "input page: image { pixels = 64 }; input more: list[image]"), complete=False).plan
    document = initial_document(plan)
    (tmp_path / "sort-pages").mkdir()
    (tmp_path / "sort-pages/SKILL.md").write_text(to_skill_md(document))
    (tmp_path / "scaled_pages.py").write_text(module_source(plan, document))
    (tmp_path / "photo.jpg").write_bytes(drawn("JPEG"))
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("scaled_pages", tmp_path / "scaled_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for page in ("0.png", "1.png", "photo.jpg"):
        lm = dspy.utils.DummyLM([{"team": "billing"}])
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
            module.program(page=page, more=["1.png"])
        sent = [
            part["image_url"]["url"]
            for part in lm.history[-1]["messages"][-1]["content"]
            if part["type"] == "image_url"
        ]
        ours = target_inputs(plan.task, {"page": page, "more": ["1.png"]}, tmp_path)
        assert sent == [ours["page"].url, ours["more"][0].url]


def test_without_pillow_the_error_names_the_extra_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_file(shop(tmp_path), complete=False).plan
    monkeypatch.setattr(skillc.images, "find_spec", lambda name: None)
    with pytest.raises(SkillcError, match="`page` has images of more than 64 pixels a side: Pillow") as raised:
        load(plan.task, plan.data, tmp_path)
    assert raised.value.hint == '`pip install "skillc[images]"`'
    with pytest.raises(SkillcError, match=r"the image `1\.png` has more than 64 pixels a side: Pillow"):
        target_inputs(plan.task, {"page": "1.png"}, tmp_path)
    assert target_inputs(plan.task, {"page": "0.png"}, tmp_path)
    (tmp_path / "pages.skill").write_text((tmp_path / "pages.skill").read_text().replace("pixels = 64", "pixels = 200"))
    plan = plan_file(tmp_path / "pages.skill", complete=False).plan
    assert load(plan.task, plan.data, tmp_path).train


@pytest.mark.parametrize(
    ("given", "rollout", "found"),
    [
        ("input page: image { pixels = 64 }", "", None),
        ("input page: list[image] { pixels = 64 }", "rollout = chain_of_thought", None),
        ("input page: text { pixels = 64 }", "", "`page` is not an image"),
        ("input page: file { pixels = 64 }", "", "`page` is not an image"),
        ("input page: image { pixels = 64 }", "rollout = code", "`page` is not scaled down"),
        ("input page: image { pixels = 64 }", 'rollout = environment("house:House")', "`page` is not scaled down"),
        ("input page: image { pixels = 64 }", 'rollout = environment("house:House") { agent = react }', None),
    ],
)
def test_check_refuses_pixels_of_what_is_sent_as_it_is(
    tmp_path: Path, given: str, rollout: str, found: str | None
) -> None:
    text = PROGRAM.replace("INPUT", given).replace("ROLLOUT", rollout)
    codes = [
        d for d in check_source(Source(str(tmp_path / "p.skill"), text), tmp_path).diagnostics if d.code == "SK441"
    ]
    assert [each.message.startswith(found or "") for each in codes] == ([True] if found else [])


def test_a_program_without_the_setting_has_the_digest_that_it_had(tmp_path: Path) -> None:
    with_, without = (
        plan_file(shop(tmp_path, f"input page: image {text}"), complete=False).plan for text in ("{ pixels = 64 }", "")
    )
    assert plan_digest(with_) != plan_digest(without)
    assert "pixels" not in json.dumps(fields(without))


def fields(plan: Any) -> list[str]:
    from skillc.json_values import fields_of

    return sorted(fields_of(plan.task.inputs[0]))
