"""Inputs of the target: images as data URIs, files as their text, and texts within their limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dspy

from skillc.data.attachments import BadFile, image_to_send, read_text, texts_in_prompt
from skillc.data.cutting import cut_value
from skillc.errors import SkillcError
from skillc.images import data_uri
from skillc.plan.schema import FieldPlan, TaskPlan
from skillc.text import shown

_REMOTE = ("http://", "https://", "gs://", "data:")


def target_inputs(
    task: TaskPlan, values: Mapping[str, Any], root: Path, images: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return inputs as the target's signature takes them; values of other names are returned unchanged.

    Args:
        task: the inputs; after `as_read`, texts and files are used as they are.
        values: an image is a path, an address, a data URI or a `dspy.Image`; a file is a path.
        root: the folder of relative paths.
        images: takes the data URIs of images by the short ones that the result has (`CallScope.images`); without it the
            result has the data URIs.

    Raises:
        SkillcError: a file cannot be read, or is no image or text.
    """
    fields = {field.name: field for field in task.inputs}
    return {
        name: _converted(value, fields[name], task, root, images) if name in fields and value is not None else value
        for name, value in values.items()
    }


def caller_inputs(task: TaskPlan, values: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return a caller's inputs as the loader returns those of the data for rollouts with a workspace.

    Paths are absolute, and texts within their limits; `root` is the folder of relative paths.
    """
    fields = {field.name: field for field in task.inputs}
    return {name: _from_caller(value, fields.get(name), root) for name, value in values.items()}


def _from_caller(value: Any, field: FieldPlan | None, root: Path) -> Any:
    if field is None or value is None:
        return value
    if field.type.file_kind is None:
        return cut_value(value, field).value
    return _each(value, lambda path: str(root / path) if isinstance(path, str | Path) else path)


def _each(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert a value, or each of a list."""
    return [convert(each) for each in value] if isinstance(value, list | tuple) else convert(value)


def _converted(value: Any, field: FieldPlan, task: TaskPlan, root: Path, images: dict[str, str] | None) -> Any:
    kind = field.type.file_kind
    if kind == "image":
        return _each(value, lambda one: _image(one, field, root, images))
    if kind == "file" and not task.rollout.one_turn:
        return _each(value, str)
    if kind == "file":
        return _texts(value if isinstance(value, list | tuple) else [value], field, root)
    return cut_value(value, field).value


def _image(value: Any, field: FieldPlan, root: Path, images: dict[str, str] | None) -> Any:
    if not isinstance(value, str | Path):
        return value
    if str(value).startswith(_REMOTE):
        return dspy.Image(str(value))
    path = root / value
    try:
        image = image_to_send(path, field.pixels)
        uri = data_uri(image.content, image.format)
    except BadFile as bad:
        raise SkillcError(f"the image {shown(str(value))} {bad}", hint=bad.hint) from None
    except OSError as problem:
        raise SkillcError(f"the image {shown(str(value))} cannot be read: {problem.strerror}") from None
    if images is None:
        return dspy.Image(uri)
    # Hex digits are base64 too.
    short = f"{uri.partition(',')[0]},{image.digest}"
    images[short] = uri
    return dspy.Image(short)


def _texts(paths: Any, field: FieldPlan, root: Path) -> str:
    files = []
    for path in paths:
        try:
            files.append((_name(path), read_text(root / path)))
        except BadFile as bad:
            raise SkillcError(f"the file {shown(str(path))} {bad}", hint=bad.hint) from None
    try:
        return str(texts_in_prompt(files, field).value)
    except BadFile as bad:
        raise SkillcError(f"the input `{field.name}` {bad}", hint=bad.hint) from None


def _name(path: Any) -> str:
    """Return the name that the target reads; of an absolute path only the last part."""
    return Path(path).name if Path(path).is_absolute() else Path(os.path.normpath(path)).as_posix()
