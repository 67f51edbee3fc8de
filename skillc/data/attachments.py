"""Files that examples name: images, files whose text the target reads, and files for the workspace of a rollout."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from filecmp import cmp
from functools import lru_cache
from os.path import commonpath
from pathlib import Path, PurePosixPath
from shutil import copyfileobj

from pydantic import JsonValue

from skillc.data.cutting import Cut, cut_items, cut_text
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.images import LARGEST_BYTES, ImageInfo, image_info, require_pillow, scale_down, scaled_size
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, Plan
from skillc.text import in_bytes, joined, shown
from skillc.tokens import count_tokens

TEXT_BYTES = 16_000_000
TEXT_CHARACTERS = 1_000_000
_HEAD_BYTES = 64 * 1024


class BadFile(ValueError):  # noqa: N818
    """A file that cannot be used; `hint` is the fix."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def paths_in(value: JsonValue) -> Iterator[str]:
    """Yield the paths in a value of a file or image field."""
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, str):
            yield each


# ---- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImageFile:
    """Format and dimensions of an image, its size in bytes, and the hex sha256 of its content."""

    info: ImageInfo
    size: int
    digest: str


def read_image(path: Path) -> ImageFile:
    """Read what an image file contains; the result is kept until the file changes.

    Raises:
        BadFile: it cannot be read, is too large, or is no PNG, JPEG, GIF or WebP image.
    """
    try:
        status = path.stat()
        if status.st_size > LARGEST_BYTES:
            message = f"has {in_bytes(status.st_size)}; models accept at most {in_bytes(LARGEST_BYTES)}"
            raise BadFile(message, "make the image smaller")
        return _image_file(path, status.st_mtime_ns, status.st_size)
    except OSError as problem:
        raise BadFile(f"cannot be read: {problem.strerror or problem}") from None


@lru_cache(maxsize=100_000)
def _image_file(path: Path, _modified: int, size: int) -> ImageFile:
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
        info = image_info(head)
        rest = stream.read()
    info = info or image_info(head + rest)
    if info is None:
        hint = f"convert it to {joined(['PNG', 'JPEG', 'GIF', 'WebP'], 'or')}"
        raise BadFile("is not an image that models read" if size else "is empty", hint)
    sha = hashlib.sha256(head)
    sha.update(rest)
    return ImageFile(info, size, sha.hexdigest())


@dataclass(frozen=True, slots=True)
class SentImage:
    """An image as the target gets it: content, format, and the hex sha256 of the content."""

    content: bytes
    format: str
    digest: str


def image_to_send(path: Path, pixels: int | None) -> SentImage:
    """Return an image whose longer side has at most `pixels` pixels, None for any number.

    Raises:
        BadFile: as `read_image`, or it cannot be decoded.
        OSError: it cannot be read.
        SkillcError: it has to be scaled down, and Pillow is not installed.
    """
    image = read_image(path)
    if pixels is None or max(image.info.width, image.info.height) <= pixels:
        return SentImage(path.read_bytes(), image.info.format, image.digest)
    require_pillow(f"the image {shown(path.name)} has more than {pixels:,} pixels a side")
    return _scaled(path, image.digest, pixels, image.info)


@lru_cache(maxsize=128)
def _scaled(path: Path, _digest: str, pixels: int, info: ImageInfo) -> SentImage:
    try:
        content, format_ = scale_down(path.read_bytes(), info, pixels)
    except ValueError as problem:
        raise BadFile(f"cannot be scaled down: {problem}", "repair or convert the image") from None
    return SentImage(content, format_, hashlib.sha256(content).hexdigest())


def image_label(path: str, image: ImageFile, pixels: int | None = None) -> str:
    """Describe an image where it cannot be shown: name, dimensions, those that the target gets, and size."""
    info = image.info
    sent = scaled_size(info.width, info.height, pixels)
    scaled = f" sent as {sent[0]} x {sent[1]}," if sent != (info.width, info.height) else ""
    return f"[image {path}, {info.width} x {info.height} pixels,{scaled} {in_bytes(image.size)}]"


# ---- texts ----------------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, or UTF-16 with a byte order mark.

    Raises:
        BadFile: it cannot be read, is too large, or is binary.
    """
    try:
        size = path.stat().st_size
        if size > TEXT_BYTES:
            raise BadFile(f"has {in_bytes(size)}; a text may have {in_bytes(TEXT_BYTES)}", "split the file")
        data = path.read_bytes()
    except OSError as problem:
        raise BadFile(f"cannot be read: {problem.strerror or problem}") from None
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        hint = "a rollout of one turn reads only the text of a file: convert it, or use an agent, which has a workspace"
        raise BadFile("is not a text in UTF-8", hint)
    return text


def texts_in_prompt(files: Sequence[tuple[str, str]], field: FieldPlan) -> Cut:
    """Return the names and texts of files as one text for a prompt, cut as the field declares.

    Raises:
        BadFile: the text is longer than a value may be.
    """
    items = [_wrapped(name, text) for name, text in files]
    cut = Cut(list[JsonValue](items))
    limit, part = field.limit, field.cut
    if limit is not None and part is not None:

        def cut_one(index: int, most: int) -> Cut:
            name, text = files[index]
            inner = cut_text(text, max(1, most - count_tokens(_wrapped(name, ""))), part)
            return Cut(_wrapped(name, str(inner.value)), inner.left_out)

        cut = cut_items(items, limit, part, cut_one)
    shown_text = "\n".join(map(str, cut.value)) if isinstance(cut.value, list) else str(cut.value)
    if len(shown_text) > TEXT_CHARACTERS:
        message = f"has {len(shown_text):,} characters; a value may have {TEXT_CHARACTERS:,}"
        raise BadFile(message, f"cut it: `{field.name}: {field.type.text} {{ limit = 8_000 tokens; cut = middle }}`")
    return Cut(shown_text, cut.left_out)


def _wrapped(name: str, text: str) -> str:
    quoted = " ".join(name.split()).replace('"', "'")
    return f'<file name="{quoted}">\n{text.strip(chr(10))}\n</file>'


# ---- workspaces -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attachments:
    """The files of an example for the workspace of a rollout.

    Attributes:
        files: the source of each file by its path in the workspace, relative and with `/`.
        example: the example, with the workspace's paths in place of those of the data in its inputs.
    """

    files: Mapping[str, Path]
    example: Example


def attachments(plan: Plan, example: Example, root: Path) -> Attachments:
    """Return the files that an example's inputs name, as a workspace contains them.

    A path is the one of the data without the folders that all files of the example share, so files keep their relative
    order: `books/7/a.csv` and `books/7/more/b.csv` become `a.csv` and `more/b.csv`. Names are unique, ignoring case.

    Args:
        plan: of a task whose rollout has a workspace.
        example: its file and image inputs are paths.
        root: the program's folder, to which those paths are relative.

    Raises:
        SkillcError: a file is gone, or is now a link out of the data's folder.
    """
    fields = [field.name for field in plan.task.inputs if field.type.file_kind is not None]
    paths = list(dict.fromkeys(path for name in fields for path in paths_in(example.inputs.get(name))))
    if not paths:
        return Attachments({}, example)
    shared = commonpath([str(PurePosixPath(path).parent) for path in paths])
    folders = [
        (root / name).absolute().parent
        for name in (plan.data.source, plan.data.train, plan.data.validation, plan.data.test)
        if name is not None
    ]
    places: dict[str, str] = {}
    taken: set[str] = set()
    for path in paths:
        places[path] = _free_place(_safe(PurePosixPath(path).relative_to(shared)), taken)
        taken.add(places[path].casefold())
    files = {place: _source((root / path).absolute(), folders, example) for path, place in places.items()}
    inputs = {name: _placed(value, places) if name in fields else value for name, value in example.inputs.items()}
    return Attachments(files, replace(example, inputs=inputs))


def fill_workspace(attached: Attachments, folder: Path) -> None:
    """Copy the files of an example into a workspace; later changes there leave the data as it is.

    Raises:
        SkillcError: a file cannot be copied, or the workspace has another one of this name.
    """
    for name, source in attached.files.items():
        place = folder / name
        try:
            if place.is_file() and not place.is_symlink() and cmp(source, place, shallow=False):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with source.open("rb") as read, place.open("xb") as write:
                copyfileobj(read, write)
        except OSError as problem:
            reason = problem.strerror or problem
            raise SkillcError(f"the file {shown(name)} cannot be copied to the workspace: {reason}") from None


def _safe(path: PurePosixPath) -> PurePosixPath:
    """Return a path without parts that leave the workspace, control characters or separators of other systems."""
    parts = ["".join(c if c.isprintable() and c not in "\\:" else "_" for c in part) for part in path.parts]
    return PurePosixPath(*([part for part in parts if part not in ("", "/", ".", "..")] or ["file"]))


def _free_place(path: PurePosixPath, taken: Collection[str]) -> str:
    """Return the path, or one with a number before the suffix if another file has it."""
    found, number = path, 2
    while str(found).casefold() in taken:
        found, number = path.with_name(f"{path.stem}-{number}{path.suffix}"), number + 1
    return str(found)


def _source(path: Path, folders: Sequence[Path], example: Example) -> Path:
    name = shown(path.name)
    of = f" of example `{example.id}`" if example.id else ""
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise SkillcError(f"the file {name}{of} does not exist", hint="restore it, or correct its path") from None
    # A caller of a compiled skill may give any file; those of the data stay in the data's folder.
    own = [folder for folder in folders if path.is_relative_to(folder)]
    if not found.is_file() or (own and not any(found.is_relative_to(folder.resolve()) for folder in own)):
        raise SkillcError(f"the file {name}{of} is a link out of the data's folder", hint="replace it by the file")
    return found


def _placed(value: JsonValue, places: Mapping[str, str]) -> JsonValue:
    if isinstance(value, list):
        return [places.get(each, each) if isinstance(each, str) else each for each in value]
    return places.get(value, value) if isinstance(value, str) else value
