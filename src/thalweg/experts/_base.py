"""What an expert is in Python: a description of one, from which the arrays of many are made."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from thalweg._kernels.parts import Floats, place
from thalweg._recorded import Recorded
from thalweg._sound import Past, feasible
from thalweg.domains import Domain

__all__ = ["Expert"]


class Expert(Recorded, ABC):
    """A learner that can be many: alone (`thalweg.Alone`), a member of a `Pool`, or on every interval of a `Cover`.

    Attributes
    ----------
    domain : Domain
        Where it lives.
    size : int
        How many points it keeps: as many projections a round.

    Notes
    -----
    A new expert is one file: a NamedTuple of what changes and one of its settings, both for groups of experts;
    what `start`, `move`, `settle`, ... (`thalweg._kernels.parts`) do for them; and a class with `assemble`.
    """

    domain: Domain
    size = 1

    @classmethod
    @abstractmethod
    def assemble(cls, experts: Sequence[Sequence[Self]]) -> tuple[Any, Any]:
        """The state, all zeros, and the settings of these experts: a sequence of groups, padded to one length."""

    @classmethod
    def look(cls, experts: Sequence[Sequence[Self]], e: Any, c: Any, past: Past) -> Iterator[tuple[str, bool]]:
        """Parts of a saved state of these experts by name, and whether a run can have left them so.

        Here that those alive stand in their domain. One with more to keep sound says so; the numbers are finite.
        """
        places = [place(e, k, i) for k, i in np.argwhere(past.alive)]
        yield "experts' points", feasible(experts[0][0].domain, np.array(places))

    @staticmethod
    def table(experts: Sequence[Sequence[Any]], name: str) -> Floats:
        """A number of each expert, (K, N); groups that are shorter than others repeat their last."""
        N = max(map(len, experts))
        return np.array([[float(getattr(group[min(i, len(group) - 1)], name)) for i in range(N)] for group in experts])

    @property
    def origin(self) -> Floats:
        """Where it starts unless it is told otherwise: the point of the domain nearest to the centre."""
        return np.ascontiguousarray(self.domain.project(self.domain.center).ravel())
