"""Saving, restoring and copying of estimators that follow another library's rules (scikit-learn, river).

The constructor of such a class keeps the arguments and does nothing else; everything that is learned comes with the
first row. The class has the mixin `Fitted` in front of that library's bases, and adds `_facts`, `_prefix` and
`_restored`. Everything learned is in `_models`, the facts and `_fitted_with`; these change together, in one assignment.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from thalweg._core import files, saving
from thalweg._core.archive import ARRAY_KINDS
from thalweg._core.memory import Memory
from thalweg._core.recorded import parameters
from thalweg._core.validate import short_repr
from thalweg.errors import StateError

DEEPEST = 8  # tuples in tuples


class Model(Protocol):
    """A model of one target."""

    @property
    def memory(self) -> Memory:
        """The memory of what it has learned."""

    @property
    def rounds(self) -> int:
        """Rows learned so far."""


Words = NDArray[np.generic]  # names of features, or classes
Facts = Mapping[str, Any]  # fitted attributes that sizes follow from
FactReaders = Mapping[str, Callable[[object], Any]]
SavedModels = Callable[[int], Mapping[str, Any]]  # the saved arrays of model i


class Fitted:
    """A mixin for an estimator whose models come with the first row: arguments, saving, restoring, copying.

    Attributes
    ----------
    _noun : str
        Its name in messages.
    _facts : mapping
        Names of the facts, and functions that read saved ones. They raise an error where one cannot be used.
    _prefix : str
        Prefix of the names of arrays in saved states; "{}" is the number of a model.
    """

    _noun = "estimator"
    _facts: ClassVar[FactReaders]
    _prefix: str
    _models: tuple[Model, ...]
    _fitted_with: dict[str, str]

    def _restored(self, facts: Facts, saved: SavedModels) -> tuple[Model, ...]:
        """Return models for these facts."""
        raise NotImplementedError

    # ------------------------------------------------------------------ arguments

    _settings = saving.settings

    def _arguments(self) -> dict[str, object]:
        """Return the arguments as they are now."""
        return {name: getattr(self, name) for name in parameters(type(self))}

    def _is_fitted(self) -> bool:
        """Whether there is a model."""
        return "_models" in vars(self)

    @property
    def rounds(self) -> int:
        """Rows learned so far."""
        return self._models[0].rounds if self._is_fitted() else 0

    # ------------------------------------------------------------------ all or nothing

    def _shadow(self) -> Self:
        """Return another object with the same attributes, to try something on. `_learned` makes its attributes ours."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def _learned(self, other: object, **fitted: object) -> None:
        """Take over the attributes of a shadow and these, all at once."""
        self.__dict__ = {**vars(other), **fitted, "_fitted_with": self._settings()}

    # ------------------------------------------------------------------ stop and resume

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as a plain mapping of new arrays, numbers and lists."""
        saved = saving.write(self, {})
        if not self._is_fitted():
            return saved
        self._check_unchanged()
        for name in self._facts:
            if name in vars(self):
                saved |= _plain(f"facts.{name}", getattr(self, name))
        for i, model in enumerate(self._models):
            prefix = self._prefix.format(i)
            saved |= {prefix + name: array.copy() for name, array in model.memory.block.arrays.items()}
            for inner, guest in model.memory.guests.items():
                saved |= {f"{prefix}{inner}{name}": value for name, value in guest.state().items()}
        return saved

    def restore(self, saved: Mapping[str, object]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        saved = saving.plain(saved)
        saving.check_kind(self, saved)
        fitted: dict[str, object] = {}
        if any(str(key).startswith(self._prefix.format(0)) for key in saved):
            try:
                fitted = {
                    name: read(_saved_fact(self, saved, f"facts.{name}"))
                    for name, read in self._facts.items()
                    if f"facts.{name}" in saved
                }
                models = self._restored(fitted, lambda i: saving.inside(saved, self._prefix.format(i)))
            except StateError:
                raise
            except Exception as error:
                raise saving.unfit(self, f"its facts cannot be used: {error}") from error
            if len({one.rounds for one in models}) > 1:
                raise saving.unfit(self, "its classes have not learned the same number of rows")
            fitted |= {"_models": models, "_fitted_with": self._settings()}
        gone = {*self._facts, "_models", "_fitted_with"}
        other = self._shadow()
        other.__dict__ = {key: value for key, value in vars(self).items() if key not in gone} | fitted
        saving.check_names(self, saved, other.state())
        self.__dict__ = vars(other)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: class, arguments and state. `thalweg.load` continues from there, bit for bit.

        The file is replaced in one step: a crash leaves the old one. It holds no functions or objects of yours: names
        of features and classes must be words, numbers, or tuples of them.
        """
        for name in self._facts if self._is_fitted() else ():
            if name in vars(self):
                _check_savable(self, getattr(self, name))
        files.write(self, path)

    def __copy__(self) -> Self:
        """Return one of its own: a copy that shared the arrays would move with the original."""
        return copy.deepcopy(self)

    def _check_unchanged(self) -> None:
        """Refuse to save if arguments were changed after it was fitted: the file could not be loaded."""
        for key, now in self._settings().items():
            then = self._fitted_with.get(key)
            if now != then:
                raise StateError(
                    f"{type(self).__name__} was fitted with {key} = {then}, and {key} was set to {now} since. Fit it "
                    f"again, or set {key} back, before its state is saved."
                )


# ---------------------------------------------------------------------------------------------------------------- facts


def words(value: object) -> Words:
    """Read a saved list of names, as a new array."""
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise ValueError(f"a list of names is needed. Got {short_repr(value)}")
    return value.copy()


def read_names(value: object) -> dict[Hashable, int]:
    """Read saved names of features, with their positions, which count from 1."""
    saved = words(value)
    names = {name: place for place, name in enumerate(saved, 1)}
    if len(names) < len(saved):
        raise ValueError("two features have one name")
    return names


def _plain(key: str, value: object) -> dict[str, object]:
    """Return a fact as a state holds it: names as a list, with the type of their array."""
    if isinstance(value, dict):
        return {key: list(value), f"{key}.dtype": "object"}
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {key: value.tolist(), f"{key}.dtype": str(value.dtype)}
    return {key: value.copy() if isinstance(value, np.ndarray) else value}


def _saved_fact(owner: object, saved: Mapping[str, object], key: str) -> object:
    """Return a fact from a state: the inverse of `_plain`, with names as an array."""
    value = saved[key]
    if f"{key}.dtype" not in saved:
        return value
    kind = str(saved[f"{key}.dtype"])
    if not isinstance(value, list) or not (kind == "object" or (kind[:2] == "<U" and kind[2:].isdecimal())):
        raise saving.unfit(owner, f"'{key}' must be a list of words")
    found = np.empty(len(value), dtype=object)
    found[:] = value
    return found if kind == "object" else found.astype(str)


def _check_savable(owner: object, fact: object) -> None:
    """Refuse names and classes that no file can hold."""
    if isinstance(fact, np.ndarray) and fact.dtype.kind not in "OU":
        if fact.dtype.kind not in ARRAY_KINDS or fact.dtype.itemsize > 8:
            raise _unsavable(owner, f"classes of type {fact.dtype}")
    elif isinstance(fact, np.ndarray | dict):
        for name in fact:
            if not _can_be_read(name, 0):
                raise _unsavable(owner, f"{short_repr(name)}, a {type(name).__name__}")


def _unsavable(owner: object, what: str) -> StateError:
    return StateError(
        f"{type(owner).__name__} cannot be saved to a file with {what}, among its names or classes: use words, whole "
        "numbers or tuples of them. Copies and pickles work."
    )


def _can_be_read(name: object, depth: int) -> bool:
    """Whether a file gives this name back as one that is equal to it."""
    if type(name) is tuple:
        return depth < DEEPEST and all(_can_be_read(one, depth + 1) for one in name)
    try:
        again = json.loads(json.dumps(name.item() if isinstance(name, np.generic) else name))
        return isinstance(again, str | int | float | None) and bool(again == name) and hash(again) == hash(name)
    except (TypeError, ValueError, OverflowError):
        return False
