"""The files of a task's environment: made once, and copied for each rollout.

The folders that an environment fills, such as `/app`, are kept on this machine and mounted at their paths. So a change
to a file there lasts from command to command, and nothing else does.
"""

from __future__ import annotations

import asyncio
import posixpath
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.data.task_folders import TaskFolder
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.processes.command import CommandResult, last_line
from skillc.sandbox.container import ENGINES
from skillc.sandbox.images import build, build_command, copy_out, has_image, working_folder
from skillc.sandbox.policy import WORK, DeclaredSandbox, Limits, Mount
from skillc.tasks.agents.workspace import Workspace, digest_of
from skillc.tasks.harbor.recipe import Copying, Making, Recipe, read_recipe
from skillc.tasks.programs import Programs, at_once

HOME = "/root"
"""The home of a task's commands, as in a container of root."""
_TAG = "skillc-harbor"
# Folders of the system and of the sandbox, which no files of a task can be mounted over.
_RESERVED = frozenset(
    {
        *("bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "tmp", "usr"),
        *("logs", "sandbox", "solution", "tests"),
    }
)
_IN_FOLDER = 'cd "$0" && exec "$@"'


@dataclass(frozen=True, slots=True)
class Box(Workspace):
    """The folders of one rollout: those of the environment at their own paths, and a scratch folder.

    Attributes:
        tree: the folders of the environment, below their absolute paths.
        folders: their absolute paths.
        further: what only some commands see, such as the tests.
    """

    tree: Path
    folders: tuple[str, ...]
    further: tuple[Mount, ...] = ()

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """All folders but the scratch folder."""
        own = (Mount(self.tree / folder.lstrip("/"), folder, writable=True) for folder in self.folders)
        return (*own, *self.further)

    @property
    def files(self) -> Workspace:
        """The folders of the environment, whose changes are reported."""
        return Workspace(self.tree, self.home, self.seen, self.seen_home)


@dataclass(frozen=True, slots=True)
class Place:
    """The environment of a task, which no rollout changes.

    Attributes:
        tree: as in `Box`.
        folders: as in `Box`.
        workdir: where commands begin.
        variables: those of all commands.
        programs: runs commands with the programs of this machine, or of the task's image.
    """

    task: TaskFolder
    tree: Path
    folders: tuple[str, ...]
    workdir: str
    variables: Mapping[str, str]
    programs: Programs

    async def copied(self, into: Path) -> Box:
        """Return a copy of the files in a new folder."""
        tree, scratch = into / "tree", into / "scratch"
        scratch.mkdir(parents=True)
        await asyncio.to_thread(shutil.copytree, self.tree, tree, symlinks=True)
        return Box(scratch, tree / HOME.lstrip("/"), WORK, HOME, tree, self.folders)

    def limits(self, seconds: float) -> Limits:
        """Return the limits of one command: those of the task, where it declares them."""
        declared, task = self.programs.declared.limits, self.task
        disk = task.disk or declared.disk
        return replace(declared, time=seconds, memory=task.memory or declared.memory, disk=disk, file_size=disk)

    async def run(
        self, box: Box, words: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a command in the working folder.

        Raises:
            SandboxFailed: the sandbox did not start it.
        """
        inside = ["/bin/sh", "-c", _IN_FOLDER, self.workdir, *words]
        own = {**self.variables, **(variables or {})}
        return await self.programs.run(box, inside, limits=self.limits(seconds), variables=own)


class Places:
    """Makes the environment of each task once.

    Args:
        declared: the sandbox; a container's image is that of each task.
        programs: makes what runs commands in an image, None for a sandbox without images.
        folder: where the environments are kept until the end of the run.
        builds: whether images are built that are not on this machine.
    """

    def __init__(self, declared: DeclaredSandbox, programs: ProgramsOf, folder: Path, *, builds: bool) -> None:
        self._declared, self._programs, self._folder, self._builds = declared, programs, folder, builds

    async def make(self, task: TaskFolder, variables: Mapping[str, str]) -> Place:
        """Return the environment of a task.

        Raises:
            SkillcError: it cannot be made here.
        """
        place = self._folder / f"{len(list(self._folder.iterdir()))}-{task.name}"
        tree = place / "tree"
        (tree / HOME.lstrip("/")).mkdir(parents=True)
        make = self._from_image if self._declared.kind in ENGINES else self._from_recipe
        return await make(task, tree, variables)

    async def _from_recipe(self, task: TaskFolder, tree: Path, variables: Mapping[str, str]) -> Place:
        """Follow the Dockerfile of a task with the programs of this machine."""
        if not task.dockerfile.is_file():
            raise _needs_container(task, f"has the image `{task.image}`" if task.image else "has no Dockerfile")
        recipe = read_recipe(task.dockerfile)
        if recipe.problem:
            raise _needs_container(task, f"has {recipe.problem} in its Dockerfile")
        workdir = task.workdir or recipe.workdir
        folders = outermost([workdir, *recipe.folders, HOME])
        taken = next((folder for folder in folders if _top(folder) in {"", *_RESERVED}), None)
        if taken is not None:
            what = "sets no working folder" if taken == "/" else f"writes into `{taken}`"
            raise _needs_container(task, f"{what} in its Dockerfile")
        for folder in folders:
            (tree / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        place = Place(task, tree, folders, workdir, {**recipe.variables, **variables}, self._programs(None))
        await self._follow(recipe, place)
        (tree / workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
        return place

    async def _follow(self, recipe: Recipe, place: Place) -> None:
        scratch = place.tree.parent / "scratch"
        scratch.mkdir()
        box = Box(scratch, place.tree / HOME.lstrip("/"), WORK, HOME, place.tree, place.folders)
        for step in recipe.steps:
            if isinstance(step, Making):
                (place.tree / step.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
                continue
            if isinstance(step, Copying):
                await asyncio.to_thread(_copy, step, place.task, place.tree)
                continue
            inside = replace(place, workdir=step.workdir, variables={**step.variables, **place.variables})
            done = await inside.run(box, ["/bin/sh", "-c", step.command], place.task.build_seconds)
            if done.why != "ended" or done.status:
                why = place.limits(place.task.build_seconds).exceeded(done.why) or last_line(done.stderr)
                what = f"line {step.line} of its Dockerfile fails: {why or f'status {done.status}'}"
                raise _needs_container(place.task, f"cannot be set up with the programs of this machine, {what}")

    async def _from_image(self, task: TaskFolder, tree: Path, variables: Mapping[str, str]) -> Place:
        """Copy the files out of the image of a task."""
        engine = self._declared.kind
        assert engine in ENGINES
        image = task.image or f"{_TAG}:{digest_of(task.environment)[:16]}"
        if not has_image(engine, image):
            if task.image is None and self._builds:
                problem = await build(engine, image, task.environment, task.build_seconds)
                if problem:
                    raise SkillcError(f"the image of the task `{task.name}` cannot be built: {problem}")
            else:
                command = [engine, "pull", image] if task.image else build_command(engine, image, task.environment)
                raise SkillcError(
                    f"the image `{image}` of the task `{task.name}` is not on this machine",
                    hint=f"run `{' '.join(command)}`" + ("" if task.image else ", or write `build = on`"),
                )
        recipe = read_recipe(task.dockerfile) if task.dockerfile.is_file() else Recipe()
        workdir = task.workdir or working_folder(engine, image)
        if workdir == "/":
            raise SkillcError(
                f"the task `{task.name}` has no working folder, and only files in one last from command to command",
                hint="set `workdir` in its task.toml",
            )
        folders = outermost([workdir, HOME, *(each for each in recipe.folders if _top(each) not in {"", *_RESERVED})])
        problem = await asyncio.to_thread(copy_out, engine, image, folders, tree)
        if problem:
            raise SkillcError(f"the files of the image `{image}` cannot be copied: {problem}")
        if task.image and not task.dockerfile.is_file() and task.environment.is_dir():
            shutil.copytree(task.environment, tree / workdir.lstrip("/"), symlinks=True, dirs_exist_ok=True)
        return Place(task, tree, folders, workdir, variables, self._programs(image))


class ProgramsOf:
    """Makes what runs commands with an image, or without one, once for each image."""

    def __init__(
        self, declared: DeclaredSandbox, root: Path, *, python: str | None, reads: Sequence[str], hosts: Sequence[str]
    ) -> None:
        self._declared, self._root = declared, root
        self._python, self._reads, self._hosts = python, reads, hosts
        self._running = asyncio.Semaphore(at_once())
        self._known: dict[str | None, Programs] = {}

    def __call__(self, image: str | None) -> Programs:
        """Return what runs commands; raise `SkillcError` if the sandbox does not work here."""
        if image not in self._known:
            self._known[image] = Programs(
                self._declared if image is None else replace(self._declared, image=image),
                self._root,
                what="`rollout = harbor`",
                python=self._python,
                reads=self._reads,
                hosts=self._hosts,
                running=self._running,
            )
        return self._known[image]


def outermost(folders: Iterable[str]) -> tuple[str, ...]:
    """Return the folders that are in none of the others."""
    found: list[str] = []
    for folder in sorted({posixpath.normpath(folder) for folder in folders}):
        if not any(folder == other or folder.startswith(f"{other.rstrip('/')}/") for other in found):
            found.append(folder)
    return tuple(found)


def _top(folder: str) -> str:
    return folder.lstrip("/").partition("/")[0]


def _needs_container(task: TaskFolder, why: str) -> SkillcError:
    return SkillcError(
        f"the task `{task.name}` {why}", hint="declare `sandbox = docker`, which has the programs of its image"
    )


def _copy(step: Copying, task: TaskFolder, tree: Path) -> None:
    """Copy files of the task's environment as `COPY` does.

    Raises:
        SkillcError: there is no such file, or it is outside the environment.
    """
    target, root = tree / step.target.lstrip("/"), task.environment.resolve()
    where = f"line {step.line} of the Dockerfile of the task `{task.name}`"
    for source in step.sources:
        pattern = posixpath.normpath(source).lstrip("/")
        found = [task.environment] if pattern == "." else sorted(task.environment.glob(pattern))
        if not found or ".." in pattern.split("/"):
            raise SkillcError(f"{where} copies `{source}`, which is not in its environment")
        for path in found:
            if not path.resolve().is_relative_to(root):
                raise SkillcError(f"{where} copies `{source}`, a link out of its environment")
            try:
                if path.is_dir():
                    shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True)
                    continue
                inside = target / path.name if step.folder or target.is_dir() else target
                inside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, inside)
            except OSError as problem:
                raise SkillcError(f"{where} cannot be followed: {problem}") from None
