"""Objects that remember the arguments they were built from: to show, compare and save them, and to build them again."""

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

NUMBERS_SHOWN = 8  # numbers of an array that are written out; longer ones are named by a hash of their bytes


CLASSES: dict[str, type] = {}  # every class with recorded arguments that was defined so far, by name


class _Constructor:
    """How a class is called, without self."""

    __slots__ = ("names", "needed", "places", "plain", "signature")

    def __init__(self, kind: type) -> None:
        whole = inspect.signature(kind.__init__)  # type: ignore[misc]
        self.signature = whole.replace(parameters=list(whole.parameters.values())[1:])
        found = self.signature.parameters.values()
        self.names = frozenset(p.name for p in found)
        self.needed = frozenset(p.name for p in found if p.default is p.empty)
        self.places = tuple(p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.plain = all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in found)

    def bind(self, args: tuple[object, ...], options: dict[str, object]) -> dict[str, object]:
        """Return the arguments by name, in the order of the parameters; a TypeError if they do not fit."""
        if self.plain and len(args) <= len(self.places):  # `Signature.bind` takes ten times as long
            given = dict(zip(self.places, args, strict=False))
            if given.keys().isdisjoint(options):
                given.update(options)
                if self.needed <= given.keys() <= self.names:
                    return {name: given[name] for name in self.signature.parameters if name in given}
        bound: dict[str, Any] = self.signature.bind(*args, **options).arguments
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound |= bound.pop(name, {})
        return bound


_CONSTRUCTORS: dict[type, _Constructor] = {}


def _constructor(kind: type) -> _Constructor:
    if kind not in _CONSTRUCTORS:
        _CONSTRUCTORS[kind] = _Constructor(kind)
    return _CONSTRUCTORS[kind]


def parameters(kind: type) -> Mapping[str, inspect.Parameter]:
    """The parameters of a constructor, by name."""
    return _constructor(kind).signature.parameters


class Recorded:
    """Keeps the arguments of its constructor, by name, in `_given`. Arrays and lists are copied."""

    _given: dict[str, Any]

    def __init_subclass__(cls) -> None:
        CLASSES[cls.__qualname__] = cls

    def __new__(cls, *args: object, **options: object) -> Self:
        """Record the arguments."""
        self = super().__new__(cls)
        try:
            given = _constructor(cls).bind(args, options)
        except TypeError:
            cls._explain(len(args), options)
            return self  # the constructor raises the error; a copy is made without arguments
        object.__setattr__(self, "_given", {name: _kept(value) for name, value in given.items()})
        return self

    @classmethod
    def _explain(cls, count: int, options: Mapping[str, object]) -> None:
        """Raise a TypeError for arguments that do not fit, with the right call where it is clear."""

    def _arguments(self) -> dict[str, Any]:
        """Arguments by name that build another one of the kind."""
        return self._given


def _kept(value: object) -> object:
    """An argument that no one else can change."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable or not value.flags.owndata:
            value = value.copy()
            value.flags.writeable = False
        return value
    if type(value) is list:
        return [_kept(item) for item in value]
    if type(value) is tuple:
        kept = tuple(_kept(item) for item in value)
        return value if all(a is b for a, b in zip(kept, value, strict=True)) else kept
    return value


def build(kind: type, arguments: Mapping[str, object]) -> Any:
    """An object from recorded arguments."""
    positional, named = _call(kind, arguments)
    return kind(*positional, **named)


def initialise(made: Any, arguments: Mapping[str, object]) -> None:
    """Run the constructor of an object that was made without arguments, such as a copy."""
    positional, named = _call(type(made), arguments)
    made.__init__(*positional, **named)


def _call(kind: type, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    named = dict(arguments)
    rest = [name for name, parameter in parameters(kind).items() if parameter.kind is parameter.VAR_POSITIONAL]
    return tuple(named.pop(rest[0], ())) if rest else (), named


def public_name(value: object) -> str | None:
    """The name of a class or function of this package, not of one inside another; None for anything else."""
    if not isinstance(value, type | types.FunctionType) or not value.__module__.startswith("thalweg."):
        return None
    name: str = value.__qualname__
    return name if getattr(sys.modules.get(value.__module__), name, None) is value else None


def describe(value: object) -> str:
    """Return an argument as text. Equal texts mean equal arguments, except for functions, which cannot be compared.

    Numbers are written exactly, 2 as 2.0 and as [2]; an array longer than a few numbers by a hash.

    Examples
    --------
    >>> from thalweg.domains import Ball
    >>> describe(Ball(2, radius=1 / 3))
    'Ball(shape=2, radius=0.3333333333333333)'
    """
    if isinstance(value, str):
        return repr(str(value))  # also of NumPy's
    if value is None or isinstance(value, bool | np.bool_):
        return repr(value if value is None else bool(value))
    if isinstance(value, Recorded):
        given = {name: p.default for name, p in parameters(type(value)).items()} | value._arguments()
        shown = [f"{k}={describe(v)}" for k, v in given.items() if v is not None and v is not inspect.Parameter.empty]
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, functools.partial):
        shown = [*map(describe, value.args), *(f"{k}={describe(v)}" for k, v in sorted(value.keywords.items()))]
        return f"partial({', '.join([describe(value.func), *shown])})"
    if isinstance(value, int | float | np.ndarray | np.generic | list | tuple):
        try:
            array = np.asarray(value)
        except ValueError:  # rows of different lengths
            array = np.zeros(0, dtype=object)
        if array.dtype.kind in "fiu":
            return _numbers(array)
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(describe, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{describe(key)}: {describe(item)}' for key, item in value.items()))}}}"
    return public_name(value) or ("function" if callable(value) else type(value).__name__)


def _numbers(array: np.ndarray[Any, Any]) -> str:
    if array.size == 1:
        number = array.item()
        return repr(int(number)) if isinstance(number, float) and number.is_integer() else repr(number)
    if array.size <= NUMBERS_SHOWN and array.ndim == 1:
        return f"[{', '.join(map(_numbers, array))}]"
    content = (np.asarray(array, dtype=np.float64) + 0.0).tobytes()  # 0.0 for -0.0
    digest = hashlib.sha256(content).hexdigest()[:16]
    return f"<{'x'.join(map(str, array.shape))} numbers {digest}>"
