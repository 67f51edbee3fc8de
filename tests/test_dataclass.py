"""`skillc.dataclass` against the decorator of the standard library, on the same source texts."""

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import re
import sys
import threading
import types
import weakref
from pathlib import Path

import pytest

import skillc
from skillc.dataclass import _Lazy
from skillc.dataclass import dataclass as of_skillc

# Decorated by either of the two; `x` and `y` make objects.
# Packages that a cold `check` or the language server loads.
FRONT = ("syntax", "diagnostics", "document", "gates", "language", "lint", "tools", "lsp")
FROZEN, SLOTS = "@dataclass(frozen=True)\n", "@dataclass(frozen=True, slots=True)\n"
CLASSES = {
    "plain": "@dataclass\nclass C:\n    x: int\n    y: str = 'a'\n",
    "frozen": FROZEN + "class C:\n    x: int\n    y: str = 'a'\n",
    "slots": SLOTS + "class C:\n    x: int\n    y: str = 'a'\n",
    "open slots": "@dataclass(slots=True)\nclass C:\n    x: int\n    y: str = 'a'\n",
    "keywords": "@dataclass(frozen=True, slots=True, kw_only=True)\nclass C:\n    y: str = 'a'\n    x: int\n",
    "keyword fields": (
        SLOTS
        + "class C:\n    x: int\n    y: str = 'a'\n    z: int = field(kw_only=True)\n"
        + "    w: int = field(default=3, kw_only=True, repr=False)\n"
    ),
    "factory": SLOTS + "class C:\n    x: int\n    y: list = field(default_factory=list)\n",
    "compared": (SLOTS + "class C:\n    x: int = field(hash=False)\n    y: str = field(default='', compare=False)\n"),
    "one field": SLOTS + "class C:\n    x: int\n",
    "no field": FROZEN + "class C:\n    pass\n",
    "made later": (
        SLOTS
        + "class C:\n    x: int\n    y: int = field(init=False, repr=False)\n"
        + "    z: dict = field(init=False, default_factory=dict, compare=False)\n"
        + "    w: int = field(init=False, default=4)\n"
        + "    def __post_init__(self):\n        object.__setattr__(self, 'y', self.x + 1)\n"
    ),
    "no equality": "@dataclass(eq=False)\nclass C:\n    x: int\n",
    "no equality, frozen": "@dataclass(frozen=True, slots=True, eq=False)\nclass C:\n    x: int\n",
    "no repr": "@dataclass(eq=False, repr=False)\nclass C:\n    x: int\n",
    "ordered": "@dataclass(frozen=True, slots=True, order=True)\nclass C:\n    x: int\n",
    "own methods": (
        SLOTS
        + "class C:\n    x: int\n    def __repr__(self):\n        return 'me'\n"
        + "    def __hash__(self):\n        return 7\n    @property\n    def twice(self):\n        return 2 * self.x\n"
    ),
    "class variable": (SLOTS + "class C:\n    x: int\n    names: ClassVar[tuple] = ('a',)\n    y: int = 2\n"),
    "base": (
        SLOTS
        + "class B:\n    x: int\n    y: str = 'b'\n"
        + SLOTS
        + "class C(B):\n    z: tuple = ()\n    y: str = 'c'\n"
    ),
    "base with keywords": (
        "@dataclass(frozen=True, slots=True, kw_only=True)\nclass B:\n    y: str = 'b'\n"
        + SLOTS
        + "class C(B):\n    x: int\n"
    ),
    "base without slots": (FROZEN + "class B:\n    x: int\n" + SLOTS + "class C(B):\n    y: int = 1\n"),
    "base of the library": ("@library(frozen=True)\nclass B:\n    x: int\n" + FROZEN + "class C(B):\n    y: int = 1\n"),
    "base below the library": (SLOTS + "class B:\n    x: int\n@library(frozen=True)\nclass C(B):\n    y: int = 1\n"),
    "abstract": (
        "class A(ABC):\n    __slots__ = ()\n    @abstractmethod\n    def f(self): ...\n"
        + SLOTS
        + "class C(A):\n    x: int\n    def f(self):\n        return self.x\n"
    ),
    "generic": "T = TypeVar('T')\n" + SLOTS + "class C(Generic[T]):\n    x: T\n    y: int = 0\n",
    "undecorated below": (SLOTS + "class B:\n    x: int\nclass C(B):\n    def f(self):\n        return self.x\n"),
    "error": FROZEN + "class C(Exception):\n    x: int\n",
}
HEAD = (
    "from __future__ import annotations\nfrom abc import ABC, abstractmethod\n"
    "from dataclasses import dataclass as library\nfrom dataclasses import field\n"
    "from typing import ClassVar, Generic, TypeVar\n"
)


def made(name, decorator, text=None):
    """The class `C` of a text, in a module of its own."""
    module = types.ModuleType(f"made_{decorator.__module__.replace('.', '_')}_{re.sub(r'[^a-z]+', '_', name)}")
    sys.modules[module.__name__] = module
    vars(module)["dataclass"] = decorator
    exec(HEAD + (text or CLASSES[name]), vars(module))
    return module.C


@pytest.fixture(params=CLASSES, scope="module")
def pair(request):
    return made(request.param, of_skillc), made(request.param, dataclasses.dataclass)


def objects(kind):
    """Some objects of a class, by its signature."""
    names = [name for name, each in inspect.signature(kind).parameters.items() if each.default is each.empty]
    every = [*inspect.signature(kind).parameters]
    values = ({name: i for i, name in enumerate(names)}, {name: i + 1 for i, name in enumerate(every)})
    return [kind(**values[0]), kind(**values[0]), kind(**values[1])]


def outcome(work):
    """The result of a call, or its error without the names of the two modules."""
    try:
        return re.sub(r"made_\w+", "made", repr(work()))
    except Exception as problem:
        return type(problem).__name__, re.sub(r"made_\w+", "made", str(problem))


def test_signature_and_fields_are_those_of_the_library(pair):
    one, other = pair
    assert str(inspect.signature(one)) == str(inspect.signature(other))
    assert repr(inspect.signature(one).parameters) == repr(inspect.signature(other).parameters)
    assert one.__init__.__annotations__ == other.__init__.__annotations__

    def listed(kind):
        return [
            (
                each.name,
                each.type,
                each.default,
                each.default_factory,
                each.init,
                each.repr,
                each.hash,
                each.compare,
                each.kw_only,
            )
            for each in dataclasses.fields(kind)
        ]

    assert listed(one) == listed(other)
    assert one.__match_args__ == other.__match_args__
    assert repr(one.__dataclass_params__) == repr(other.__dataclass_params__)
    assert getattr(one, "__slots__", None) == getattr(other, "__slots__", None)
    assert dataclasses.is_dataclass(one)
    assert one.__qualname__ == other.__qualname__


def test_objects_behave_as_those_of_the_library(pair):
    works = [
        lambda a, b, c: a,
        lambda a, b, c: (a == b, a == c, a != c, a == 1),
        lambda a, b, c: hash(a) == hash(b),
        lambda a, b, c: hash(c),
        lambda a, b, c: {a: 1, c: 2},
        lambda a, b, c: a < c,
        lambda a, b, c: setattr(a, "x", 9) or a,
        lambda a, b, c: delattr(b, "x") or b,
        lambda a, b, c: dataclasses.replace(c, x=5),
        lambda a, b, c: dataclasses.asdict(c),
        lambda a, b, c: dataclasses.astuple(c),
        lambda a, b, c: copy.copy(c),
        lambda a, b, c: copy.deepcopy(c),
        lambda a, b, c: pickle.loads(pickle.dumps(c)) == c,
        lambda a, b, c: weakref.ref(c)() is c,
        lambda a, b, c: a.__dict__,
        lambda a, b, c: type(c)(),
        lambda a, b, c: type(c)(1, 2, 3, 4, 5, 6, 7),
        lambda a, b, c: type(c)(unknown=1),
        lambda a, b, c: c.__match_args__,
        lambda a, b, c: isinstance(type(c).__hash__, type(None)),
    ]
    one, other = pair
    for number, work in enumerate(works):
        found, wanted = (outcome(lambda kind=kind, work=work: work(*objects(kind))) for kind in (one, other))
        if other.__hash__ is object.__hash__ and number == 3:
            continue
        if not (one.__repr__ is object.__repr__ or "object at 0x" in str(wanted)):
            assert found == wanted, number


def test_an_unknown_attribute_of_a_frozen_object_is_refused_as_a_field_is():
    """The library says `super(type, obj): obj must be an instance` for slots before Python 3.12."""
    (one, *_) = objects(made("slots", of_skillc))
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'unknown'"):
        one.unknown = 1
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'unknown'"):
        del one.unknown
    (below, *_) = objects(made("undecorated below", of_skillc))
    below.unknown = 1
    assert below.unknown == 1


def test_a_pattern_matches_by_position():
    kind = made("slots", of_skillc)
    match kind(3, "b"):
        case kind(3, word):
            assert word == "b"
        case _:
            raise AssertionError


def test_nothing_is_made_before_it_is_used():
    kind = made("slots", of_skillc)
    assert {name for name, value in vars(kind).items() if isinstance(value, _Lazy)} >= {
        "__init__",
        "__eq__",
        "__repr__",
    }
    kind(1)
    left = {name for name, value in vars(kind).items() if isinstance(value, _Lazy)}
    assert "__init__" not in left
    assert {"__eq__", "__dataclass_fields__"} <= left


def test_mistakes_in_a_class_are_errors_when_it_is_used():
    text = "@dataclass(frozen=True)\nclass C:\n    x: int = 1\n    y: int\n"
    with pytest.raises(TypeError, match="non-default argument 'y' follows default argument"):
        made("mistake", of_skillc, text)(1, 2)


def test_threads_may_be_the_first_to_use_a_class():
    kind = made("factory", of_skillc)
    gate, found = threading.Barrier(8), []

    def work():
        gate.wait()
        found.append((kind(1), hash(kind(1).x), repr(kind(2))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each[2] for each in found] == ["C(x=2, y=[])"] * 8


def test_pydantic_knows_its_objects():
    from pydantic import TypeAdapter

    kind = made("slots", of_skillc)
    assert TypeAdapter(kind).validate_python({"x": "3"}) == kind(3)
    assert TypeAdapter(kind).dump_python(kind(3)) == {"x": 3, "y": "a"}


def modules(*packages):
    for name in packages:
        package = importlib.import_module(f"skillc.{name}")
        yield package
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(each.name)


def test_every_class_of_the_front_end_can_be_made():
    classes = {
        each
        for module in modules(
            "syntax", "diagnostics", "document", "gates", "language", "plan", "budget", "lint", "tools"
        )
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__.startswith("skillc.") and dataclasses.is_dataclass(each)
    }
    assert len(classes) > 120
    for each in classes:
        names = [f.name for f in dataclasses.fields(each) if f.init]
        assert list(inspect.signature(each).parameters) == names or any(f.kw_only for f in dataclasses.fields(each))
        assert "<lambda>" not in each.__init__.__qualname__


def test_the_front_end_uses_this_decorator():
    root = Path(skillc.__file__).parent
    front = [*root.glob("frontend.py"), *(path for name in FRONT for path in (root / name).rglob("*.py"))]
    of_library = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    assert len(front) > 100
    assert not [path for path in front if of_library.search(path.read_text(encoding="utf-8"))]
