"""Saved states: from an owner of a `Memory` to a plain mapping, and back after all checks.

Functions for classes that follow another library's rules (scikit-learn, river), and the mixin `Kept` for our own.
`read` fills a new block beside the present one and its owner swaps it in, so a refused state changes nothing.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Container, Iterable, Mapping
from functools import cache
from typing import Any, Self, TypeVar, cast

import numpy as np

from thalweg._core import files
from thalweg._core.archive import SCHEMA
from thalweg._core.guests import memory_only, roll_back, snapshot
from thalweg._core.html import fact_table
from thalweg._core.memory import Layout, Memory
from thalweg._core.recorded import Recorded, build, describe, initialise, parameters
from thalweg._core.state import Block, Past, Plan
from thalweg._core.types import AnyArray
from thalweg._core.validate import short_array, short_repr
from thalweg.errors import StateError

FREE = ("on_violation", "disturbance_bound", "owner", "rng")  # arguments that may differ: the seed is in the state


V = TypeVar("V")


# ---------------------------------------------------------------------------------------------------- for any owner


def settings(owner: Any) -> dict[str, str]:
    """Return all arguments as text: two of a class must agree in them for one to take over the other's state."""
    given = {name: p.default for name, p in parameters(type(owner)).items() if p.kind is not p.VAR_KEYWORD}
    return {name: describe(value) for name, value in (given | owner._arguments()).items() if name not in FREE}


def write(owner: Any, arrays: Mapping[str, AnyArray]) -> dict[str, Any]:
    """Return a state: class, schema, settings, and copies of the arrays."""
    saved: dict[str, object] = {"class": type(owner).__name__, "schema": SCHEMA}
    saved.update({f"settings.{key}": copy.copy(value) for key, value in owner._settings().items()})
    saved.update({key: array.copy() for key, array in arrays.items()})
    return saved


def unfit(owner: object, why: str) -> StateError:
    """Return the error of a refused state."""
    name = type(owner).__name__
    return StateError(f"{name} cannot restore this state: {why}. Restore one that {name}.state() gave, or reset().")


def inside(saved: Mapping[str, V], prefix: str) -> dict[str, V]:
    """Return the entries whose names have a prefix, without it."""
    return {
        key.removeprefix(prefix): value
        for key, value in saved.items()
        if isinstance(key, str) and key.startswith(prefix)
    }


def plain(saved: object) -> Any:
    """Return a saved state with text and numbers that NumPy made arrays of as plain values again."""
    if not isinstance(saved, Mapping):
        return saved  # which is refused
    return {k: v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v for k, v in saved.items()}


def check_kind(owner: Any, saved: object) -> None:
    """Refuse a state of another class, schema or settings."""
    name, noun = type(owner).__name__, owner._noun
    if not isinstance(saved, Mapping) or "class" not in saved:
        got = "a mapping without the key 'class'" if isinstance(saved, Mapping) else type(saved).__name__
        raise StateError(f"{name}.restore needs a mapping made by {name}.state(). Got {got}.")
    if not _agree(saved["class"], name):
        raise StateError(f"{name} cannot restore the state of another {noun}, {saved['class']}.")
    schema = saved.get("schema")
    if isinstance(schema, int | np.integer) and schema > SCHEMA:
        raise StateError(
            f"{name} reads states of schema {SCHEMA}. Got schema {schema}, of a newer thalweg. Upgrade thalweg."
        )
    if not isinstance(schema, int | np.integer) or schema != SCHEMA:
        raise StateError(f"{name} reads states of schema {SCHEMA}. Got schema {schema!r}.")
    mine = owner._settings()
    for key in mine.keys() | {str(k).removeprefix("settings.") for k in saved if str(k).startswith("settings.")}:
        theirs = saved.get(f"settings.{key}")
        if not _agree(theirs, mine.get(key)):
            a, b = _around_difference(_text(theirs), _text(mine.get(key)))
            raise unfit(
                owner,
                f"it was saved with {key} = {a}, this {noun} has {key} = {b}. "
                f"Build the {noun} with the same arguments, or load it from a file",
            )


def check_names(owner: Any, saved: Mapping[str, object], names: Container[str], prefixes: Iterable[str] = ()) -> None:
    """Refuse a state with entries beside its kind, these names and those with these prefixes."""
    read_elsewhere = ("settings.", *prefixes)
    for key in saved:
        if key not in names and key not in ("class", "schema") and not str(key).startswith(read_elsewhere):
            raise unfit(owner, f"it has an entry {short_repr(key)}, which is none of this {owner._noun}'s")


def read(
    owner: object, layout: Layout, saved: Mapping[str, object], square: float = np.inf
) -> tuple[Block, Mapping[str, int]]:
    """Return a new block with a saved state, and its sizes, if a run can have left it."""
    arrays = {  # of numbers, without masks
        key: np.asarray(value)
        for key, value in saved.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
    }
    try:
        sizes = layout.sizes_of(arrays)
        plan = layout.plan(sizes)
    except KeyError as error:
        key = error.args[0]
        raise unfit(owner, f"{key!r} must be an array of numbers. Got {type(saved.get(key)).__name__}") from None
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise unfit(owner, str(error)) from error
    return fill(owner, plan, saved, square), sizes


def fill(owner: object, plan: Plan, saved: Mapping[str, object], square: float = np.inf) -> Block:
    """Return a new block with these arrays: shapes, types and finite numbers are checked before it is allocated."""
    given = {name: _array(owner, saved, name, said.dtype, shape) for name, said, shape in plan.fields()}
    block = Block(plan)
    for name, mine in block.arrays.items():
        mine[...] = given[name]
    past = Past.whole(int(block.state.clock[0]), square)
    damaged = block.damaged(past)
    if damaged:
        raise unfit(owner, f"its {', '.join(damaged)} cannot come from a run")
    return block


def _array(
    owner: object, saved: Mapping[str, object], key: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> AnyArray:
    """Return one array of a saved state, checked."""
    if key not in saved:
        raise unfit(owner, f"it lacks '{key}', {dtype} of shape {shape}")
    given = saved[key]
    try:
        array = np.asarray(given)
        fits = array.shape == shape and array.dtype.newbyteorder("=") == dtype
        got = f"{array.dtype} of shape {array.shape}"
    except Exception:  # whatever a foreign object raises
        fits, got = False, type(given).__name__
    if not fits or np.ma.is_masked(given):
        raise unfit(owner, f"'{key}' must be {dtype} of shape {shape}. Got {'masked ' * fits}{got}")
    if not np.isfinite(array).all():
        raise unfit(owner, f"'{key}' has entries that are nan or infinite")
    return array


def _text(value: object) -> str:
    return value if isinstance(value, str) else short_repr(value)


def _around_difference(a: str, b: str, most: int = 200) -> tuple[str, str]:
    """Return two texts; of long ones the stretch around their first difference."""
    if max(len(a), len(b)) <= most:
        return a, b
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, same - most // 2)
    return f"...{a[start : start + most]}...", f"...{b[start : start + most]}..."


def _agree(theirs: object, mine: object) -> bool:
    """Whether two settings are the same: words exactly, numbers up to the logarithms of another machine."""
    if isinstance(mine, str) or theirs is None:
        return isinstance(theirs, str) and theirs == mine
    try:
        a, b = np.asarray(theirs), np.asarray(mine)
        return a.dtype == b.dtype and a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-12, atol=0.0))
    except Exception:  # no array at all, or one that cannot be compared
        return False


# ------------------------------------------------------------------------------------------------- for classes of ours


def record(made: Any, given: dict[str, object]) -> None:
    """Keep arguments, and set those left out and those given as attributes."""
    made._given = given
    kind = type(made)
    for name, value in _defaults(cast(Any, kind)):  # those left out, too
        setattr(made, name, value)
    for name, value in given.items():
        if not hasattr(getattr(kind, name, None), "__set__"):  # a property
            setattr(made, name, value)


@cache
def _defaults(kind: Any) -> list[tuple[str, object]]:
    """Return the arguments of a class that have a default, unless it has an attribute of that name."""
    found = []
    for name, parameter in parameters(kind).items():
        if inspect.isfunction(getattr(kind, name, None)):
            raise TypeError(f"{kind.__name__}: rename the argument {name!r}, which is a method of it.")
        if parameter.default is not parameter.empty and not hasattr(kind, name):
            found.append((name, parameter.default))
    return found


class Kept:
    """A mixin for classes with recorded arguments and a `Memory`: saving, restoring, copying, showing.

    Notes
    -----
    A class sets `_memory` in its constructor. Its state has a field `clock` whose first entry counts rounds.
    """

    _noun = "learner"  # its name in messages
    _memory: Memory
    _given: dict[str, Any]
    _square_bound = float("inf")  # the largest square norm of a gradient that is accepted

    def __new__(cls, *args: object, **options: object) -> Self:
        """Record the arguments, as attributes too."""
        self = super().__new__(cls, *args, **options)  # `Recorded` comes after this class
        if hasattr(self, "_given"):
            record(self, self._given)
        return self

    @classmethod
    def _explain(cls, count: int, options: Mapping[str, object]) -> None:
        places = [p.name for p in parameters(cls).values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        named = [p for p in parameters(cls).values() if p.kind is p.KEYWORD_ONLY]
        if named and count > len(places):
            needed = [p.name for p in named if p.default is p.empty] or [named[0].name]
            raise TypeError(
                f"{cls.__name__} takes {', '.join(places) or 'nothing'} by position and all else by name: "
                f"{', '.join(p.name for p in named)}. Got {count} arguments by position. "
                f"Write {cls.__name__}({', '.join([*places, *(f'{name}=...' for name in needed)])})."
            )
        known = parameters(cls)
        unknown = [name for name in options if name not in known]
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
            raise TypeError(
                f"{cls.__name__} got an unexpected keyword argument {unknown[0]!r}. It takes {', '.join(known)}."
            )

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return int(self._memory.state.clock[0])

    def reset(self) -> None:
        """Return to the first round."""
        with self._memory.all_or_nothing():
            for guest in self._memory.guests.values():
                guest.reset()
            self._memory.reset()

    def clone(self) -> Self:
        """Return a fresh one with the same arguments, before its first round."""
        fresh: Self = build(type(self), self._given)
        return fresh

    # ------------------------------------------------------------------ stop and resume

    @memory_only
    def state(self) -> dict[str, Any]:
        """Return everything that changes, as a plain mapping of new arrays and numbers (and the name of the class)."""
        found = write(self, self._memory.block.arrays)
        for prefix, guest in self._memory.guests.items():
            found |= {f"{prefix}{key}": value for key, value in guest.state().items()}
        return found

    def restore(self, saved: Mapping[str, object]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        memory, saved = self._memory, plain(saved)
        check_kind(self, saved)
        block, sizes = read(self, memory.layout, saved, self._square_bound)
        with memory.all_or_nothing():
            memory.adopt(block, sizes)
            check_names(self, saved, block.arrays, memory.guests)
            for prefix, guest in memory.guests.items():
                guest.restore(inside(saved, prefix))

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
        self._check_lasting()
        files.write(self, path)

    def _check_lasting(self) -> None:
        """Refuse to save a state that could not be loaded: one that a part of one's own has left."""
        block = self._memory.block
        wrong = sorted(name for name, array in block.arrays.items() if not np.isfinite(array).all())
        wrong = wrong or block.damaged(Past.whole(self.rounds, self._square_bound))
        if wrong:
            raise StateError(
                f"{type(self).__name__}.save: {', '.join(wrong)} are nan, infinite or against the rules of their "
                "fields, so the file could not be loaded. Nothing was written."
            )
        for guest in self._memory.guests.values():
            if isinstance(guest, Kept):
                guest._check_lasting()

    def __copy__(self) -> Self:
        """Return one of its own: a copy that shared the arrays would move with the original."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, object]:
        """Return arguments and words; views, handles and scratch space are made again."""
        memory, owner = self._memory, cast(Recorded, self)
        return {
            "given": self._given,
            "arguments": owner._arguments(),
            "sizes": dict(memory.sizes),
            "words": memory.block.memory.copy(),
            "guests": {prefix: snapshot(guest) for prefix, guest in memory.guests.items()},
            "warned": {prefix: _warnings_given(one) for prefix, one in {"": self, **memory.guests}.items()},
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        record(self, kept["given"])
        initialise(self, kept["arguments"])  # callbacks of its memory call this object, and no other
        memory = self._memory
        block = Block(memory.layout.plan(kept["sizes"]))
        block.memory[:] = kept["words"]
        memory.adopt(block, kept["sizes"])
        for prefix, guest in memory.guests.items():
            roll_back(guest, kept["guests"][prefix])
        for prefix, given in kept["warned"].items():
            vars(memory.guests[prefix] if prefix else self).update(given)

    # ------------------------------------------------------------------ inspection

    def _settings(self) -> dict[str, object]:
        return dict(settings(self))

    def _unfit(self, why: str) -> StateError:
        return unfit(self, why)

    def _who(self) -> str:
        return f"{type(self).__name__}, round {self.rounds + 1}"

    def __repr__(self) -> str:
        shown = _shown(self)
        return f"{type(self).__name__}({shown}{'; ' * bool(shown)}{self.rounds} rounds played)"

    def _repr_html_(self) -> str:
        given = [(name, _show(value)) for name, value in self._given.items() if value is not None]
        size = f"{self._memory.block.memory.nbytes / 1000:.1f} kB of state"
        return fact_table(type(self).__name__, [*given, ("rounds", self.rounds), ("size", size)])


def call_text(made: Recorded) -> str:
    """Return the call that builds an object, as short text."""
    return f"{type(made).__name__}({_shown(made)})"


def _shown(made: Any) -> str:
    """Return recorded arguments as text: the first without its name, none that have their default value."""
    shown: list[str] = []
    for name, value in made._given.items():
        parameter = parameters(type(made)).get(name)
        if parameter is not None and parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not shown:
            shown.append(_show(value))
        elif value is not None and not (parameter and _equal(value, parameter.default)):
            shown.append(f"{name}={_show(value)}")
    return ", ".join(shown)


def _warnings_given(one: object) -> dict[str, object]:
    """Return which warnings were given already."""
    return {name: value for name, value in getattr(one, "__dict__", {}).items() if name.startswith("_warned_of_")}


def _equal(a: object, b: object) -> bool:
    return a is b or (isinstance(a, str | int | float) and isinstance(b, str | int | float) and a == b)


def _show(value: object) -> str:
    """Return an argument as short text."""
    if isinstance(value, np.ndarray | list | tuple) or (isinstance(value, float) and not isinstance(value, bool)):
        try:
            return short_array(value)
        except (TypeError, ValueError):  # rows of different lengths
            return repr(value)
    if callable(value):
        return getattr(value, "__qualname__", None) or repr(value)
    return repr(value)
