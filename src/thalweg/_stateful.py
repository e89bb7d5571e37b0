"""What every learner and controller is: built from arguments, and a state of named arrays that can be saved.

The arguments are recorded as they were given, so that `repr` shows them and `clone` builds a fresh one. All that
changes lies in `_arrays`; `state` copies it, `restore` checks a copy and writes it back, bit for bit.
"""

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thalweg._interrupts import interrupts
from thalweg.domains._base import show
from thalweg.errors import StateError

__all__ = ["SCHEMA", "Stateful", "facts", "named_arrays"]

SCHEMA = 2  # version of the layout of a saved state
RENAMED = {"loss_range": "loss_bound", "value_bound": "loss_bound", "instance_bound": "gradient_bound"}


def named_arrays(tree: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The arrays of a tree of NamedTuples by name: the points of the experts are "experts.points"."""
    found: dict[str, NDArray[Any]] = {}
    for name, part in zip(tree._fields, tree, strict=True):
        if isinstance(part, tuple):
            found |= named_arrays(part, f"{prefix}{name}.")
        elif isinstance(part, np.ndarray):
            found[prefix + name] = part
    return found


def facts(part: Any, prefix: str = "") -> dict[str, Any]:
    """The numbers, words and arrays that describe an expert or a meta-learner and the parts in it, by name."""
    found: dict[str, Any] = {}
    for name, value in vars(part).items():
        if isinstance(value, int | float | str | np.ndarray):
            found[prefix + name] = value
        elif hasattr(type(value), "assemble"):
            found |= facts(value, f"{prefix}{name}.")
        elif isinstance(value, tuple) and value and hasattr(type(value[0]), "assemble"):
            each = [facts(member) for member in value]
            found |= {f"{prefix}{name}.{key}": np.array([one[key] for one in each]) for key in each[0]}
    return found


class Stateful(ABC):
    """A class with arguments and a state.

    Notes
    -----
    A new one fills `self._arrays` with every array that changes and defines `_restart`, which writes the first round's
    state into them. Every argument becomes an attribute of its name; a constructor may replace it by a checked one.
    """

    _noun = "learner"  # what it is called in messages
    _arrays: dict[str, NDArray[Any]]
    _given: dict[str, Any]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Record the arguments."""
        self = super().__new__(cls)
        try:
            bound = inspect.signature(cls.__init__).bind(self, *args, **options)
        except TypeError:
            _explain(cls, len(args), options)
            return self  # the constructor says what is wrong; a copy is made without arguments
        given = dict(list(bound.arguments.items())[1:])
        for name, parameter in inspect.signature(cls.__init__).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                given |= given.pop(name, {})
        self._given = given
        for name, parameter in inspect.signature(cls).parameters.items():  # those left out, too
            if parameter.default is not parameter.empty and not hasattr(cls, name):
                setattr(self, name, parameter.default)
        for name, value in given.items():
            if not isinstance(getattr(cls, name, None), property):
                setattr(self, name, value)
        return self

    @abstractmethod
    def _restart(self) -> None:
        """Write the state of the first round into the arrays."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Rounds played so far."""

    def _settings(self) -> dict[str, Any]:
        """The numbers that make two of a class interchangeable: a state is restored only where they agree."""
        return {}

    # ------------------------------------------------------------------ what it tells

    def clone(self) -> Self:
        """A fresh one with the same arguments, before its first round."""
        return type(self)(**self._given)

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self).__init__).parameters
        shown: list[str] = []
        for name, value in self._given.items():
            parameter = parameters.get(name)
            if parameter is not None and parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not shown:
                shown.append(_show(value))
            elif value is not None and not (parameter and _equal(value, parameter.default)):
                shown.append(f"{name}={_show(value)}")
        return f"{type(self).__name__}({', '.join(shown)}; {self.rounds} rounds played)"

    def _who(self) -> str:
        return f"{type(self).__name__}, round {self.rounds + 1}"

    # ------------------------------------------------------------------ stop and resume

    def state(self) -> dict[str, Any]:
        """Everything that changes, as a plain mapping of new arrays and numbers (and the name of the class)."""
        saved: dict[str, Any] = {"class": type(self).__name__, "schema": SCHEMA}
        saved.update({f"settings.{key}": copy.copy(value) for key, value in self._settings().items()})
        saved.update({key: array.copy() for key, array in self._arrays.items()})
        return saved

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        self._write(self._read_state(saved))

    def reset(self) -> None:
        """Back to the first round."""
        self._restart()

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """The arrays of a saved state, checked."""
        self._check_kind(saved)
        return self._read_arrays(saved, self._arrays)

    def _read_arrays(self, saved: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Those of a saved state that are to be written into these arrays."""
        read = {key: self._read_array(saved, key, mine) for key, mine in arrays.items()}
        if "clock" in read and not ((read["clock"] >= 0) & (read["clock"] <= 2**62)).all():
            raise self._unfit("its counters are negative, or beyond what can be counted")
        return read

    def _check_kind(self, saved: Mapping[str, Any]) -> None:
        """Whether a state was saved by one of this class with the same settings."""
        name = type(self).__name__
        if not isinstance(saved, Mapping) or "class" not in saved:
            got = "a mapping without the key 'class'" if isinstance(saved, Mapping) else type(saved).__name__
            raise StateError(f"{name}.restore needs a mapping made by {name}.state(). Got {got}.")
        if saved["class"] != name:
            raise StateError(f"{name} cannot restore the state of another {self._noun}, {saved['class']}.")
        if saved.get("schema") != SCHEMA:
            raise StateError(f"{name} reads states of schema {SCHEMA}. Got schema {saved.get('schema')!r}.")
        for key, mine in self._settings().items():
            theirs = saved.get(f"settings.{key}")
            if theirs is None or not np.array_equal(np.asarray(theirs), np.asarray(mine)):
                raise self._unfit(
                    f"it was saved with {key} = {theirs!r}, this {self._noun} has {key} = {mine!r}. "
                    f"Build the {self._noun} with the same arguments"
                )

    def _read_array(self, saved: Mapping[str, Any], key: str, mine: NDArray[Any]) -> NDArray[Any]:
        array = np.asarray(saved.get(key))
        if array.shape != mine.shape or array.dtype != mine.dtype:
            raise self._unfit(
                f"'{key}' must be {mine.dtype} of shape {mine.shape}. Got {array.dtype} of shape {array.shape}"
            )
        if not np.isfinite(array).all():
            raise self._unfit(f"'{key}' has entries that are nan or infinite")
        return array

    def _unfit(self, why: str) -> StateError:
        return StateError(f"{type(self).__name__} cannot restore this state: {why}.")

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        for key, array in read.items():
            self._arrays[key][...] = array

    def __copy__(self) -> Self:
        """One of its own: a copy that shared the arrays would move with the original."""
        return copy.deepcopy(self)

    # ------------------------------------------------------------------ a round that fails has not been

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Around a round in Python: if it ends in an exception, Ctrl-C too, the state is what it was before."""
        before = self._remember()
        try:
            yield
        except BaseException:
            with interrupts():  # a second Ctrl-C waits
                self._return_to(before)
            raise

    def _remember(self) -> Any:
        """All that a round may change."""
        return {key: array.copy() for key, array in self._arrays.items()}

    def _return_to(self, before: Any) -> None:
        """Undo what has changed since `_remember`."""
        self._write(before)


def _explain(cls: type, given: int, options: Mapping[str, Any]) -> None:
    """Arguments that do not fit: how to write the call, where that can be told."""
    parameters = list(inspect.signature(cls).parameters.values())
    places = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    for old in options.keys() & RENAMED.keys():
        if RENAMED[old] in {*places, *(p.name for p in named)}:
            raise TypeError(f"{cls.__name__} has no argument {old!r}. It is called {RENAMED[old]!r} now.")
    if named and given > len(places):
        needed = [p.name for p in named if p.default is p.empty] or [named[0].name]
        raise TypeError(
            f"{cls.__name__} takes {', '.join(places)} by position and all else by name: "
            f"{', '.join(p.name for p in named)}. Got {given} arguments by position. "
            f"Write {cls.__name__}({', '.join([*places, *(f'{name}=...' for name in needed)])})."
        )


def _equal(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, str | int | float) and isinstance(b, str | int | float) and a == b)


def _show(value: Any) -> str:
    """An argument as short text."""
    if isinstance(value, np.ndarray | list | tuple) or (isinstance(value, float) and not isinstance(value, bool)):
        try:
            return show(value)
        except TypeError:
            return repr(value)
    if callable(value):
        return getattr(value, "__qualname__", None) or repr(value)
    return repr(value)
