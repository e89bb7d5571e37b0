"""What every learner and controller is: built from arguments, and a state of named arrays that can be saved.

The arguments are recorded as they were given, so that `repr` shows them and `clone` builds a fresh one. All that
changes lies in `_arrays`; `state` copies it, `restore` checks a copy and writes it back, bit for bit. `save` puts the
arguments and the state into a file (`thalweg.files`).
"""

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from thalweg import files
from thalweg._interrupts import interrupts
from thalweg._recorded import Recorded, build, describe, parameters
from thalweg._validate import check_count, told
from thalweg.domains._base import show
from thalweg.errors import InputError, StateError
from thalweg.files import SCHEMA

__all__ = ["Savable", "Stateful", "inside", "named_arrays", "refill"]

FREE = ("on_violation", "disturbance_bound", "owner", "rng")  # what to refuse, who speaks; the seed is in the state
Tree = TypeVar("Tree")
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


def refill(tree: Tree, arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> Tree:
    """The same tree of NamedTuples with these arrays in it, by the names that `named_arrays` gives them."""
    fields: Any = tree
    filled: Tree = fields._replace(**{
        name: refill(part, arrays, f"{prefix}{name}.") if isinstance(part, tuple) else arrays.get(prefix + name, part)
        for name, part in fields._asdict().items()
    })  # fmt: skip
    return filled


def inside(saved: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The state of a learner inside another one, which is saved under a prefix."""
    return {
        key.removeprefix(prefix): value
        for key, value in saved.items()
        if isinstance(key, str) and key.startswith(prefix)
    }


class Savable(Recorded):
    """What has arguments and can be saved: `state` gives a mapping, `restore` takes one of its own kind."""

    _noun = "learner"  # what it is called in messages

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Rounds played so far."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything that changes, as a plain mapping."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: class, arguments and state. `thalweg.load` continues from there, bit for bit.

        The file is replaced in one step: a crash leaves the old one. It holds no functions of yours, such as the
        projection of a `Custom` set: `load` takes them again.

        Examples
        --------
        >>> import os, tempfile, thalweg as tw
        >>> learner = tw.Tracker(tw.domains.Ball(2, radius=5.0))
        >>> learner.update([1.0, 0.0], 3.0)
        >>> path = os.path.join(tempfile.mkdtemp(), "tracker.npz")
        >>> learner.save(path)
        >>> again = tw.load(path)
        >>> again, bool((again.decision == learner.decision).all())
        (Tracker(Ball(2, radius=5); 1 rounds played), True)
        """
        files.write(self, path)

    def _settings(self) -> dict[str, Any]:
        """What two of a class must agree in for one to take over the other's state: all arguments, by `describe`."""
        given = {name: p.default for name, p in parameters(type(self)).items() if p.kind is not p.VAR_KEYWORD}
        return {name: describe(value) for name, value in (given | self._arguments()).items() if name not in FREE}

    def _migrated(self, saved: Any) -> Any:
        """A saved state in the present schema; text and numbers that NumPy made arrays of are plain again."""
        if not isinstance(saved, Mapping):
            return saved  # which is refused
        plain = {k: v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v for k, v in saved.items()}
        while (step := MIGRATE.get(_whole(plain.get("schema")))) is not None and plain.get("class"):
            plain = step(self, plain)
        return plain

    def _check_kind(self, saved: Mapping[str, Any]) -> None:
        """Whether a state was saved by one of this class with the same settings."""
        name = type(self).__name__
        if not isinstance(saved, Mapping) or "class" not in saved:
            got = "a mapping without the key 'class'" if isinstance(saved, Mapping) else type(saved).__name__
            raise StateError(f"{name}.restore needs a mapping made by {name}.state(). Got {got}.")
        if not _agree(saved["class"], name):
            raise StateError(f"{name} cannot restore the state of another {self._noun}, {saved['class']}.")
        schema = saved.get("schema")
        if _whole(schema) > SCHEMA:
            raise StateError(
                f"{name} reads states up to schema {SCHEMA}. Got schema {schema}, of a newer thalweg. Upgrade thalweg."
            )
        if _whole(schema) != SCHEMA:
            raise StateError(f"{name} reads states of schema {min(MIGRATE)} to {SCHEMA}. Got schema {schema!r}.")
        mine = self._settings()
        optional = {name: p.default for name, p in parameters(type(self)).items() if p.default is not p.empty}
        defaults = {f"settings.{name}": describe(value) for name, value in optional.items() if name in mine}
        saved = defaults | dict(saved)  # what was saved before there was this argument has its default
        for key in mine.keys() | {str(k).removeprefix("settings.") for k in saved if str(k).startswith("settings.")}:
            theirs = saved.get(f"settings.{key}")
            if not _agree(theirs, mine.get(key)):
                a, b = _apart(_text(theirs), _text(mine.get(key)))
                raise self._unfit(
                    f"it was saved with {key} = {a}, this {self._noun} has {key} = {b}. "
                    f"Build the {self._noun} with the same arguments, or load it from a file"
                )

    def _unfit(self, why: str) -> StateError:
        name = type(self).__name__
        return StateError(f"{name} cannot restore this state: {why}. Restore one that {name}.state() gave, or reset().")


class Stateful(Savable, ABC):
    """A class with arguments and a state.

    Notes
    -----
    A new one fills `self._arrays` with every array that changes and defines `_restart`, which writes the first round's
    state into them. Every argument becomes an attribute of its name; a constructor may replace it by a checked one.
    """

    _arrays: dict[str, NDArray[Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Record the arguments, as attributes too."""
        self = super().__new__(cls, *args, **options)
        if not hasattr(self, "_given"):
            return self
        for name, parameter in parameters(cls).items():  # those left out, too
            if parameter.default is not parameter.empty and not hasattr(cls, name):
                setattr(self, name, parameter.default)
        for name, value in self._given.items():
            if not isinstance(getattr(cls, name, None), property):
                setattr(self, name, value)
        return self

    @classmethod
    def _explain(cls, count: int, options: Mapping[str, Any]) -> None:
        places = [p.name for p in parameters(cls).values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        named = [p for p in parameters(cls).values() if p.kind is p.KEYWORD_ONLY]
        for old in options.keys() & RENAMED.keys():
            if RENAMED[old] in {*places, *(p.name for p in named)}:
                raise TypeError(f"{cls.__name__} has no argument {old!r}. It is called {RENAMED[old]!r} now.")
        if named and count > len(places):
            needed = [p.name for p in named if p.default is p.empty] or [named[0].name]
            raise TypeError(
                f"{cls.__name__} takes {', '.join(places)} by position and all else by name: "
                f"{', '.join(p.name for p in named)}. Got {count} arguments by position. "
                f"Write {cls.__name__}({', '.join([*places, *(f'{name}=...' for name in needed)])})."
            )

    @abstractmethod
    def _restart(self) -> None:
        """Write the state of the first round into the arrays."""

    @property
    def _lasts(self) -> bool:
        """Whether what was learned is still right when the horizon gets longer."""
        return False

    # ------------------------------------------------------------------ what it tells

    def clone(self) -> Self:
        """A fresh one with the same arguments, before its first round."""
        fresh: Self = build(type(self), self._given)
        return fresh

    def __repr__(self) -> str:
        shown: list[str] = []
        for name, value in self._given.items():
            parameter = parameters(type(self)).get(name)
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
        read = self._read_state(self._migrated(saved))
        with self._all_or_nothing():
            self._write(read)

    def reset(self) -> None:
        """Back to the first round."""
        with self._all_or_nothing():
            self._restart()

    def extended(self, horizon: int) -> Self:
        """Another one for a longer horizon, counted from its first round.

        Where the horizon only sizes something, what was learned is kept and nothing changes but room and warnings.
        Where it tunes, it starts anew, tuned for the rounds that are left and, where it has a `start`, at the present
        decision: each stretch has its own guarantee, and regrets add up. docs/run-in-a-service.md says which is which.

        Examples
        --------
        >>> import thalweg as tw
        >>> learner = tw.CBCE(tw.domains.Ball(2), gradient_bound=1.0, horizon=10)
        >>> learner.update([1.0, 0.0])
        >>> learner.extended(1000)
        CBCE(Ball(2, radius=1), gradient_bound=1, horizon=1000; 1 rounds played)
        >>> learner = tw.Ader(tw.domains.Ball(2), horizon=10, gradient_bound=1.0)
        >>> learner.update([1.0, 0.0])
        >>> learner.extended(1000)
        Ader(Ball(2, radius=1), horizon=999, gradient_bound=1, start=[-1, 0]; 0 rounds played)
        """
        name, present = type(self).__name__, getattr(self, "horizon", None)
        if present is None:
            raise InputError(f"{name} was built without a horizon: it can go on as it is.")
        T, least = check_count(name, "horizon", horizon), max(present, self.rounds + 1)
        if least > T and present != T:
            raise InputError(f"The 'horizon' of {name}.extended must be at least {least} here. Got {horizon!r}.")
        if not (self._lasts or present == T):
            fresh: Self = build(type(self), self._arguments() | self._start_anew(T - self.rounds))
            return fresh
        longer: Self = build(type(self), self._arguments() | {"horizon": T})
        longer.restore(longer._take_over(self.state()))
        return longer

    def _start_anew(self, rounds: int) -> dict[str, Any]:
        """The arguments that change for one that is to play further rounds from here."""
        return {"horizon": rounds}

    def _take_over(self, saved: dict[str, Any]) -> dict[str, Any]:
        """A state of one with another horizon as one of this."""
        return saved | {f"settings.{key}": value for key, value in self._settings().items()}

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """The arrays of a saved state, checked."""
        self._check_kind(saved)
        return self._sound(self._read_arrays(saved, self._arrays))

    def _read_arrays(self, saved: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Those of a saved state that are to be written into these arrays."""
        return {key: self._read_array(saved, key, mine) for key, mine in arrays.items()}

    def _length(self, saved: Mapping[str, Any], key: str) -> int:
        """How many entries an array of a saved state has, where that says how large the others must be."""
        try:
            return np.asarray(saved.get(key)).size
        except Exception:  # rows of different lengths, or whatever an object of somebody else's raises
            raise self._unfit(f"'{key}' must be an array. Got {type(saved.get(key)).__name__}") from None

    def _sound(self, read: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The arrays of a state, if a run can have left them."""
        with np.errstate(all="ignore"):
            damaged = sorted({part for part, fine in self._look(read) if not fine})
        if damaged:
            raise self._unfit(f"its {', '.join(damaged)} cannot be what a run has left")
        return read

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        """Parts of a state by name, and whether a run can have left them so: whatever the next round relies on."""
        yield from ()

    def _read_array(self, saved: Mapping[str, Any], key: str, mine: NDArray[Any]) -> NDArray[Any]:
        """One array of a saved state, as a new one: contiguous, and in this machine's byte order."""
        given = saved.get(key)
        try:
            array = np.asarray(given)
            fits = array.shape == mine.shape and array.dtype.newbyteorder("=") == mine.dtype
            got = f"{array.dtype} of shape {array.shape}"
        except Exception:  # whatever an object of somebody else's raises
            fits, got = False, type(given).__name__
        if not fits or np.ma.is_masked(given):
            raise self._unfit(f"'{key}' must be {mine.dtype} of shape {mine.shape}. Got {'masked ' * fits}{got}")
        if not np.isfinite(array).all():
            raise self._unfit(f"'{key}' has entries that are nan or infinite")
        if key == "clock" and not ((array >= 0) & (array <= 2**62)).all():
            raise self._unfit("its counters are negative, or beyond what can be counted")
        return np.array(array, dtype=mine.dtype, order="C")

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


def _whole(schema: Any) -> int:
    return int(schema) if isinstance(schema, int | np.integer) else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else told(value)


def _apart(a: str, b: str, most: int = 200) -> tuple[str, str]:
    """Two texts; of long ones what is around the place where they part."""
    if max(len(a), len(b)) <= most:
        return a, b
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, same - most // 2)
    return f"...{a[start : start + most]}...", f"...{b[start : start + most]}..."


def _agree(theirs: Any, mine: Any) -> bool:
    """Words must be the same, numbers up to what logarithms of another machine make of them."""
    if isinstance(mine, str) or theirs is None:
        return isinstance(theirs, str) and theirs == mine
    try:
        a, b = np.asarray(theirs), np.asarray(mine)
        return a.dtype == b.dtype and a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-12, atol=0.0))
    except Exception:  # no array at all, or one that cannot be compared
        return False


def _from_2(learner: Any, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Schema 2 had numbers of the learner and its set as settings, which are compared; schema 3 has all arguments."""
    X, system = getattr(learner, "domain", None), getattr(learner, "system", None)
    mine: dict[str, Any] = {"horizon": getattr(learner, "horizon", None) or 0}
    if "settings.domain" in saved and X is not None:
        mine |= {"domain": type(X).__name__, "center": X.center.ravel(), "radius": X.radius, "diameter": X.diameter}
    if "settings.A" in saved and system is not None:
        mine |= {"A": system.A, "B": system.B, "gain": learner.gain}
    for key in ("dim", "rank"):
        if f"settings.{key}" in saved:
            mine[key] = getattr(learner, key, None)
    for key, value in mine.items():
        if f"settings.{key}" in saved and not _agree(saved[f"settings.{key}"], value):
            raise learner._unfit(f"it was saved with {key} = {saved[f'settings.{key}']}, here it is {value}")
    kept = {key: value for key, value in saved.items() if not key.startswith("settings.")}
    return kept | {"schema": 3} | {f"settings.{key}": value for key, value in learner._settings().items()}


MIGRATE: dict[int, Callable[[Any, Mapping[str, Any]], dict[str, Any]]] = {2: _from_2}  # from a schema to the next


def _equal(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, str | int | float) and isinstance(b, str | int | float) and a == b)


def _show(value: Any) -> str:
    """An argument as short text."""
    if isinstance(value, np.ndarray | list | tuple) or (isinstance(value, float) and not isinstance(value, bool)):
        try:
            return show(value)
        except (TypeError, ValueError):  # rows of different lengths
            return repr(value)
    if callable(value):
        return getattr(value, "__qualname__", None) or repr(value)
    return repr(value)
