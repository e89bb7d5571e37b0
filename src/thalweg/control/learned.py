"""Controllers that learn a disturbance-action policy: control as online learning of M from its truncated loss.

    u_t = -K x_t + sum_i M_{t,i} w_{t-i}                                                   (1)
    w_t = x_{t+1} - A x_t - B u_t                                                          (2)
    M_{t+1}: the step of a learner on {M : ||M_i|| <= c_i} by the gradient of f_t at M_t   (3)

`GPC`, `ScreamControl` and `EfficientControl` differ in the learner of (3) and in nothing else. f_t, the truncated loss,
is in `thalweg.control.policy`.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Memory
from thalweg._core.rules import counter_field, counters, within_bounds
from thalweg._core.state import Past, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_count, short_repr
from thalweg._kernels.jit import Call
from thalweg.control import _kernels as kernels
from thalweg.control.constants import Constants, estimated_constants
from thalweg.control.controller import ACTED, ROUNDS, Controller
from thalweg.control.costs import Cost
from thalweg.control.gains import riccati
from thalweg.control.policy import DAC, read_gradients
from thalweg.control.system import LinearSystem
from thalweg.domains.spectral_balls import SpectralBalls
from thalweg.errors import InputError
from thalweg.learners.base import Learner, Queries

__all__ = ["LearnedController", "LearnedState"]

LARGEST_DISTURBANCE = 1e60  # of a disturbance, where no bound was given: products of a few can then be added up
LEARNER = "learner."  # the prefix of the learner's names in saved states
SEEN, LENGTH, PRICE, BOUND, LAMBDA = 0, 1, 2, 3, 4  # entries of the array of scales


class LearnedState(NamedTuple):
    """The last P = 2H + 1 disturbances, newest first, the scales of the loss and the present round."""

    past: Floats = field("P x", called="past disturbances")
    known: Ints = field("1", counters, called="past disturbances")  # the number of them before the first round
    scales: Floats = field("5")
    spent: Ints = field("3", counters, called="queries")  # of learners before the last restart
    x: Floats = field("x")
    u: Floats = field("u", called="input")
    clock: Ints = counter_field(2)


class _Seat(dict[str, Learner]):
    """The learner among the guests of a memory, none while the scales are measured, and the scales it was made for."""

    scales: tuple[float, float] = 0.0, 0.0


class _PolicyCalls(NamedTuple):
    """The kernels of a round, and their arrays."""

    action: Call
    truncate: Call
    gradient: Call
    M: Floats
    x: Floats
    u: Floats
    y: Floats
    v: Floats
    c_x: Floats
    c_u: Floats
    r: Floats
    G: Floats


class LearnedController(Controller):
    """The common part of `GPC`, `ScreamControl` and `EfficientControl`.

    Parameters
    ----------
    system, gain, disturbance_bound
        As for every `Controller`; the bound on disturbances has no other use.
    horizon : int
        T, the rounds it is tuned for.
    Q, R : array, vector or number, optional
        Weights of a quadratic cost, in the place of `gain`: K is then the LQR gain for them. Where costs are far from
        x'x + u'u, give them: the learned part adds to K and cannot replace it.
    memory : int, optional
        H; chosen by `estimated_constants` when left out.
    constants : Constants, optional
        The size of policies and the scales of the loss; `estimated_constants(system, gain, memory=memory)` when left
        out.
    on_violation : {"rescale", "clip", "raise"}
        Treatment of a gradient above the bound: measure the scales again, with this gradient among those seen, and
        restart the learner; scale the gradient down and count it; or refuse it. Bounds that were given are not changed:
        "rescale" then scales the gradient down.

    Notes
    -----
    Where the constants do not say G_f and lambda, they are measured: M stays 0, which is the linear controller, until
    2H + 1 rounds have had a gradient that is not zero. Then G_f is the longest of these gradients times
    `constants.margin` (8), and lambda the same factor times the largest

        sum_{j=0..H} (j + 1) ||B'(F^j)'q_t|| ||(w_{t-1-j-i})_{i=1..H}||_F ,

    which is what the round's cost can change, to first order, when M moved by one in every round before. Learning
    starts then. No projection is made before. After a quiet start these scales are too small: a gradient above G_f
    makes both larger, `constants.margin` times the largest seen, and the learner begins again at M = 0, at most
    log_8(largest gradient/first gradients) times. The theorem of the learner holds from its last restart on.

    The learner is a guest of the controller's memory: both are saved, copied and rolled back together.
    """

    horizon: int
    _longest = LARGEST_DISTURBANCE

    def __init__(
        self,
        system: LinearSystem,
        horizon: int,
        *,
        gain: ArrayLike | None = None,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        memory: int | None = None,
        constants: Constants | None = None,
        disturbance_bound: float | None = None,
        on_violation: str = "rescale",
    ) -> None:
        name = type(self).__name__
        if Q is not None or R is not None:
            if gain is not None:
                raise InputError(f"{name} takes a gain, or the Q and R of the cost it is to be best for, not both.")
            gain = riccati(name, system, Q, R).K
        self.Q, self.R = self._given.get("Q"), self._given.get("R")  # as they were given, also in a copy
        super().__init__(system, gain=gain, disturbance_bound=disturbance_bound)
        self.horizon = check_count(name, "horizon", horizon)
        self.on_violation = check_choice(name, "on_violation", on_violation, ("rescale", "clip", "raise"))
        if constants is None:
            constants = estimated_constants(system, self.gain, memory=memory)
        elif not isinstance(constants, Constants):
            raise InputError(f"The 'constants' parameter of {name} must be Constants. Got {short_repr(constants)}.")
        if memory is not None and constants.memory != check_count(name, "memory", memory):
            raise InputError(f"{name}: memory is {memory}, but the constants have {constants.memory} caps.")
        self.constants, self.memory = constants, constants.memory
        self.policy = DAC(system, gain=self.gain, memory=constants.memory)
        self.domain = SpectralBalls(self.policy.shape, constants.caps)
        self._allocate(LearnedState, {"P": 2 * self.memory + 1}, self._begin, self._moved)

    @property
    def _excess(self) -> str:
        """The learner's treatment of a gradient above its bound."""
        return "raise" if self.on_violation == "raise" else "clip"

    @abstractmethod
    def _make_learner(self, gradient_bound: float, switching_cost: float) -> Learner:
        """The learner of (3) on `self.domain`."""

    # ------------------------------------------------------------------ the state

    def _begin(self, s: LearnedState, c: object) -> None:
        G, price = self.constants.gradient_bound, self.constants.switching_cost
        if G is not None and price is not None:
            s.scales[BOUND:] = G, price

    def _moved(self, memory: Memory) -> None:
        """Bind calls to the arrays, and seat the learner that the scales ask for."""
        self._calls = self._bind(memory.state.past)
        self._seat(memory)

    def _seat(self, memory: Memory) -> None:
        G, price = (float(scale) for scale in memory.state.scales[BOUND:])
        if getattr(memory.guests, "scales", None) != (G, price):
            seat = _Seat({LEARNER: self._make_learner(G, price)} if G > 0 else {})
            seat.scales = G, price
            memory.guests = seat

    @property
    def learner(self) -> Learner | None:
        """The learner of (3); None while the scales are measured."""
        return self._memory.guests.get(LEARNER)

    def _holds(self, s: LearnedState, past: Past) -> Iterator[tuple[str, bool]]:
        longest = self.disturbance_bound or LARGEST_DISTURBANCE
        yield "past disturbances", within_bounds(np.linalg.norm(s.past, axis=1), 0.0, longest)
        known = int(s.known[0])
        yield "past disturbances", known <= len(s.past) and not s.past[past.rounds + known :].any()
        yield "scales", self._scales_fit(s.scales, past.rounds)

    def _scales_fit(self, scales: Floats, rounds: int) -> bool:
        """Whether the scales are those given; or measured, in 2H + 1 rounds; or being measured."""
        G, price, n = self.constants.gradient_bound, self.constants.switching_cost, 2 * self.memory + 1
        if G is not None and price is not None:
            return bool(scales.tolist() == [0.0, 0.0, 0.0, G, price])
        if not (within_bounds(scales, 0.0, LARGEST_DISTURBANCE**2) and scales[SEEN] in range(min(n, rounds) + 1)):
            return False
        bounds = self.constants.margin * scales[[LENGTH, PRICE]] if scales[SEEN] == n else np.zeros(2)
        return np.array_equal(scales[BOUND:], bounds)

    # ------------------------------------------------------------------ a round

    @property
    def matrices(self) -> Floats:
        """M_t, the policy of the present round, (H, d_u, d_x); zero while the scales are measured."""
        return self.policy.zero if self.learner is None else self.learner.decision

    @property
    def gradient_bound(self) -> float | None:
        """G_f, given or measured; None while it is being measured."""
        return float(self._memory.state.scales[BOUND]) or None

    @property
    def switching_cost(self) -> float | None:
        """lambda, given or measured; None while it is being measured."""
        return None if self.gradient_bound is None else float(self._memory.state.scales[LAMBDA])

    def _decide(self, x: Floats) -> Floats:
        calls = self._calls
        calls.M[:], calls.x[:] = self.matrices, x
        _run(calls.action)  # (1)
        return calls.u.copy()

    def _learn(self, cost: Cost, w: Floats) -> None:
        calls, past = self._calls, self._memory.state.past
        calls.M[:] = self.matrices
        _run(calls.truncate)
        c_x, c_u = read_gradients(self._who(), self.system, cost.gradients(calls.y.copy(), calls.v.copy()))
        calls.c_x[:], calls.c_u[:] = c_x, c_u
        _run(calls.gradient)
        learner, length = self.learner, float(np.linalg.norm(calls.G))
        if not np.isfinite(length):
            raise InputError(f"{self._who()}: the gradient of the truncated loss is not finite.")
        if learner is not None:
            learner.update(calls.G)  # (3)
        rescales = self.on_violation == "rescale" and self.constants.gradient_bound is None
        if learner is None or (rescales and length > self._memory.state.scales[BOUND]):
            self._measure(length, calls.r)
        past[1:] = past[:-1].copy()
        past[0] = w  # (2)

    def _bind(self, past: Floats) -> _PolicyCalls:
        (H, n, d), zeros = self.policy.shape, np.zeros
        M, x, u, y, v, c_x, c_u = zeros((H, n, d)), zeros(d), zeros(n), zeros(d), zeros(n), zeros(d), zeros(n)
        q, r, G = zeros(d), zeros((H + 1, n)), zeros((H, n, d))
        read, gain = M.view(), self.gain.view()
        read.flags.writeable = gain.flags.writeable = False  # also in a copy: one compiled version of each kernel
        plant = self.policy.response._replace(gain=gain)
        return _PolicyCalls(
            kernels.action.ready(read, past, gain, x, u),
            kernels.truncate.ready(read, past, plant, y, v),
            kernels.gradient.ready(past, plant, c_x, c_u, q, r, G),
            M, x, u, y, v, c_x, c_u, r, G,
        )  # fmt: skip

    def _measure(self, length: float, r: Floats) -> None:
        """Play a round of measuring the scales of the loss; the last one starts the learner, later ones restart it."""
        if length == 0:
            return
        s = self._memory.state
        H, past, scales = self.policy.memory, s.past, s.scales
        squares = np.cumsum(np.concatenate([[0.0], (past**2).sum(axis=1)]))
        j = np.arange(H + 1)
        heard = np.sqrt(squares[j + H + 1] - squares[j + 1])  # of w_{t-1-j-i}, i = 1..H
        price = float(((j + 1) * np.linalg.norm(r, axis=1) * heard).sum())
        scales[SEEN] = min(scales[SEEN] + 1, 2 * H + 1)
        scales[LENGTH] = max(scales[LENGTH], length)
        scales[PRICE] = max(scales[PRICE], price)
        if scales[SEEN] >= 2 * H + 1:
            q = self.queries
            s.spent[:] = q.projections, q.gradients, q.values
            scales[BOUND:] = self.constants.margin * scales[[LENGTH, PRICE]]
            self._seat(self._memory)

    # ------------------------------------------------------------------ inspection, stop and resume

    @property
    def queries(self) -> Queries:
        """Projections onto the set of policies (H singular value decompositions each), gradients and values."""
        before = [int(count) for count in self._memory.state.spent]
        now = Queries() if self.learner is None else self.learner.queries
        return Queries(before[0] + now.projections, before[1] + now.gradients, before[2] + now.values)

    @property
    def clipped(self) -> int:
        """Gradients that were scaled down to their bound."""
        return 0 if self.learner is None else self.learner.clipped

    def _arguments(self) -> dict[str, Any]:
        exact = {"gain": self.gain, "constants": self.constants}  # those of another machine differ in last bits
        given = super()._arguments() | exact
        return {name: value for name, value in given.items() if name not in ("Q", "R")}  # they are in the gain

    def _restarted(self, rounds: int) -> dict[str, object]:
        restarted = super()._restarted(rounds)
        if self.learner is not None:  # the measured scales are known
            scales = self.gradient_bound, self.switching_cost
            restarted["constants"] = Constants(self.constants.caps, *scales, margin=self.constants.margin)
        return restarted

    def extended(self, horizon: int) -> Self:
        """Return another one for a longer horizon, counted from its first round.

        It restarts, but knows the disturbances of the last rounds and their scales.
        """
        fresh, mine = super().extended(horizon), self._memory.state
        theirs = fresh._memory.state
        theirs.past[:] = mine.past
        theirs.known[0] = min(self.rounds - fresh.rounds + int(mine.known[0]), len(mine.past))
        return fresh

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        with self._memory.all_or_nothing():
            try:
                super().restore(saved)
            except (ArithmeticError, InputError) as error:
                raise self._unfit(f"no learner can be built for its scales ({error})") from error
            self._check_learner()

    def _check_learner(self) -> None:
        """Refuse a state whose learner does not belong to it."""
        s, learner, policy = self._memory.state, self.learner, np.zeros(self.system.input_dim)
        if learner is not None and learner.rounds + s.spent[1] > s.clock[ROUNDS] - s.scales[SEEN]:
            raise self._unfit(f"the learner of its policy played {learner.rounds} rounds, more than it did itself")
        if learner is not None and s.clock[ACTED]:
            policy = np.einsum("iux,ix->u", learner.decision, s.past[: self.memory])
        if not self._answers(s, policy):
            raise self._unfit("its input is not the answer of its policy to its state")


def _run(call: Call) -> None:
    if status := call.run():
        call.entry.read(status)
