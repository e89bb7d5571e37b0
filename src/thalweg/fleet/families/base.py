"""The contract of a family: how learners of one kind become seats, and how their streams grow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.memory import Memory
from thalweg._core.state import Block
from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import Kernel
from thalweg.errors import InputError
from thalweg.fleet.chains import Chains
from thalweg.fleet.reading import BatchRows, check_numbers
from thalweg.fleet.seats import StreamSeat

Sizes = tuple[tuple[str, int], ...]  # in the order of their names: a key of classes


class Growth(NamedTuple):
    """Sizes that a stream moves to, and fields to set once it is there, by their names in files."""

    sizes: Sizes
    fields: Mapping[str, Sequence[int]]


class SizeClass(NamedTuple):
    """A class of streams: those of the same sizes."""

    sizes: Sizes
    words: int  # of a block
    rounds_at: int  # the word that counts rounds
    seats: list[StreamSeat]  # of learners of these sizes, one for each thread that has played them; at least one


class Family(ABC):
    """Learners of one kind with the same arguments.

    Parameters
    ----------
    template : learner or estimator
        A fresh one; it is copied, never played.
    columns : tuple of str
        Columns that the user of the fleet names, if the family takes them.

    Attributes
    ----------
    columns : tuple of str
        Columns that rows have beside the target, by name.
    calls : tuple of str
        The calls of a fleet that make sense for it.
    """

    calls: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    takes_columns = False  # that the user of the fleet names
    rounds_at = "clock"  # the array whose first entry counts rounds

    def __init__(self, template: Any, columns: tuple[str, ...] = ()) -> None:
        self.template = template

    @staticmethod
    def refusal(template: Any) -> str:
        """Return the reason why a template cannot be in a fleet, or nothing."""
        return ""

    # ------------------------------------------------------------------ learners

    @abstractmethod
    def memory(self, learner: Any) -> Memory:
        """Return the memory of a learner."""

    @abstractmethod
    def blank(self) -> Any:
        """Return another fresh learner like the template."""

    @abstractmethod
    def tree(self, learner: Any) -> Any:
        """Return the arguments of steps that play this learner."""

    def spare(self, learner: Any) -> list[NDArray[Any]]:
        """Return arrays outside the block that follow from the state."""
        return []

    @abstractmethod
    def grow(self, learner: Any) -> Growth:
        """Return the sizes for another round of a learner that cannot play it yet."""

    def same(self, learner: Any) -> str:
        """Return the reason why a learner does not belong here, or nothing."""
        if type(learner) is not type(self.template):
            return f"it is a {type(learner).__name__}, not a {type(self.template).__name__}"
        mine, theirs = self.template._settings(), learner._settings()
        for key, value in mine.items():
            if theirs.get(key) != value:
                return f"it has {key} = {theirs.get(key)}, the fleet's learners have {value}"
        return ""

    # ------------------------------------------------------------------ rows

    def check(self, rows: BatchRows, target: str, learns: bool) -> None:
        """Note rows with numbers that cannot be played; here any may be missing."""
        if learns:
            check_numbers(rows.bad, target, rows.target, missing=True)
        for j, name in enumerate(self.columns):
            check_numbers(rows.bad, name, rows.columns[:, j], missing=True)

    @abstractmethod
    def batch(self, call: str, chains: Chains, data: Mapping[str, NDArray[Any]]) -> tuple[Kernel[..., Any], Any]:
        """Return the step of a call, and its batch: rows that follow each other so, with these data."""

    @abstractmethod
    def said(self, call: str, batch: Any) -> Floats:
        """Return the results of a batch that was played (n, steps * names): the names of step 1, of step 2, ..."""

    @abstractmethod
    def names(self, call: str) -> tuple[str, ...]:
        """Return the names of the columns of `said`, for one step."""

    def steps(self, call: str) -> int:
        """Return the number of steps in the results of a call."""
        return 1

    def mend(self, batch: Any, row: int, why: int, learner: Any) -> str:
        """Mend a row that was refused, so that it can be played; or return the reason why it cannot."""
        return "it was refused"

    def after(self, batch: Any) -> None:  # noqa: B027  # nothing, unless a family has something to say
        """Warn about a batch that was played."""

    # ------------------------------------------------------------------ for all families

    @property
    def first(self) -> Sizes:
        """Sizes of a fresh stream."""
        return ordered(self.memory(self.template).sizes)

    def sizes(self, learner: Any) -> Sizes:
        """Return the sizes of a learner."""
        return ordered(self.memory(learner).sizes)

    def learner(self, sizes: Sizes, words: Ints | None = None) -> Any:
        """Return an ordinary learner of these sizes, fresh or with the words of a stream."""
        made = self.blank()
        memory = self.memory(made)
        plan = memory.layout.plan(dict(sizes))
        block = Block(plan) if words is not None or sizes != self.first else Block.fresh(plan)
        if words is not None:
            block.memory[:] = words[: block.memory.size]
        memory.adopt(block, dict(sizes))
        return made

    def size_class(self, sizes: Sizes) -> SizeClass:
        """Return a class of streams."""
        plan = self.memory(self.template).layout.plan(dict(sizes))
        return SizeClass(sizes, plan.words, plan.places.fields[self.rounds_at].first, [self.seat(sizes)])

    def seat(self, sizes: Sizes) -> StreamSeat:
        """Return a learner of these sizes as a seat."""
        made = self.learner(sizes)
        return StreamSeat(self.tree(made), self.memory(made).block, self.spare(made), made)

    def words(self, learner: Any) -> Ints:
        """Return the words of a learner as a stream's."""
        spare = [one.reshape(-1).view(np.int64) for one in self.spare(learner)]
        return np.concatenate([self.memory(learner).block.memory, *spare])

    def refuse(self, owner: str, call: str) -> None:
        """Refuse a call that makes no sense for these learners."""
        if call not in self.calls:
            kinds = ", ".join(self.calls)
            raise InputError(f"{owner}: fleets of {type(self.template).__name__} have no {call}. They have {kinds}.")


def ordered(sizes: Mapping[str, int]) -> Sizes:
    """Return sizes as a key of classes."""
    return tuple(sorted((name, int(size)) for name, size in sizes.items()))
