"""Meta-learners in Python: descriptions of one, from which the state of many groups is planned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, Self

from thalweg._core.implemented import check_implemented
from thalweg._core.recorded import Recorded
from thalweg._core.saving import call_text
from thalweg._core.state import Plan
from thalweg._core.types import Floats, Ints
from thalweg._kernels.parts import admit, alive, feed, fits, weigh

__all__ = ["OVER", "Meta", "fits_range", "planned"]

OVER = 1.0 + 1e-9  # |r| may exceed its range by rounding


class Ranged(Protocol):
    """Settings with ranges."""

    @property
    def spans(self) -> Floats:
        """(K,)."""


def fits_range(m: object, c: Ranged, k: int, n: int, born: Ints | None, r: Floats) -> bool:
    """`fits` of a meta-learner with a range c.spans[k] for each group."""
    fine = True
    for i in range(n):
        fine = fine and (not alive(born, i) or abs(r[i] / c.spans[k]) <= OVER)
    return fine


class Meta(Recorded, ABC):
    """Weighs the members of a group by their gains over the combination.

    Notes
    -----
    A new one is one file: a NamedTuple of declared state and one of settings, both with a row for each group;
    implementations of `clear`, `admit`, `fits`, `feed` and `weigh` (`thalweg._kernels.parts`); and a class with `plan`.
    """

    @classmethod
    @abstractmethod
    def plan(cls, metas: Sequence[Self], sizes: Sequence[int]) -> Plan:
        """Return the plan of these meta-learners, one for each group, by its number of members."""

    def for_members(self, members: int) -> Meta:
        """Return one for a group that grows to about this size: the same, unless its numbers depend on that."""
        return self

    def check(self, members: int) -> None:
        """Refuse a number of members that the description does not fit."""

    def __repr__(self) -> str:
        return call_text(self)


def planned(metas: Sequence[Meta], sizes: Sequence[int]) -> Plan:
    """Return the plan of meta-learners of one kind, once their state is known to have the functions of one."""
    plan = type(metas[0]).plan(metas, sizes)
    check_implemented(plan.state, admit, fits, feed, weigh)
    return plan
