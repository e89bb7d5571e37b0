"""What a meta-learner is in Python: a description of one, from which the arrays of many groups are made."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from thalweg._kernels.parts import Floats, Ints, alive
from thalweg._recorded import Recorded
from thalweg._sound import Past
from thalweg._validate import check_positive

__all__ = ["LARGEST", "Meta", "Ranged", "Spans", "fits_range"]

LARGEST = 1.0 + 1e-9  # |r| may exceed its range by rounding


def fits_range(m: Any, c: Any, k: int, n: int, born: Ints | None, r: Floats) -> bool:
    """`fits` of a meta-learner with a range c.spans[k] for each group."""
    fine = True
    for i in range(n):
        fine = fine and (not alive(born, i) or abs(r[i] / c.spans[k]) <= LARGEST)
    return fine


class Meta(Recorded, ABC):
    """Says how much each member of a group counts, from how much better than the combination it was.

    Notes
    -----
    A new one is one file: a NamedTuple of what changes and one of its settings, both with a row for each group; what
    `clear`, `admit`, `fits`, `feed` and `weigh` (`thalweg._kernels.parts`) do for them; and a class with `assemble`.
    """

    @classmethod
    @abstractmethod
    def assemble(cls, metas: Sequence[Self], sizes: Sequence[int]) -> tuple[Any, Any]:
        """The state, all zeros, and the settings of these meta-learners, one a group of so many members."""

    @classmethod
    def look(cls, m: Any, c: Any, past: Past) -> Iterator[tuple[str, bool]]:
        """Parts of a saved state by name, and whether a run can have left them so. All numbers are finite."""
        yield from ()

    def check(self, members: int) -> None:
        """Refuse a number of members that the description does not fit."""


class Spans(NamedTuple):
    """The settings of `Ranged` meta-learners."""

    spans: Floats  # (K,) B


class Ranged(Meta):
    """A meta-learner that must know how large the feedback can be.

    Parameters
    ----------
    feedback_range : float
        B >= |r| for every member in every round.
    """

    _state: type[Any]  # its NamedTuple of what changes, all (K, N)

    def __init__(self, feedback_range: float) -> None:
        self.feedback_range = check_positive(type(self).__name__, "feedback_range", feedback_range)

    @classmethod
    def assemble(cls, metas: Sequence[Self], sizes: Sequence[int]) -> tuple[Any, Spans]:
        """See `Meta.assemble`."""
        arrays = np.zeros((len(cls._state._fields), len(metas), max(sizes)))
        return cls._state(*arrays), Spans(np.array([meta.feedback_range for meta in metas]))
