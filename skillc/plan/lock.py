"""The lock of a compiled skill: inputs, outputs and verdict of a compile, for git.

It contains no time, no absolute path and no name of a machine: the same compile writes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, PlainSerializer, ValidationError

from skillc.artifact_paths import ArtifactPaths
from skillc.conflict import UnmergedError, is_mark
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.plan.schema import Frozen
from skillc.stats.verdict import VerdictWord

FORMAT_VERSION = 1

_DIGITS = 6
_NANO = 1_000_000_000


def _decimal(value: Fraction) -> int | float:
    """A number with six decimals; whole numbers as integers."""
    rounded = round(value, _DIGITS)
    return rounded.numerator if rounded.denominator == 1 else float(rounded)


def _dollars(value: Fraction) -> str:
    """Dollars as a decimal with at most nine places: `0.0042`."""
    nano = round(value * _NANO)
    sign, digits = ("-", -nano) if nano < 0 else ("", nano)
    text = f"{sign}{digits // _NANO}.{digits % _NANO:09}".rstrip("0")
    return text.rstrip(".")


Decimal = Annotated[Fraction, PlainSerializer(_decimal, return_type=Any)]
Dollars = Annotated[Fraction, PlainSerializer(_dollars, return_type=str)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class OptionsLock(Frozen):
    """Options of a compile that changed the plan: `--model`, `--set` and `--offline`, as given."""

    models: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    offline: bool = False

    @property
    def shown(self) -> str:
        """The options as on the command line."""
        options = [f"--model {each}" for each in self.models] + [f"--set {each}" for each in self.settings]
        return " ".join([*options, *["--offline"] * self.offline])


class ProgramLock(Frozen):
    """The program. A value of None is missing in locks of earlier versions.

    Attributes:
        file: its name.
        path: relative to the lock's folder, or a digest of its location; see `skillc/artifacts/owner.py`.
        plan: digest of its plan.
        options: those that changed the plan for this compile; None if none did.
        code: digest of the user's Python code that it names.
    """

    file: str
    path: str | None = None
    plan: Digest
    options: OptionsLock | None = None
    code: Digest | None = None


class DataLock(Frozen):
    """The data: digest of all examples and their sides, and the number of examples of each side.

    Attributes:
        used: marks of the examples that the skill was trained and selected on, ten characters each, in order.
    """

    digest: Digest
    train: int
    validation: int
    test: int
    used: str = ""


class SkillLock(Frozen):
    """Digests of the initial skill and of the best one."""

    initial: Digest
    best: Digest


class ModelLock(Frozen):
    """The model of a role."""

    model: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class ArmLock(Frozen):
    """The mean of the goal over the `n` measured examples; None if none was measured."""

    mean: Decimal | None = None
    n: int = 0


class OpenedLock(Frozen):
    """Where the target opened a skill: rollouts that should and did, should, should not and did, should not.

    `precision` and `recall` are None on a split where it should always or never be opened, where they mean nothing.
    """

    hits: int = 0
    wanted: int = 0
    strays: int = 0
    others: int = 0
    precision: Decimal | None = None
    recall: Decimal | None = None


class TestLock(Frozen):
    """The paired test of the best skill against the initial one.

    Attributes:
        none: the target without a skill.
        initial: the initial skill of the run.
        best: the delivered skill.
        always_read: the delivered skill if the target always read it; None if it does.
        opened: where the target opened the delivered skill; None unless a gate names where it should.
        gain: mean difference in goal points.
        interval: at level 1 - alpha.
        p: two-sided.
        n: measured pairs; 0 if nothing was tested.
        groups: split groups among them.
        look: the number of looks at this test split, this one included.
        alpha: the level of this look, 0.05 / look².
        smallest_detectable: the smallest gain that this test detects with 80 % power.
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
    always_read: ArmLock | None = None
    opened: OpenedLock | None = None


class NullArmLock(Frozen):
    """The initial skill against itself, measured twice on validation.

    Attributes:
        n: examples measured twice.
        changed: those whose goal differs.
        difference: of the second mean to the first, in goal points.
        margin: the gain that the skill exceeds against itself in 5 % of comparisons.
        accepted: whether the gates accept the second measurement against the first; None without gates.
        chance: the share of comparisons of the two that they accept.
    """

    n: int
    changed: int
    difference: Decimal
    margin: Decimal
    accepted: bool | None = None
    chance: Decimal | None = None


class ValidationLock(Frozen):
    """Means on the split that the best skill was selected on, which biases its mean upwards.

    Attributes:
        null_arm: the initial skill against itself; None if it was not measured again.
    """

    selected_on: Literal[True] = True
    none: ArmLock = ArmLock()
    initial: ArmLock = ArmLock()
    best: ArmLock = ArmLock()
    always_read: ArmLock | None = None
    opened: OpenedLock | None = None
    null_arm: NullArmLock | None = None


class ChargedLock(Frozen):
    """The charges of the run: every logical call once, at the plan's prices; cost in dollars.

    Attributes:
        bound_tokens: the tokens among them that were reserved for calls without reported usage.
    """

    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: Dollars = Fraction(0)
    bound_tokens: int = 0


class LookLock(Frozen):
    """One look at the test split: the run, and the skills that it compared.

    Attributes:
        test: digest of the inputs of the test split; None in locks of earlier versions.
    """

    run: Digest
    initial: Digest
    best: Digest
    test: Digest | None = None


class SignalLock(Frozen):
    """The declared error rates of a goal that is a noisy signal, with the examples that they were measured on."""

    sensitivity: Decimal
    specificity: Decimal
    positives: int | None = None
    negatives: int | None = None


class Lock(Frozen):
    """The lock of a compiled skill.

    Attributes:
        format_version: of this file.
        decision_version: of the code that decides.
        run: the id of the run.
        files: sha256 of every file of the skill's folder and of the module, by path relative to the lock.
        reason: why the verdict is not better, or empty.
        stopped: why the run ended: `epochs`, `patience`, `cost after decision 17`.
        looks: every look at the test split, oldest first.
        quarantined: ids of validation examples that could not be measured and were left out.
        history: the link of the run's last decision in the history; None in locks of earlier versions.
        sessions: keys of the recorded sessions that rules are from, by a digest of the rule's text.
        cited: those of them whose cases are named for the rule's words, for the rules where any is. Locks of earlier
            versions also leave out rules that name all, and have what a rule took over from those before it.
        replaced: for rules that cite sessions, the others that rules which they replaced cite.
        signal: the error rates behind verdict and means, if the goal is a noisy signal; None if it is not.
    """

    format_version: Literal[1] = 1
    decision_version: str
    run: Digest
    program: ProgramLock
    data: DataLock
    skill: SkillLock
    files: dict[str, Digest] = Field(default_factory=dict)
    models: dict[str, ModelLock]
    verdict: VerdictWord
    reason: str = ""
    test: TestLock = TestLock()
    validation: ValidationLock = ValidationLock()
    charged: ChargedLock = ChargedLock()
    stopped: str
    looks: tuple[LookLock, ...] = ()
    quarantined: tuple[str, ...] = ()
    history: Digest | None = None
    sessions: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    cited: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    replaced: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    signal: SignalLock | None = None

    @property
    def tested(self) -> str | None:
        """The digest of the inputs of the test split that the run looked at last; None if the looks contain none."""
        return next(
            (look.test for look in reversed(self.looks) if look.run == self.run and look.test is not None), None
        )


def text_key(text: str) -> str:
    """Return how `Lock.sessions` names a rule or a section: by its text, whose spaces do not matter."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def has_digest(content: bytes, digest: str | None) -> bool:
    """Whether a file has a digest, also if git has converted its line ends."""
    return digest in [hashlib.sha256(each).hexdigest() for each in (content, content.replace(b"\r\n", b"\n"))]


def merge_looks(looks: tuple[LookLock, ...], others: tuple[LookLock, ...]) -> tuple[LookLock, ...]:
    """The looks of two branches without duplicates; those of the first keep their numbers."""
    return (*looks, *(look for look in others if not any(_same(each, look) for each in looks)))


def add_look(looks: tuple[LookLock, ...], look: LookLock) -> tuple[tuple[LookLock, ...], int]:
    """Add a look; return all looks, and its number from 1. An identical look keeps its number.

    Looks at other test splits do not count; looks without a split do.
    """
    every = looks if any(_same(each, look) for each in looks) else (*looks, look)
    counted = [each for each in every if each.test in (None, look.test) or look.test is None or _same(each, look)]
    return every, next(i for i, each in enumerate(counted, 1) if _same(each, look))


def _same(one: LookLock, other: LookLock) -> bool:
    """The name of a run determines its data, and so the split."""
    return (one.run, one.initial, one.best) == (other.run, other.initial, other.best)


def lock_text(lock: Lock) -> str:
    """The content of the file: JSON with sorted keys, indented by two spaces."""
    return json.dumps(lock_json(lock), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def lock_json(lock: Lock) -> dict[str, JsonValue]:
    """Return the values of a lock; those of skills that are opened on demand and of a null arm only if it has them."""
    value: dict[str, JsonValue] = lock.model_dump(mode="json")
    for split in ("test", "validation"):
        arms = value[split]
        assert isinstance(arms, dict)
        for name in ("always_read", "opened", "null_arm"):
            if arms.get(name, False) is None:
                del arms[name]
    for name in ("sessions", "cited", "replaced"):
        if not value[name]:
            del value[name]
    if lock.signal is None:
        del value["signal"]
    return value


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock atomically.

    Raises:
        SkillcError: it cannot be written.
    """
    try:
        write_atomically(path, lock_text(lock))
    except OSError as problem:
        raise SkillcError(f"the lock `{path}` cannot be written: {problem.strerror}") from problem


def read_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        SkillcError: the file is missing or damaged, or a newer skillc wrote it.
    """
    try:
        return parse_lock(path.read_text(encoding="utf-8-sig"), path)
    except FileNotFoundError as problem:
        hint = "compile the program first: `skillc compile`"
        raise SkillcError(f"the lock `{path}` does not exist", hint=hint) from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the lock `{path}` cannot be read: {problem}") from problem


def parse_lock(text: str, path: Path) -> Lock:
    """Parse the text of a lock; `path` is its name in messages.

    Raises:
        UnmergedError: it contains both sides of a merge.
        SkillcError: it is damaged, or a newer skillc wrote it.
    """
    restore = "restore it from git, or remove it and compile again (which forgets the looks at the test split)"
    try:
        value = json.loads(text, parse_float=Fraction)
    except ValueError as problem:
        if any(is_mark(line) for line in text.splitlines()):
            raise UnmergedError(path, ArtifactPaths.of_lock(path)) from problem
        raise SkillcError(f"the lock `{path}` is damaged: it is not JSON", hint=restore) from problem
    version = value.get("format_version") if isinstance(value, Mapping) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        message = f"the lock `{path}` has format {version}, and this skillc reads format {FORMAT_VERSION}"
        raise SkillcError(message, hint="update skillc")
    try:
        return Lock.model_validate(_with_floats(value))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        message = f"the lock `{path}` is damaged: `{where}` {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise SkillcError(message.rstrip("."), hint=restore) from problem


def _with_floats(value: Any) -> Any:
    """Convert the numbers in models to floats; all others stay exact."""
    if isinstance(value, dict) and isinstance(models := value.get("models"), dict):
        return {**value, "models": {role: _plain(model) for role, model in models.items()}}
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
