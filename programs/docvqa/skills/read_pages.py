"""The skill `read-pages` as a DSPy module; it reads read-pages/SKILL.md beside it.

For example:

    import dspy
    from read_pages import program

    dspy.configure(lm=dspy.LM("provider/model"))
    program(page=...)
"""

from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import dspy
from dspy.signatures.signature import make_signature

_FOLDER = "read-pages"


def _skill() -> str:
    """The text of SKILL.md below its frontmatter."""
    path = Path(__file__).parent / _FOLDER / "SKILL.md"
    text = path.read_text(encoding="utf-8-sig")
    _, mark, body = text.partition("\n---\n")
    return body.strip() if mark and text.startswith("---\n") else text.strip()


INSTRUCTIONS = _skill()

ReadPages = make_signature(
    {
        "page": (
            dspy.Image,
            dspy.InputField(),
        ),
        "question": (
            str,
            dspy.InputField(),
        ),
        "answer": (
            str,
            dspy.OutputField(),
        ),
    },
    INSTRUCTIONS,
    signature_name="ReadPages",
)

_IMAGES = {
    "page",
}
_REMOTE = ("http://", "https://", "gs://", "data:")


# Inputs whose images are scaled down to so many pixels a side.
_PIXELS = {
    "page": 1600,
}


def _scaled(path: str, most: int) -> Any:
    """An image of a file, scaled down if it is larger."""
    from PIL import Image, ImageOps

    with Image.open(path) as opened:
        if max(opened.size) <= most:
            return dspy.Image.from_path(path)
        form = "JPEG" if opened.format == "JPEG" else "PNG"
        image = ImageOps.exif_transpose(opened)
        clear = image.has_transparency_data
        image = image.convert("RGBA" if clear else "RGB")
    w, h = image.size
    size = [max(1, round(side * most / max(w, h))) for side in (w, h)]
    small, written = image.resize(size, Image.Resampling.LANCZOS), BytesIO()
    small.save(written, form, **({"quality": 90} if form == "JPEG" else {}))
    data = b64encode(written.getvalue()).decode()
    return dspy.Image(f"data:image/{form.lower()};base64,{data}")


def _image(value: Any, most: int | None = None) -> Any:
    """An image of a path, an address, a data URI or a list of them."""
    if isinstance(value, (list, tuple)):
        return [_image(each, most) for each in value]
    if not isinstance(value, (str, Path)):
        return value
    if str(value).startswith(_REMOTE):
        return dspy.Image(str(value))
    if most is not None:
        return _scaled(str(value), most)
    return dspy.Image.from_path(str(value))


def _inputs(values: dict[str, Any]) -> dict[str, Any]:
    values = dict(values)
    for name in values.keys() & _IMAGES:
        values[name] = _image(values[name], _PIXELS.get(name))
    return values


class Program(dspy.Module):
    """The skill as a program; `answer` is its one predictor."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(ReadPages)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example."""
        return self.answer(**_inputs(inputs))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example, awaited."""
        return await self.answer.acall(**_inputs(inputs))


program = Program()
