"""Numbers in units of their own past: running mean and spread, without look-ahead."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.jit import kernel
from thalweg._kernels.parts import Floats
from thalweg._kernels.scaling import MOST, Spread, new_spread, see, standard
from thalweg._stateful import Stateful
from thalweg._types import Array
from thalweg._validate import check_array, check_count, check_flag
from thalweg.errors import InputError

__all__ = ["Standardiser"]


@kernel
def _rows(s: Spread, X: Floats, centred: bool, learn: bool, out: Floats) -> None:
    """out <- every row in units of the rows before it; with `learn` it then counts itself."""
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[t, j] = min(max(standard(s, j, X[t, j]), -MOST), MOST)
            if learn:
                see(s, j, X[t, j], centred)


class Standardiser(Stateful):
    """Columns of numbers, standardised by the mean and spread of what was seen so far.

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
        self._spread = new_spread(self.columns)
        self._arrays = self._spread._asdict()

    def _restart(self) -> None:
        for array in self._spread:
            array[:] = 0.0

    @property
    def rounds(self) -> int:
        """Rows seen so far."""
        return int(self._spread.seen[0])

    @property
    def mean(self) -> Array:
        """Of every column so far, a new array; 0 without centring."""
        return self._spread.mean.copy()

    @property
    def spread(self) -> Array:
        """The standard deviation of every column so far, a new array."""
        return self._spread.spread.copy()

    def run(self, rows: ArrayLike) -> Array:
        """Every row standardised by those before it, a new array; then all of them have been seen."""
        return self._play("run", rows, True)

    def update(self, row: ArrayLike) -> None:
        """See one more row."""
        self._play("update", np.asarray(row)[None], True)

    def transform(self, rows: ArrayLike) -> Array:
        """Rows standardised by what was seen so far, a new array. Nothing changes."""
        return self._play("transform", rows, False)

    def _play(self, method: str, rows: ArrayLike, learn: bool) -> Array:
        X = check_array(f"{type(self).__name__}.{method}", "rows", rows, ndim=2)
        if X.shape[1] != self.columns:
            raise InputError(f"{self._who()}: rows must have {self.columns} numbers. Got {X.shape[1]}.")
        out = np.empty_like(X)
        _rows(self._spread, X, self.center, learn, out)  # one compiled call: nothing can come between
        return out

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        seen, squares = read["seen"], read["squares"]
        yield "counts", bool((seen % 1 == 0).all() and (seen >= 0).all() and (seen == seen[0]).all())
        yield "squares", bool((squares >= 0).all() and (squares[seen == 0] == 0).all())
        yield "spread", np.allclose(read["spread"] ** 2 * seen, squares, rtol=1e-9, atol=0.0)
        yield "mean", not read["mean"][(seen == 0) | (not self.center)].any()
