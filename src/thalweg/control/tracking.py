"""A committee of controllers: each steers a copy of the plant, and those with the lowest costs get the weight.

The plant is linear and its disturbances are recovered, so the cost of every controller can be computed. Member k
steers a copy with the same disturbances and the same first state,

    x^k_{t+1} = A x^k_t + B u^k_t + w_t,   u^k_t its input at x^k_t                                                 (1)

and with weights p_t on the members the input is

    u_t = -K x_t + sum_k p_{t,k} (u^k_t + K x^k_t)                                                                  (2)

Under constant weights p, state and input would be z_t(p) = sum_k p_k (x^k_t, u^k_t): costs are convex in p, and
nothing is truncated. Weights come from the gains of the members over z_t = z_t(p_t),

    q_k = <grad c_t(z_t) + grad c_t(z^k_t), z_t - z^k_t>/2                                                          (3)

which is c_t(z_t) - c_t(z^k_t) for a quadratic cost and the trapezoidal rule for it otherwise, by a jury
(`thalweg.parts.jury`): for every member, without tuning,

    sum_t q_k <= O(sqrt(sum_t max_i q_i^2) log T + max |q| log^2 T)                                                 (4)

as long as sum_k p_k q_k <= 0, which holds for quadratic costs. The state differs from the first part of z_t by e_t with

    e_{t+1} = F e_t + sum_k (p_{t,k} - p_{t+1,k}) x^k_{t+1},   e_1 = 0,   u_t = sum_k p_{t,k} u^k_t - K e_t         (5)

with F = A - B K, so the difference vanishes once the weights settle.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.rules import counter_field, magnitude
from thalweg._core.state import Past, field, part
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY, check_items, short_repr
from thalweg.control import _kernels as kernels
from thalweg.control.controller import ACTED, ROUNDS, Controller
from thalweg.control.costs import Cost
from thalweg.control.gains import riccati
from thalweg.control.lqr import LQR
from thalweg.control.policy import read_gradients
from thalweg.control.preview import LARGEST_DISTURBANCE, Preview
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError
from thalweg.learners.base import Queries
from thalweg.parts.jury import JurySettings, JuryState, begin_jury, jury_plan

__all__ = ["TrackingControl", "TrackingState"]

PREVIEWS = ((4, None), (4, 35.0), (12, None), (1, 14.0))  # orders and half-lives of the members beside LQR


class TrackingState(NamedTuple):
    """States of the N copies of the plant, weights, and the current round."""

    states: Floats = field("N x", magnitude(LARGEST_ENTRY), called="members' states")
    jury: JuryState = part()
    x: Floats = field("x")
    u: Floats = field("u", called="input")
    clock: Ints = counter_field(2)


class TrackingSettings(NamedTuple):
    """Settings of the jury."""

    jury: JurySettings = part()


class TrackingControl(Controller):
    """Follow the best of several controllers: LQR and previews of different lengths, or controllers of your own.

    A good first choice: nothing to tune, no horizon, and no memory length that could be too short.

    Parameters
    ----------
    system, Q, R, disturbance_bound
        As for `LQR`; the members are designed for Q and R.
    members : sequence of Controller, optional
        Controllers of the same system to use instead of LQR and the previews. Fresh copies of them are made.

    Notes
    -----
    A round queries the gradients of the cost at the combined state and at the state of each member.

    Examples
    --------
    >>> from thalweg.control import LQR, QuadraticCost, TrackingControl, double_integrator, simulate, sinusoid
    >>> mass, cost = double_integrator(), QuadraticCost([1, 1], [1])
    >>> wind = sinusoid(500, [0, 1], bound=0.2, period=40)
    >>> paid = [simulate(one, mass, cost, wind).total_cost for one in (TrackingControl(mass), LQR(mass))]
    >>> round(paid[0] / paid[1], 2)
    0.37
    """

    _longest = LARGEST_DISTURBANCE

    def __init__(
        self,
        system: LinearSystem,
        *,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        members: Sequence[Controller] | None = None,
        disturbance_bound: float | None = None,
    ) -> None:
        who = "TrackingControl"
        design = riccati(who, system, Q, R)
        super().__init__(system, gain=design.K, disturbance_bound=disturbance_bound)
        self.Q, self.R = design.Q, design.R
        if members is None:
            previews = [Preview(system, Q=Q, R=R, order=p, halflife=h) for p, h in PREVIEWS]
            chosen: list[Controller] = [LQR(system, Q=Q, R=R), *previews]
        else:
            chosen = [_copy(who, system, one) for one in check_items(who, "members", members, "a list of controllers")]
            if len(chosen) < 2:
                raise InputError(f"The 'members' parameter of {who} must have two controllers or more.")
        N = len(chosen)
        self._allocate(
            TrackingState,
            {"N": N},
            lambda s, c: begin_jury(s.jury, c.jury),
            guests={f"member{k}.": one for k, one in enumerate(chosen)},
            settings=TrackingSettings(),
            jury=jury_plan(np.full(N, 1 / N), 0),
        )

    @property
    def members(self) -> tuple[Controller, ...]:
        """The controllers, each holding the state of its own copy of the plant."""
        return tuple(self._memory.guests.values())

    @property
    def weights(self) -> Floats:
        """p_t, a new array."""
        return np.array(self._memory.state.jury.weights)

    def _holds(self, s: TrackingState, past: Past) -> Iterator[tuple[str, bool]]:
        yield "jury", bool(s.jury.heard[0] == past.rounds)

    # ------------------------------------------------------------------ a round

    def _decide(self, x: Floats) -> Floats:
        s = self._memory.state
        states = s.states if s.clock[ROUNDS] else np.tile(x, (len(s.states), 1))
        inputs = np.array([one._decide(at) for one, at in zip(self.members, states, strict=True)])
        return np.asarray(s.jury.weights @ (inputs + states @ self.gain.T) - self.gain @ x)  # (2)

    def _learn(self, cost: Cost, w: Floats) -> None:
        s, system, members = self._memory.state, self.system, self.members
        if not s.clock[ROUNDS]:
            s.states[:] = s.x
        inputs = np.array([one.act(at) for one, at in zip(members, s.states, strict=True)])
        x, u = s.jury.weights @ s.states, s.jury.weights @ inputs
        c_x, c_u = read_gradients(self._who(), system, cost.gradients(x, u))
        gained = np.empty(len(members))
        for k, (at, answer) in enumerate(zip(s.states, inputs, strict=True)):
            g_x, g_u = read_gradients(self._who(), system, cost.gradients(at.copy(), answer.copy()))
            gained[k] = ((c_x + g_x) @ (x - at) + (c_u + g_u) @ (u - answer)) / 2  # (3)
        if not np.isfinite(gained).all():
            raise InputError(f"{self._who()}: the gradients of the cost are too large.")
        after = s.states @ system.A.T + inputs @ system.B.T + w  # (1)
        for one, then in zip(members, after, strict=True):
            one.observe(cost, then)
        s.states[:] = after
        kernels.believe(self._memory.handle, gained)  # (4)

    # ------------------------------------------------------------------ inspection, stop and resume

    @property
    def queries(self) -> Queries:
        """Projections, gradients and values of the members, and the gradients of (3)."""
        theirs, mine = [one.queries for one in self.members], self.rounds * (1 + len(self.members))
        return Queries(
            sum(one.projections for one in theirs),
            sum(one.gradients for one in theirs) + mine,
            sum(one.values for one in theirs),
        )

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        with self._memory.all_or_nothing():
            super().restore(saved)
            s = self._memory.state
            if any(one.rounds != self.rounds for one in self.members):
                raise self._unfit("its members have played another number of rounds")
            if s.clock[ACTED] and not np.allclose(self._decide(s.x), s.u, rtol=1e-9, atol=1e-12 * np.abs(s.u).max()):
                raise self._unfit("its input is not what its members answer")


def _copy(who: str, system: LinearSystem, one: object) -> Controller:
    """Return a fresh copy of a member."""
    if not isinstance(one, Controller):
        raise InputError(f"The 'members' parameter of {who} must be controllers. Got {short_repr(one)}.")
    if not (np.array_equal(one.system.A, system.A) and np.array_equal(one.system.B, system.B)):
        raise InputError(f"{who}: a member, {one!r}, is for another system. Build it with the same LinearSystem.")
    return one.clone()
