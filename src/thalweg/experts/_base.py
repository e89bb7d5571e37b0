"""Experts in Python: descriptions of one, from which the state of many is planned."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from thalweg._core.implemented import check_implemented
from thalweg._core.recorded import Recorded
from thalweg._core.saving import call_text
from thalweg._core.state import Plan
from thalweg._core.types import Floats
from thalweg._core.validate import short_repr
from thalweg._kernels.parts import move, start
from thalweg.domains._base import Domain

__all__ = ["Expert", "planned"]


class Expert(Recorded, ABC):
    """A learner that can be many: alone (`thalweg.Alone`), a member of a `Pool`, or on every interval of a `Cover`.

    Attributes
    ----------
    domain : Domain
        Where it lives.
    size : int
        How many points it keeps: as many projections a round.
    largest_gradient : float
        The longest gradient that it takes.

    Notes
    -----
    A new expert is one file: a NamedTuple of declared state and one of settings, both for groups of experts;
    implementations of `start`, `move` and, where the defaults do not fit, the others of `thalweg._kernels.parts`; and a
    class with `plan`.
    """

    domain: Domain
    size = 1
    largest_gradient = math.inf

    @classmethod
    @abstractmethod
    def plan(cls, experts: Sequence[Sequence[Self]]) -> Plan:
        """Return the plan of these experts: a sequence of groups, padded to one length."""

    @staticmethod
    def table(experts: Sequence[Sequence[object]], name: str) -> Floats:
        """A number of each expert, (K, N); groups that are shorter than others repeat their last."""
        N, rows = max(map(len, experts)), [[getattr(expert, name) for expert in group] for group in experts]
        return np.array([row + row[-1:] * (N - len(row)) for row in rows], dtype=np.float64)

    def __repr__(self) -> str:
        return call_text(self)

    @property
    def origin(self) -> Floats:
        """The default starting point: the point of the domain nearest to the centre."""
        return np.ascontiguousarray(self.domain.project(self.domain.center).ravel())


def planned(experts: Sequence[Sequence[Expert]]) -> Plan:
    """Return the plan of experts of one kind, once their state is known to have the functions of an expert."""
    kind = type(experts[0][0])
    plan: object = kind.plan(experts)
    if not isinstance(plan, Plan):
        raise TypeError(f"{kind.__name__}.plan must return a Plan. Got {short_repr(plan)}.")
    check_implemented(plan.state, start, move)
    return plan
