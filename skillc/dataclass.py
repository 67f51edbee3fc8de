"""`dataclass` as in the standard library, with its methods made when they are first used.

The decorator of the standard library writes and compiles six functions for each class, about half a millisecond, which
was the largest part of a cold `check`. Here a class gets its slots at once. Its fields and methods are made when they
are first asked for; code is generated only for `__init__`, `__eq__` and `__hash__`, which need it for their speed.
What this module does not know, such as `order`, is left to the standard library. A type checker sees the decorator of
the standard library.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from dataclasses import Field
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a class a dataclass; the options are those of the standard library."""
        return (lambda each: _made(each, options)) if cls is None else _made(cls, options)


_FIELDS, _PARAMS, _KIND = "__dataclass_fields__", "__dataclass_params__", "__skillc_dataclass__"
_OPTIONS = frozenset(("frozen", "slots", "eq", "repr", "kw_only"))
# A class that defines one of these is left to the standard library, which knows when to replace it.
_OWN = frozenset(
    (
        *("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"),
        *("__slots__", "__match_args__", "__replace__"),
    )
)
_PSEUDO = ("ClassVar", "InitVar", "KW_ONLY")


def _made(cls: type, options: Mapping[str, bool]) -> type:
    own = vars(cls)
    annotations = cls.__annotations__
    is_plain = options.keys() <= _OPTIONS and _OWN.isdisjoint(own) and _are_fields(annotations.values())
    if not (is_plain and _has_known_bases(cls)):
        from dataclasses import dataclass as of_library

        return of_library(cls, **options)
    kind = _Kind(options, {name: own[name] for name in annotations if name in own})
    return kind.with_slots(cls, annotations) if options.get("slots") else kind.in_place(cls)


def _has_known_bases(cls: type) -> bool:
    """Return whether the fields of every base are from here."""
    return all(_KIND in vars(base) or _FIELDS not in vars(base) for base in cls.__mro__[1:-1])


def _are_fields(annotations: Iterable[object]) -> bool:
    """Return whether annotations are texts, and none of them is that of a pseudo-field."""
    return all(isinstance(each, str) and not any(word in each for word in _PSEUDO) for each in annotations)


class _Lazy:
    """An attribute of a class that is made when it is first asked for, and is then replaced by its value."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        value = vars(self._owner).get(self._name)
        if value is self:
            value = self._make(self._owner)
            setattr(self._owner, self._name, value)
        bind = getattr(type(value), "__get__", None)
        return bind(value, instance, owner) if bind is not None else value


class _Factory:
    """What a signature shows for a default that a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Kind:
    """The options and the defaults of a class, and its fields once they are known."""

    __slots__ = ("defaults", "options", "specs")

    def __init__(self, options: Mapping[str, bool], defaults: Mapping[str, Any]) -> None:
        self.options, self.defaults = options, defaults
        self.specs: dict[str, Field[Any]] | None = None

    def with_slots(self, cls: type, annotations: Mapping[str, Any]) -> type:
        """Return the class again with slots for its own fields."""
        inherited = {name for base in cls.__mro__[1:-1] for name in _slots_of(base)}
        bases = (base for base in cls.__mro__[-2:0:-1] if _KIND in vars(base))
        fields = dict.fromkeys((*(name for base in bases for name in base.__annotations__), *annotations))
        left_out = {"__dict__", "__weakref__", *annotations}
        content = {name: value for name, value in vars(cls).items() if name not in left_out}
        slots = tuple(name for name in fields if name not in inherited)
        made = type(cls)(cls.__name__, cls.__bases__, {**content, **self._methods(), "__slots__": slots})
        made.__qualname__ = cls.__qualname__
        return made

    def in_place(self, cls: type) -> type:
        """Give a class its methods, and leave the values of the defaults in it."""
        from dataclasses import MISSING, Field

        for name, value in self._methods().items():
            setattr(cls, name, value)
            if isinstance(value, _Lazy):
                value.__set_name__(cls, name)
        for name, value in self.defaults.items():
            if isinstance(value, Field):
                if value.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, value.default)
        return cls

    def _methods(self) -> dict[str, Any]:
        is_on = self.options.get
        found: dict[str, Any] = {
            _KIND: self,
            _FIELDS: _Lazy(_fields),
            _PARAMS: _Lazy(_params),
            "__init__": _Lazy(_init),
            "__match_args__": _Lazy(_match_args),
            "__replace__": _replaced,
        }
        if is_on("repr", True):
            found["__repr__"] = _Lazy(_repr)
        if is_on("eq", True):
            found |= {"__eq__": _Lazy(_eq), "__hash__": _Lazy(_hash) if is_on("frozen") else None}
        if is_on("frozen"):
            found |= {"__setattr__": _Lazy(_setattr), "__delattr__": _Lazy(_delattr)}
            if is_on("slots"):
                found |= {"__getstate__": _state, "__setstate__": _set_state}
        return found


def _slots_of(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


# ---- fields ---------------------------------------------------------------------------------------


def _specs(cls: Any) -> dict[str, Field[Any]]:
    """Return how each field is declared, those of bases first. They lack what the standard library adds: name, type."""
    kind: _Kind = vars(cls)[_KIND]
    if kind.specs is None:
        from dataclasses import MISSING, Field, field

        found: dict[str, Any] = {}
        for base in cls.__mro__[-2:0:-1]:
            if _KIND in vars(base):
                found.update(_specs(base))
        for name in cls.__annotations__:
            value = kind.defaults.get(name, MISSING)
            found[name] = each = value if isinstance(value, Field) else field(default=value)
            if each.kw_only is MISSING:
                each.kw_only = kind.options.get("kw_only", False)
        kind.specs = found
    return kind.specs


def _fields(cls: Any) -> dict[str, Any]:
    """Return the fields by name as the standard library has them."""
    found: dict[str, Any] = {}
    for base in cls.__mro__[-2:0:-1]:
        if _KIND in vars(base):
            found.update(getattr(base, _FIELDS))
    kind: _Kind = vars(cls)[_KIND]
    off = dict.fromkeys(("init", "repr", "eq", "match_args"), False)
    return {**found, **getattr(_probe(cls, kw_only=kind.options.get("kw_only", False), **off), _FIELDS)}


def _params(cls: Any) -> Any:
    """Return what the standard library keeps of the options."""
    kind: _Kind = vars(cls)[_KIND]
    return getattr(_probe(cls, **{**kind.options, "slots": False}), _PARAMS)


def _probe(cls: Any, **options: bool) -> type:
    """Return a class with the same fields, without those of bases, that the standard library has made."""
    from dataclasses import dataclass as of_library

    kind: _Kind = vars(cls)[_KIND]
    own = {"__annotations__": cls.__annotations__, "__module__": cls.__module__, "__doc__": "."}
    made: type = of_library(**options)(type(cls.__name__, (), {**own, **kind.defaults}))
    return made


def _names(cls: Any, use: Callable[[Any], bool]) -> tuple[str, ...]:
    return tuple(name for name, each in _specs(cls).items() if use(each))


def _match_args(cls: Any) -> tuple[str, ...]:
    return _names(cls, lambda each: each.init and not each.kw_only)


# ---- methods --------------------------------------------------------------------------------------


def _named(function: Any, cls: type) -> Any:
    function.__qualname__ = f"{cls.__qualname__}.{function.__name__}"
    function.__module__ = cls.__module__
    return function


def _compiled(cls: Any, signature: str, body: str, scope: Mapping[str, Any]) -> Any:
    """Return a function in the names of a class's module, with further ones of `scope`."""
    text = f"def make({', '.join(scope)}):\n def {signature}:\n  {body}\n return {signature.partition('(')[0]}"
    module, found = sys.modules.get(cls.__module__), dict[str, Any]()
    exec(text, vars(module) if module is not None else {}, found)
    return _named(found["make"](**scope), cls)


def _repr(cls: Any) -> Callable[[Any], str]:
    from reprlib import recursive_repr

    names = _names(cls, lambda each: each.repr)

    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return recursive_repr()(_named(__repr__, cls))


def _tuple(of: str, names: Iterable[str]) -> str:
    return "(" + "".join(f"{of}.{name}, " for name in names) + ")"


def _eq(cls: Any) -> Callable[[Any, object], bool]:
    names = _names(cls, lambda each: each.compare)
    both = f"{_tuple('self', names)} == {_tuple('other', names)}"
    body = f"return {both} if other.__class__ is self.__class__ else NotImplemented"
    made: Callable[[Any, object], bool] = _compiled(cls, "__eq__(self, other)", body, {})
    return made


def _hash(cls: Any) -> Callable[[Any], int]:
    names = _names(cls, lambda each: each.compare if each.hash is None else each.hash)
    made: Callable[[Any], int] = _compiled(cls, "__hash__(self)", f"return hash({_tuple('self', names)})", {})
    return made


def _setattr(cls: Any) -> Callable[[Any, str, object], None]:
    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        _refuse(cls, self, "assign to", name)
        super(cls, self).__setattr__(name, value)

    return _named(__setattr__, cls)  # type: ignore[no-any-return]  # the same function


def _delattr(cls: Any) -> Callable[[Any, str], None]:
    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        _refuse(cls, self, "delete", name)
        super(cls, self).__delattr__(name)

    return _named(__delattr__, cls)  # type: ignore[no-any-return]  # the same function


def _refuse(cls: Any, self: object, what: str, name: str) -> None:
    if type(self) is cls or name in _specs(cls):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _FIELDS), state, strict=True):
        object.__setattr__(self, name, value)


def _replaced(self: Any, /, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(self, **changes)


# ---- `__init__` -----------------------------------------------------------------------------------


class _WithSlot:
    __slots__ = ("slot",)


_SLOT = type(vars(_WithSlot)["slot"])


def _types(cls: Any) -> dict[str, Any]:
    """Return the annotations of all fields."""
    found: dict[str, Any] = {}
    for base in (*cls.__mro__[-2:0:-1], cls):
        if _KIND in vars(base):
            found.update(base.__annotations__)
    return found


def _init(cls: Any) -> Callable[..., None]:
    """Generate `__init__`. Slots of a frozen class are written directly, without a look at their names."""
    from dataclasses import MISSING

    options = vars(cls)[_KIND].options
    scope: dict[str, Any] = {"_factory": _FACTORY, "_set": object.__setattr__}
    positional, keywords, lines = ["self"], list[str](), list[str]()
    types = _types(cls)
    has_default = False
    for name, each in _specs(cls).items():
        is_made, is_given = each.default_factory is not MISSING, each.default is not MISSING
        scope |= {f"_make_{name}": each.default_factory} if is_made else {}
        scope |= {f"_default_{name}": each.default} if is_given else {}
        made = f"_make_{name}()" if is_made else f"_default_{name}"
        if each.init:
            default = "=_factory" if is_made else f"=_default_{name}" if is_given else ""
            if has_default and not default and not each.kw_only:
                raise TypeError(f"non-default argument {name!r} follows default argument")
            has_default = has_default or bool(default and not each.kw_only)
            (keywords if each.kw_only else positional).append(name + default)
            made = f"{made} if {name} is _factory else {name}" if is_made else name
        elif not is_made and not (is_given and options.get("slots")):
            continue
        if not options.get("frozen"):
            lines.append(f"self.{name} = {made}")
        elif type(slot := getattr(cls, name, None)) is _SLOT:
            scope[f"_set_{name}"] = slot.__set__  # type: ignore[union-attr]  # a slot
            lines.append(f"_set_{name}(self, {made})")
        else:
            lines.append(f"_set(self, {name!r}, {made})")
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    parameters = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
    init: Callable[..., None] = _compiled(cls, f"__init__({parameters})", "\n  ".join(lines or ["pass"]), scope)
    init.__annotations__ = {**{name: types[name] for name, each in _specs(cls).items() if each.init}, "return": None}
    return init
