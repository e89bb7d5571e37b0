"""Numbers in units of their own past: running mean and spread, without look-ahead."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Fixed, Memory
from thalweg._core.recorded import Recorded
from thalweg._core.rules import counter_field, magnitude, within
from thalweg._core.saving import Kept
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY, check_array, check_count, check_flag
from thalweg._kernels.handle import Handle, parts
from thalweg._kernels.jit import kernel
from thalweg.errors import InputError
from thalweg.parts.spread import MOST_SPREADS, see, spread_holds, standard

__all__ = ["Standardiser"]


class ScaleState(NamedTuple):
    """As `thalweg.parts.spread.SpreadState`, with a number in every column of every row."""

    seen: Floats = field("D", within(0.0, "rounds"))
    mean: Floats = field("D", magnitude(LARGEST_ENTRY))
    squares: Floats = field("D", within(0.0, np.inf))
    spread: Floats = field("D", within(0.0, np.inf))
    clock: Ints = counter_field(1)  # rows


class ScaleSettings(NamedTuple):
    """Whether the mean is subtracted."""

    centred: bool


def _holds(centred: bool, s: ScaleState, c: ScaleSettings, past: Past) -> Iterator[tuple[str, bool]]:
    yield "seen", bool((s.seen == past.rounds).all())
    yield from spread_holds(centred, s, c, past)


@kernel
def _rows(handle: Handle, X: Floats, learn: bool, out: Floats) -> None:
    """out <- every row in units of the rows before it; with `learn` it then counts itself."""
    s, c = parts(handle)
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[t, j] = min(max(standard(s, j, X[t, j]), -MOST_SPREADS), MOST_SPREADS)
            if learn:
                see(s, j, X[t, j], c.centred)
        if learn:
            s.clock[0] += 1


class Standardiser(Kept, Recorded):
    """Columns of numbers, standardised by the mean and spread of the rows seen so far.

    A number is cut to at most 10 spreads. A column that has not varied yet is 0, and so is the first row. When a
    column is multiplied by a power of two nothing changes, to the last bit.

    Parameters
    ----------
    columns : int
        How many there are.
    center : bool
        Whether the mean is subtracted. Without, the spread is the root of the mean square.

    Examples
    --------
    >>> from thalweg.scaling import Standardiser
    >>> scale = Standardiser(1)
    >>> scale.run([[1.0], [3.0], [2.5], [80.0]]).ravel()   # each by the rows before it
    array([ 0. ,  0. ,  0.5, 10. ])
    >>> scale.transform([[80.0]]).round(2), scale.rounds
    (array([[1.73]]), 4)
    """

    _noun = "scale"

    def __init__(self, columns: int, *, center: bool = True) -> None:
        name = type(self).__name__
        self.columns = check_count(name, "columns", columns, most=2**27)
        self.center = check_flag(name, "center", center)
        sizes = {"D": self.columns}
        self._memory = Memory(
            Fixed(Plan(ScaleState, ScaleSettings(self.center), sizes, holds=partial(_holds, self.center)))
        )

    @property
    def mean(self) -> Floats:
        """Of every column so far, a new array; 0 without centring."""
        mean: Floats = self._memory.state.mean.copy()
        return mean

    @property
    def spread(self) -> Floats:
        """The standard deviation of every column so far, a new array."""
        spread: Floats = self._memory.state.spread.copy()
        return spread

    def run(self, rows: ArrayLike) -> Floats:
        """Every row standardised by those before it, a new array; then all of them have been seen."""
        return self._play("run", rows, True)

    def update(self, row: ArrayLike) -> None:
        """See one more row."""
        self._play("update", check_array(f"{type(self).__name__}.update", "row", row, ndim=1)[None], True)

    def transform(self, rows: ArrayLike) -> Floats:
        """Standardise rows by the rows seen so far; return a new array. Nothing changes."""
        return self._play("transform", rows, False)

    def _play(self, method: str, rows: ArrayLike, learn: bool) -> Floats:
        X = check_array(f"{type(self).__name__}.{method}", "rows", rows, ndim=2)
        if X.shape[1] != self.columns:
            raise InputError(f"{self._who()}: rows must have {self.columns} numbers. Got {X.shape[1]}.")
        out = np.empty_like(X)
        _rows(self._memory.handle, X, learn, out)  # one compiled call: nothing can come between
        return out
