"""Declared state: layout, names, checks, copies and growth follow from one declaration.

    class PoolState(NamedTuple):
        members: Any = part()
        weights: Floats = field("K N", simplex, called="members' weights")
        y: Floats = field("K d", inside("domain"))

A state is a plain NamedTuple, so kernels take it directly and type checkers see an array in every field. Declarations
are the default values of its fields, and annotations give the dtypes. Settings are a second NamedTuple: constants, and
scratch space whose contents no round relies on. A `Plan` assigns a number to every size and a plan to every part. A
`Block` is one array of 64-bit words; the state's arrays are views of it, laid out depth first, so each part is a slice.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, Self, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import AnyArray, Floats, Ints
from thalweg._kernels.kinds import address
from thalweg.errors import StateError

WORD = np.dtype(np.int64)  # every entry of a state is one 64-bit word
LINE = 8  # words of a cache line
SCRATCH = 256  # words that a block allocates for scratch space at a time


class Past(NamedTuple):
    """Facts about the history of K groups of N members, known without their state. Dead members do not matter."""

    alive: NDArray[np.bool_]  # (K, N)
    number: Ints  # (K, N) its index, from 1, among all members ever created in its group
    lived: Ints  # (K, N) upper bound on the rounds since its creation
    rounds: int  # rounds of the whole run
    square: float  # the largest square norm of a gradient that was accepted

    @property
    def squares(self) -> Floats:
        """(K, N) the largest possible sums of square norms."""
        return np.multiply(self.lived, self.square, dtype=np.float64)

    @classmethod
    def whole(cls, rounds: int, square: float = np.inf) -> Self:
        """The past of one member that has been alive since the first round."""
        one = np.ones((1, 1), dtype=np.int64)
        return cls(one > 0, one, rounds * one, rounds, square)


# --------------------------------------------------------------------------------------------------------- declarations


class Seen(NamedTuple):
    """A field of a saved state, and everything that a rule may compare it with."""

    value: AnyArray
    shape: tuple[str, ...]  # symbolic
    state: object  # the part that the field belongs to
    past: Past
    facts: Mapping[str, Any]


Rule = Callable[[Seen], bool]


@dataclass(frozen=True)
class Field:
    """One array: its symbolic shape, the rules it obeys, its name in messages and its first value.

    A round uses few entries of a `sparse` one, so fleets do not fetch all of it ahead of time.
    """

    shape: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    called: str = ""
    start: float = 0.0
    sparse: bool = False
    dtype: np.dtype[Any] = WORD  # set from the annotation


class Part:
    """A placeholder for another declared state, or its settings."""


class Nothing(NamedTuple):
    """A state without fields, for an absent part."""


class Several(Part):
    """A placeholder for any number of states of one kind, or their settings: a tuple."""


def field(shape: str, *rules: Rule, called: str = "", start: float = 0.0, sparse: bool = False) -> Any:
    """Declare an array of the state: its shape, such as "K N d", and the rules that it obeys after every round."""
    return Field(tuple(shape.split()), rules, called, start, sparse)


def scratch(shape: str) -> Any:
    """Declare working memory in the settings; it is never saved, copied or part of a snapshot."""
    return Field(tuple(shape.split()))


def part() -> Any:
    """Declare a part; the plan says which one."""
    return Part()


def several() -> Any:
    """Declare parts of one kind, numbered from 0; the plan says how many."""
    return Several()


@cache
def declared(kind: type) -> dict[str, Field | Part]:
    """Return the declarations of a state or of settings, by name."""
    defaults = getattr(kind, "_field_defaults", {})
    hints, found = get_type_hints(kind) if defaults else {}, {}
    for name, said in defaults.items():
        if isinstance(said, Field):
            (scalar,) = get_args(get_args(hints[name])[1])
            said = replace(said, dtype=np.dtype(scalar), called=said.called or name)
        if isinstance(said, Field | Part):
            found[name] = said
    return found


# ---------------------------------------------------------------------------------------------------------------- plans


class Place(NamedTuple):
    """An array of a block."""

    said: Field
    shape: tuple[int, ...]
    first: int  # its first word


class Places(NamedTuple):
    """All arrays of a block."""

    fields: dict[str, Place]
    words: int  # length of the block
    starts: tuple[tuple[str, float], ...]  # the arrays whose first value is not 0


KNOWN = 512  # places that are kept: a learner is built more quickly if there was one of its sizes before
_known: dict[Hashable, Places] = {}


@dataclass(frozen=True)
class Plan:
    """Everything that is needed to build a state.

    Attributes
    ----------
    state : type
        A NamedTuple with declared fields.
    settings : NamedTuple or ()
        Constants; scratch fields and parts are left as declared.
    sizes : mapping
        Values of the letters in symbolic shapes.
    parts : mapping of plans
        One for every declared part.
    facts : mapping
        Values that rules refer to by name, such as the domain.
    holds : callable (s, c, past) -> pairs of a name and a truth value
        Relations between fields.
    pasts : callable (s, c, past) -> mapping of `Past`
        The past of each part or field whose past is not that of the state itself.
    begin : callable (s, c)
        Writes the state before the first round into a block of zeros.
    several : mapping of tuples of plans
        Plans of the parts declared by `several`.
    """

    state: type
    settings: Any
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    parts: Mapping[str, Plan] = dataclasses.field(default_factory=dict)
    facts: Mapping[str, object] = dataclasses.field(default_factory=dict)
    holds: Callable[[Any, Any, Past], Iterator[tuple[str, bool]]] = lambda s, c, past: iter(())
    pasts: Callable[[Any, Any, Past], Mapping[str, Past]] = lambda s, c, past: {}
    begin: Callable[[Any, Any], None] = lambda s, c: None
    several: Mapping[str, tuple[Plan, ...]] = dataclasses.field(default_factory=dict)

    def shape(self, said: Field) -> tuple[int, ...]:
        """Convert a symbolic shape to numbers."""
        sizes = self.sizes
        try:
            return tuple([int(n) if n.isdecimal() else sizes[n] for n in said.shape])
        except KeyError as error:
            raise TypeError(
                f"{self.state.__name__}: the shape {' '.join(said.shape)!r} of {said.called or 'a field'!r} has the "
                f"size {error.args[0]!r}, which the plan does not give. Its sizes: {', '.join(sizes) or 'none'}."
            ) from None

    @cached_property
    def places(self) -> Places:
        """Every array by its dotted name, with its place in the block."""
        key = self._key()
        known = _known.get(key)
        if known is None:
            fields: dict[str, Place] = {}
            words = self._lay_out("", 0, fields)
            starts = tuple((name, place.said.start) for name, place in fields.items() if place.said.start)
            if len(_known) >= KNOWN:
                _known.clear()
            known = _known[key] = Places(fields, words, starts)
        return known

    def _key(self) -> Hashable:
        """Return everything that the places depend on."""
        parts, several = self.parts, self.several
        return (
            self.state,
            tuple(self.sizes.items()),
            tuple([(name, plan._key()) for name, plan in parts.items()]) if parts else (),
            tuple([(name, *[plan._key() for plan in plans]) for name, plans in several.items()]) if several else (),
        )

    def _lay_out(self, prefix: str, at: int, found: dict[str, Place]) -> int:
        """Append the arrays to `found`, with prefixed names, from word `at` on; return the end."""
        for name, said in declared(self.state).items():
            if isinstance(said, Several):
                for k, plan in enumerate(self.several[name]):
                    at = plan._lay_out(f"{prefix}{name}.{k}.", at, found)
            elif isinstance(said, Part):
                at = self.parts[name]._lay_out(f"{prefix}{name}.", at, found)
            else:
                shape = self.shape(said)
                found[prefix + name] = Place(said, shape, at)
                at += math.prod(shape)
        return at

    def fields(self) -> Iterator[tuple[str, Field, tuple[int, ...]]]:
        """Yield every array by its dotted name, depth first: a part is one slice of the block."""
        for name, (said, shape, _) in self.places.fields.items():
            yield name, said, shape

    @property
    def words(self) -> int:
        """Length of the block."""
        return self.places.words

    def starts(self) -> tuple[tuple[str, float], ...]:
        """Return the arrays whose first value is not 0, with that value."""
        return self.places.starts

    @property
    def scratch_words(self) -> int:
        """Length of all scratch space."""
        mine = (value for value in self.settings or () if isinstance(value, Field))
        parts = [*self.parts.values(), *(plan for plans in self.several.values() for plan in plans)]
        return sum(math.prod(self.shape(said)) for said in mine) + sum(plan.scratch_words for plan in parts)


# --------------------------------------------------------------------------------------------------------------- blocks


_budget: ContextVar[list[int] | None] = ContextVar("budget", default=None)  # words left for all new blocks together


@contextmanager
def at_most(budget: list[int]) -> Iterator[None]:
    """Refuse new blocks that together exceed budget[0] words, before they are allocated: for untrusted files."""
    before = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(before)


def _reserve(plan: Plan) -> None:
    budget = _budget.get()
    if budget is not None:
        budget[0] -= plan.words + plan.scratch_words
        if budget[0] < 0:
            raise StateError("The state would be far larger than the file.")


def _words(plan: Plan) -> Ints:
    try:
        return np.zeros(plan.words, WORD)
    except MemoryError:
        raise MemoryError(
            f"A state of these sizes needs {8 * plan.words / 2**30:.3g} GB, more memory than there is. Choose smaller "
            "ones: fewer features, lags or members, a shorter delay."
        ) from None


class Block:
    """One object's memory, and its arrays as views of it.

    Attributes
    ----------
    memory : array of int64
        The state, word by word.
    arrays : mapping
        The arrays by their names in files.
    state, settings : NamedTuple
        The same arrays, and constants with scratch space, as kernels take them.
    """

    __slots__ = ("arrays", "memory", "plan", "settings", "state")

    def __init__(self, plan: Plan, memory: Ints | None = None) -> None:
        _reserve(plan)
        self.plan = plan
        self.memory = memory = _words(plan) if memory is None else memory
        self.arrays = {
            name: np.ndarray(shape, said.dtype, memory, 8 * first)
            for name, (said, shape, first) in plan.places.fields.items()
        }
        self.state = _tree(plan, iter(self.arrays.values()))
        self.settings = _settings(plan, _Scratch())

    @classmethod
    def fresh(cls, plan: Plan) -> Self:
        """Allocate a block in the state before the first round."""
        block = cls(plan)
        for name, value in plan.starts():
            block.arrays[name][...] = value
        plan.begin(block.state, block.settings)
        return block

    def part(self, name: str) -> Block:
        """Return the block of a part: the same memory and the same settings."""
        plan, prefix = self.plan.parts[name], f"{name}."
        block = Block.__new__(Block)
        block.plan = plan
        block.arrays = {key.removeprefix(prefix): array for key, array in self.arrays.items() if key.startswith(prefix)}
        first = next((place.first for key, place in self.plan.places.fields.items() if key.startswith(prefix)), 0)
        block.memory = self.memory[first : first + sum(array.size for array in block.arrays.values())]
        block.state, block.settings = getattr(self.state, name), getattr(self.settings, name)
        return block

    def moved(self, plan: Plan) -> Block:
        """Copy the numbers into a block of other sizes; new entries get their first value."""
        other = Block(plan)
        for name, value in plan.starts():
            other.arrays[name][...] = value
        for name, theirs in other.arrays.items():
            mine = self.arrays[name]
            if mine.shape == theirs.shape:
                theirs[...] = mine
            else:
                both = tuple([slice(0, min(n)) for n in zip(mine.shape, theirs.shape, strict=True)])
                theirs[both] = mine[both]
        return other

    def damaged(self, past: Past) -> list[str]:
        """Return the names of all fields and relations that do not hold."""
        with np.errstate(all="ignore"):
            return sorted({name for name, fine in _look(self.plan, self.state, self.settings, past) if not fine})


def _tree(plan: Plan, arrays: Iterator[AnyArray]) -> Any:
    """Return the state of a plan with these arrays, depth first."""
    return plan.state._make(  # type: ignore[attr-defined]  # a NamedTuple
        [
            tuple([_tree(one, arrays) for one in plan.several[name]])
            if isinstance(said, Several)
            else _tree(plan.parts[name], arrays)
            if isinstance(said, Part)
            else next(arrays)
            for name, said in declared(plan.state).items()
        ]
    )


class _Scratch:
    """Working memory of a block. Each array begins with a cache line, and all are close together.

    Wherever an allocator happens to put them, rounds of the same learner take up to a fifth longer in some processes.
    """

    def __init__(self) -> None:
        self._memory, self._taken = np.zeros(0, WORD), 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        """Return an array of zeros."""
        words = -(-math.prod(shape) // LINE) * LINE
        if self._taken + words > self._memory.size:
            memory = np.zeros(max(words, SCRATCH) + LINE, WORD)
            first = -address(memory) // WORD.itemsize % LINE
            self._memory, self._taken = memory[first : first - LINE], 0
        self._taken += words
        return np.ndarray(shape, dtype, self._memory, WORD.itemsize * (self._taken - words))


def _settings(plan: Plan, scratch: _Scratch) -> Any:
    """Return the settings of a plan with those of its parts and new scratch space."""
    if not plan.settings:
        return plan.settings
    kind: Any = type(plan.settings)
    made = list(plan.settings)
    for at, name, said in _left_open(kind):
        value = made[at]
        if isinstance(value, Field):
            made[at] = scratch.array(plan.shape(value), said.dtype)
        elif isinstance(value, Several):
            made[at] = tuple([_settings(one, scratch) for one in plan.several[name]])
        elif isinstance(value, Part):
            made[at] = _settings(plan.parts[name], scratch)
    return kind._make(made)


@cache
def _left_open(kind: Any) -> list[tuple[int, str, Any]]:
    """Return place, name and declaration of the settings that the plan need not give."""
    return [(kind._fields.index(name), name, said) for name, said in declared(kind).items()]


def _obeys(plan: Plan, name: str, rule: Rule, seen: Seen) -> bool:
    """Whether a field obeys a rule; a TypeError where the rule cannot say."""
    where, facts = f"the rule of {name!r} in {plan.state.__name__}", ", ".join(plan.facts) or "none"
    try:
        fine: object = rule(seen)
    except (KeyError, AttributeError) as error:
        what = error.args[0] if isinstance(error, KeyError) else getattr(error, "name", error)
        raise TypeError(f"{where} needs {what!r}, which is no field and no fact. The plan's facts: {facts}.") from error
    if not isinstance(fine, bool | np.bool_):
        raise TypeError(f"{where} must return True or False. Got {fine!r}: write inside('domain'), not inside.")
    return bool(fine)


def _look(plan: Plan, s: object, c: object, past: Past) -> Iterator[tuple[str, bool]]:
    """Yield (name, holds) for every rule and relation of a state."""
    pasts = plan.pasts(s, c, past)
    for name, said in declared(plan.state).items():
        value = getattr(s, name)
        if isinstance(said, Several):
            for one, settings, its in zip(value, getattr(c, name), plan.several[name], strict=True):
                yield from _look(its, one, settings, pasts.get(name, past))
        elif isinstance(said, Part):
            theirs = getattr(c, name, ()) if isinstance(getattr(plan.settings, name, None), Part) else ()
            yield from _look(plan.parts[name], value, theirs, pasts.get(name, past))
        else:
            seen = Seen(value, said.shape, s, pasts.get(name, past), plan.facts)
            yield from ((said.called, _obeys(plan, name, rule, seen)) for rule in said.rules)
    yield from plan.holds(s, c, past)
