"""The lock of a compiled skill: what a compile made, from what, and what may be said of it. Pure values, for git.

No clock, no path of a machine, no name of one: the same compile writes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, ValidationError

from skillc.artifact_paths import ArtifactPaths
from skillc.conflict import UnmergedError, is_mark
from skillc.errors import SkillcError
from skillc.files import write_atomically

FORMAT_VERSION = 1

_DIGITS = 6
_NANO = 1_000_000_000


def _decimal(value: Fraction) -> int | float:
    """A number with six digits after the point, whole numbers without one."""
    rounded = round(value, _DIGITS)
    return rounded.numerator if rounded.denominator == 1 else float(rounded)


def _dollars(value: Fraction) -> str:
    """Dollars as a decimal, exact to a billionth: `0.0042`."""
    nano = round(value * _NANO)
    sign, digits = ("-", -nano) if nano < 0 else ("", nano)
    text = f"{sign}{digits // _NANO}.{digits % _NANO:09}".rstrip("0")
    return text.rstrip(".")


Decimal = Annotated[Fraction, PlainSerializer(_decimal, return_type=Any)]
Dollars = Annotated[Fraction, PlainSerializer(_dollars, return_type=str)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OptionsLock(_Part):
    """Options of a compile that changed the plan, as they were given: `--model`, `--set` and `--offline`."""

    models: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    offline: bool = False

    @property
    def shown(self) -> str:
        """As on the command line."""
        said = [f"--model {each}" for each in self.models] + [f"--set {each}" for each in self.settings]
        return " ".join([*said, *["--offline"] * self.offline])


class ProgramLock(_Part):
    """The program: its file, and the digest of its plan.

    Attributes:
        file: its name.
        path: from the lock's folder to it, or a digest of where it is (`skillc/artifacts/owner.py`); None in locks of
            before it was written down.
        options: what changed the plan for this compile; None where nothing did, and in locks of before it was written
            down.
        code: of the user's own Python that it names; None as well.
    """

    file: str
    path: str | None = None
    plan: Digest
    options: OptionsLock | None = None
    code: Digest | None = None


class DataLock(_Part):
    """The data: digest of all examples and their sides, and how many there are of each.

    Attributes:
        used: marks of the examples that the skill was trained and selected on, ten characters each, in order.
    """

    digest: Digest
    train: int
    validation: int
    test: int
    used: str = ""


class SkillLock(_Part):
    """Digests of the initial skill and of the best one."""

    initial: Digest
    best: Digest


class ModelLock(_Part):
    """A role's model as it was used."""

    model: str
    parameters: dict[str, JsonValue] = {}


class ArmLock(_Part):
    """The goal's mean over the `n` examples that were measured, None where none was."""

    mean: Decimal | None = None
    n: int = 0


class TestLock(_Part):
    """The paired test of the best skill against the initial one.

    Attributes:
        none: the target without any skill.
        initial: the skill that the run started from.
        best: the skill that was written.
        gain: mean difference in goal points.
        interval: at level 1 - alpha.
        p: two-sided.
        n: pairs that were measured; 0 where nothing was tested.
        groups: split groups among them.
        look: how often this test split has been looked at, this time included.
        alpha: the level of this look, 0.05 / look².
        smallest_detectable: the smallest gain that this test would have shown with 80 % power.
    """

    none: ArmLock = ArmLock()
    initial: ArmLock = ArmLock()
    best: ArmLock = ArmLock()
    gain: Decimal | None = None
    interval: tuple[Decimal, Decimal] | None = None
    p: Decimal | None = None
    n: int = 0
    groups: int = 0
    look: int = 0
    alpha: Decimal | None = None
    smallest_detectable: Decimal | None = None


class ValidationLock(_Part):
    """Means on the split that the best skill was selected on, which makes its own mean too high."""

    selected_on: Literal[True] = True
    none: ArmLock = ArmLock()
    initial: ArmLock = ArmLock()
    best: ArmLock = ArmLock()


class ChargedLock(_Part):
    """What the run is charged: every logical call once, at the plan's prices; cost in dollars.

    Attributes:
        bound_tokens: of the tokens, those that were reserved for calls whose usage was not reported.
    """

    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: Dollars = Fraction(0)
    bound_tokens: int = 0


class LookLock(_Part):
    """One look at the test split: by which run, and at which skills.

    Attributes:
        test: digest of the inputs of the test split; None in locks of before it was written down.
    """

    run: Digest
    initial: Digest
    best: Digest
    test: Digest | None = None


Verdict = Literal["improved", "no significant gain", "worse", "unverified"]


class Lock(_Part):
    """The lock of a compiled skill.

    Attributes:
        format_version: of this file.
        decision_version: of the code that decides.
        run: the run's id.
        files: sha256 of SKILL.md and of the module, by their paths from the lock.
        reason: why the verdict is no more than that, or empty.
        stopped: why the run ended: `epochs`, `patience`, `cost after decision 17`.
        looks: every look at the test split, the oldest first.
        quarantined: ids of validation examples that could not be measured and were left out.
        history: the link of the run's last decision in the history; None in locks of before it was written down.
    """

    format_version: Literal[1] = 1
    decision_version: str
    run: Digest
    program: ProgramLock
    data: DataLock
    skill: SkillLock
    files: dict[str, Digest] = {}
    models: dict[str, ModelLock]
    verdict: Verdict
    reason: str = ""
    test: TestLock = TestLock()
    validation: ValidationLock = ValidationLock()
    charged: ChargedLock = ChargedLock()
    stopped: str
    looks: tuple[LookLock, ...] = ()
    quarantined: tuple[str, ...] = ()
    history: Digest | None = None


def has_digest(content: bytes, digest: str | None) -> bool:
    """Whether a file has the content that a digest names; git may have written the line ends of another system."""
    return digest in [hashlib.sha256(each).hexdigest() for each in (content, content.replace(b"\r\n", b"\n"))]


def merge_looks(looks: tuple[LookLock, ...], others: tuple[LookLock, ...]) -> tuple[LookLock, ...]:
    """The looks of two branches: none is forgotten, and none counts twice. Those of the first keep their numbers."""
    return (*looks, *(look for look in others if not any(_same(each, look) for each in looks)))


def add_look(looks: tuple[LookLock, ...], look: LookLock) -> tuple[tuple[LookLock, ...], int]:
    """The looks with one more, and its number from 1; an identical look keeps the number that it has.

    Looks at a test split that was replaced since do not count as looks at this one; those that do not say which split
    they were at do.
    """
    every = looks if any(_same(each, look) for each in looks) else (*looks, look)
    counted = [each for each in every if each.test in (None, look.test) or look.test is None or _same(each, look)]
    return every, next(i for i, each in enumerate(counted, 1) if _same(each, look))


def _same(one: LookLock, other: LookLock) -> bool:
    """A run's name fixes its data, so these three fix the split as well."""
    return (one.run, one.initial, one.best) == (other.run, other.initial, other.best)


def lock_text(lock: Lock) -> str:
    """The bytes of the file: JSON with sorted keys, two spaces, one newline at the end."""
    return json.dumps(lock.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_lock(path: Path, lock: Lock) -> None:
    """Writes the lock whole or not at all.

    Raises:
        SkillcError: it cannot be written.
    """
    try:
        write_atomically(path, lock_text(lock))
    except OSError as problem:
        raise SkillcError(f"the lock `{path}` cannot be written: {problem.strerror}") from problem


def read_lock(path: Path) -> Lock:
    """The lock in a file.

    Raises:
        SkillcError: there is none, it is damaged, or a newer skillc wrote it.
    """
    try:
        return parse_lock(path.read_text(encoding="utf-8-sig"), path)
    except FileNotFoundError as problem:
        hint = "compile the program first: `skillc compile`"
        raise SkillcError(f"there is no lock `{path}`", hint=hint) from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the lock `{path}` cannot be read: {problem}") from problem


def parse_lock(text: str, path: Path) -> Lock:
    """The lock in a text.

    Args:
        text: of the file.
        path: how messages call it.

    Raises:
        UnmergedError: it holds both sides of a merge.
        SkillcError: it is damaged, or a newer skillc wrote it.
    """
    mend = "take it from git, or remove it and compile again (looks at the test split are then forgotten)"
    try:
        value = json.loads(text, parse_float=Fraction)
    except ValueError as problem:
        if any(is_mark(line) for line in text.splitlines()):
            raise UnmergedError(path, ArtifactPaths.of_lock(path)) from problem
        raise SkillcError(f"the lock `{path}` is damaged: it is not JSON", hint=mend) from problem
    version = value.get("format_version") if isinstance(value, Mapping) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        message = f"the lock `{path}` has format {version}, this skillc reads {FORMAT_VERSION}"
        raise SkillcError(message, hint="a newer skillc wrote it; update this one")
    try:
        return Lock.model_validate(_with_floats(value))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        message = f"the lock `{path}` is damaged: `{where}` {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise SkillcError(message.rstrip("."), hint=mend) from problem


def _with_floats(value: Any) -> Any:
    """Parameters of models hold plain numbers; everything else keeps its exact decimals."""
    if isinstance(value, dict) and isinstance(models := value.get("models"), dict):
        return {**value, "models": {role: _plain(model) for role, model in models.items()}}
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
