"""Preview control: forecast the disturbances, and answer them before they arrive.

Were w_t, w_{t+1}, .. known, the best inputs for sum x'Q x + u'R u would be

    u_t = -K x_t - sum_{j>=0} L_j w_{t+j},   L_j = (R + B'P B)^{-1} B'(F^j)' P                                      (1)

with P and K of the Riccati equation and F = A - B K. `Preview` puts forecasts in their place: an autoregression of each
state's disturbance, by least squares with forgetting,

    w^_{t,m} = theta_{m,1} w_{t-1,m} + .. + theta_{m,p} w_{t-p,m} + theta_{m,p+1}                                   (2)

and (2) again for the rounds after, each forecast no larger than the largest disturbance so far. For a linear model and
a quadratic cost it is best to act on the expected disturbances as if they were certain, so (1) with the conditional
means is optimal where the disturbances are an autoregression with known coefficients.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Memory
from thalweg._core.rules import CLOSE, counter_field, within_bounds
from thalweg._core.state import Past, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count, check_entries, check_positive
from thalweg._kernels.jit import Call
from thalweg.control import _kernels as kernels
from thalweg.control.controller import Controller
from thalweg.control.costs import Cost
from thalweg.control.gains import Design, closed_loop, riccati
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = ["Preview", "PreviewState", "preview_gains"]

LARGEST_DISTURBANCE = 1e60  # squares of it, and products of two squares, can be added up
FORGOTTEN = 1e-3  # the preview ends where its gain is less than this part of the first
LONGEST_PREVIEW = 1000  # rounds of a preview, at most


class PreviewState(NamedTuple):
    """Sums over n = p + 1 regressors of each state's disturbance, and the present round."""

    past: Floats = field("p x", called="past disturbances")  # newest first
    squares: Floats = field("x n n", called="sums")
    products: Floats = field("x n", called="sums")
    largest: Floats = field("x", called="largest disturbances")  # their squares, discounted
    x: Floats = field("x")
    u: Floats = field("u", called="input")
    clock: Ints = counter_field(2)


class Preview(Controller):
    """LQR that answers forecast disturbances in advance.

    Parameters
    ----------
    system, Q, R, disturbance_bound
        As for `LQR`.
    order : int
        p, past disturbances that a forecast is made of; 0 forecasts their mean.
    halflife : float, optional
        Rounds after which a disturbance counts half in the least squares; all count alike when left out.

    Notes
    -----
    It is as fast as LQR up to a few microseconds, knows nothing of the costs but Q and R, and has no guarantee: where
    the disturbances cannot be foreseen it pays a few percent more than LQR. `TrackingControl` hedges it.

    Examples
    --------
    >>> from thalweg.control import LQR, Preview, QuadraticCost, double_integrator, simulate, sinusoid
    >>> mass, cost = double_integrator(), QuadraticCost([1, 1], [1])
    >>> wind = sinusoid(500, [0, 1], bound=0.2, period=40)
    >>> paid = [simulate(one, mass, cost, wind).total_cost for one in (Preview(mass), LQR(mass))]
    >>> round(paid[0] / paid[1], 2)
    0.35
    """

    _longest = LARGEST_DISTURBANCE

    def __init__(
        self,
        system: LinearSystem,
        *,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        order: int = 4,
        halflife: float | None = None,
        disturbance_bound: float | None = None,
    ) -> None:
        design = riccati("Preview", system, Q, R)
        super().__init__(system, gain=design.K, disturbance_bound=disturbance_bound)
        self.Q, self.R = design.Q, design.R
        self.order = p = check_count("Preview", "order", order, least=0)
        check_entries("Preview", "order", order, system.state_dim * (p + 1) ** 2)
        self.halflife = None if halflife is None else check_positive("Preview", "halflife", halflife)
        self.keep = 1.0 if self.halflife is None else 0.5 ** (1 / self.halflife)
        self.preview = preview_gains(system, design)
        self._allocate(PreviewState, {"p": p, "n": p + 1}, moved=self._moved)

    def _moved(self, memory: Memory) -> None:
        self._call = self._ready(memory.state)

    def _holds(self, s: PreviewState, past: Past) -> Iterator[tuple[str, bool]]:
        longest, rounds = self.disturbance_bound or LARGEST_DISTURBANCE, max(past.rounds, 0)
        yield "past disturbances", within_bounds(np.linalg.norm(s.past, axis=1), 0.0, longest * (1 + CLOSE))
        yield "past disturbances", not s.past[rounds:].any()
        yield "largest disturbances", within_bounds(s.largest, 0.0, (longest * (1 + CLOSE)) ** 2)
        if s.past.size:
            newest = s.past[0] ** 2
            yield "largest disturbances", bool((newest <= s.largest).all())
        sizes = np.einsum("xii->xi", s.squares)
        heard = rounds * longest**2 * (1 + CLOSE)
        yield "sums", within_bounds(sizes, 0.0, np.append(np.full(self.order, heard), rounds * (1 + CLOSE)))
        yield "sums", bool((s.squares == s.squares.transpose(0, 2, 1)).all())
        roots = np.sqrt(sizes) * (1 + CLOSE)
        yield "sums", bool((np.abs(s.squares) <= roots[:, :, None] * roots[:, None, :]).all())
        yield "sums", bool((np.abs(s.products) <= roots * math.sqrt(heard) * (1 + CLOSE)).all())
        call, v = self._ready(s)
        call.run()
        yield "input", self._answers(s, v)

    # ------------------------------------------------------------------ a round

    def _ready(self, s: PreviewState) -> tuple[Call, Floats]:
        """Return a call of the preview, and the array that it writes to. The call must outlive its runs."""
        n, v = self.order + 1, np.empty(self.system.input_dim)
        scratch = np.empty((n, n)), np.empty(n), np.empty(self.order)
        return kernels.foresee.ready(s.squares, s.products, s.past, s.largest, self.preview, *scratch, v), v

    def _decide(self, x: Floats) -> Floats:
        call, v = self._call
        call.run()
        return np.asarray(v - self.gain @ x)  # (1)

    def _learn(self, cost: Cost, w: Floats) -> None:
        s, p = self._memory.state, self.order
        rows = np.ones((w.size, p + 1))
        rows[:, :p] = s.past.T
        s.squares[:] = self.keep * s.squares + rows[:, :, None] * rows[:, None, :]
        s.products[:] = self.keep * s.products + rows * w[:, None]
        s.largest[:] = np.maximum(w * w, self.keep * s.largest)
        if p:
            s.past[1:] = s.past[:-1].copy()
            s.past[0] = w


def preview_gains(system: LinearSystem, design: Design) -> Floats:
    """L_0..L_{J-1} of (1), (J, d_u, d_x), as long as they are above a thousandth of the largest."""
    P = design.P
    answer = np.linalg.solve(design.R + system.B.T @ P @ system.B, system.B.T)
    loop, found, largest = closed_loop(system, design.K), list[Floats](), 0.0
    for _ in range(LONGEST_PREVIEW):
        found.append(answer @ P)
        size = float(np.abs(found[-1]).max())
        largest = max(largest, size)
        if not size < np.inf:
            raise InputError("Preview: the gains of the preview are not finite. Scale the states.")
        if size <= FORGOTTEN * largest:
            break
        P = loop.T @ P
    gains = np.array(found)
    gains.flags.writeable = False
    return gains
