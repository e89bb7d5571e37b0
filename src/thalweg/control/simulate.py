"""A controller on a system, from first round to last, and its cost."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count, check_entries, check_flag, check_number, short_repr
from thalweg.control.controller import Controller
from thalweg.control.costs import Cost, check_costs
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError
from thalweg.learners.base import Queries

__all__ = ["Simulation", "simulate"]

Adversary = Callable[[int, Floats, Floats], ArrayLike]


@dataclass(frozen=True)
class Simulation:
    """The result of `simulate`, for T rounds.

    Attributes
    ----------
    states : array (T + 1, d_x)
        x_1..x_{T+1}.
    inputs : array (T, d_u)
        u_1..u_T.
    costs : array (T,)
        c_t(x_t, u_t).
    disturbances : array (T, d_x)
        w_1..w_T; pass them to `simulate` again to put another controller before the same ones.
    queries : Queries
        Projections onto the set of policies, gradients and values that the controller used.
    seconds : float
        Time spent in the controller. The first run in a process includes loading (or compiling) the kernels.
    clipped : int
        Gradients scaled down to their bound.
    policies : array (T, H, d_u, d_x) or None
        M_t, where asked for.
    """

    states: Floats
    inputs: Floats
    costs: Floats
    disturbances: Floats
    queries: Queries
    seconds: float
    clipped: int = 0
    policies: Floats | None = None

    @property
    def rounds(self) -> int:
        """T."""
        return int(self.costs.size)

    @property
    def total_cost(self) -> float:
        """Sum of the costs."""
        return float(self.costs.sum())

    def __repr__(self) -> str:
        T = max(1, self.rounds)
        asked = f"{self.queries.projections / T:.3g} projections, {self.queries.gradients / T:.3g} gradients"
        return (
            f"Simulation({self.rounds} rounds, total cost {self.total_cost:.6g}, "
            f"largest state {np.abs(self.states).max():.4g}, largest input {np.abs(self.inputs).max(initial=0):.4g}, "
            f"{1e6 * self.seconds / T:.3g} us a round, a round: {asked}"
            + (f", {self.clipped} clipped)" if self.clipped else ")")
        )


def simulate(
    controller: Controller,
    system: LinearSystem,
    costs: Cost | Sequence[Cost],
    disturbances: ArrayLike | Adversary,
    *,
    rounds: int | None = None,
    start: ArrayLike | None = None,
    policies: bool = False,
) -> Simulation:
    """Run a controller in a simulation and return the trajectory and its cost.

    The controller goes on from the state it is in; the system starts at `start`.

    Parameters
    ----------
    controller : Controller
        Any object with `act(state)` and `observe(cost, next_state)`.
    system : LinearSystem
        The system to control. It may differ from the controller's model: the difference then looks like a disturbance.
    costs : Cost or sequence of costs
        One for all rounds, or one for each.
    disturbances : array (T, d_x) or callable
        w_1..w_T, or a function of (round from 0, state, input) that chooses the disturbance of a round.
    rounds : int, optional
        T; as many as there are disturbances when left out. A function of the round needs it.
    start : array, optional
        x_1, zero when left out.
    policies : bool
        Keep M_t for every round.

    Examples
    --------
    >>> from thalweg.control import LQR, QuadraticCost, double_integrator, simulate, sinusoid
    >>> system = double_integrator()
    >>> run = simulate(LQR(system), system, QuadraticCost([1, 1], [1]), sinusoid(100, [0, 1], bound=0.1))
    >>> run.rounds, round(run.total_cost, 2)
    (100, 28.6)
    """
    if not (hasattr(controller, "act") and hasattr(controller, "observe")):
        raise InputError(f"simulate needs a controller, then a system. Got {short_repr(controller)} first.")
    if not isinstance(system, LinearSystem):
        raise InputError(f"simulate needs a controller, then a LinearSystem. Got {short_repr(system)} second.")
    keep = check_flag("simulate", "policies", policies)
    choose: Adversary | None = None
    if callable(disturbances):
        if rounds is None:
            raise InputError(
                "simulate: these disturbances have no end. Say how many rounds: simulate(..., rounds=1000)."
            )
        choose, T = disturbances, check_count("simulate", "rounds", rounds)
        check_entries("simulate", "rounds", rounds, T * system.state_dim)
        w = np.zeros((T, system.state_dim))
    else:
        w = check_array("simulate", "disturbances", disturbances, ndim=2)
        T = len(w) if rounds is None else min(len(w), check_count("simulate", "rounds", rounds))
        w = check_array("simulate", "disturbances", w[:T], shape=(T, system.state_dim))
    check_entries("simulate", "rounds", rounds, (T + 1) * (system.state_dim + system.input_dim))
    each = _costs_of(costs, T, system)
    x = np.zeros(system.state_dim) if start is None else check_array(
        "simulate", "start", start, shape=(system.state_dim,)
    )  # fmt: skip
    states, inputs, paid = np.empty((T + 1, system.state_dim)), np.empty((T, system.input_dim)), np.empty(T)
    kept = np.empty((T, *controller.policy.shape)) if keep and hasattr(controller, "policy") else None
    before, clipped = getattr(controller, "queries", Queries()), getattr(controller, "clipped", 0)
    seconds = 0.0
    states[0] = x
    for t in range(T):
        try:
            began = time.perf_counter()
            u = controller.act(x)
            seconds += time.perf_counter() - began
            if kept is not None:
                kept[t] = controller.matrices  # type: ignore[attr-defined]
            if choose is not None:
                w[t] = check_array("simulate", "disturbances", choose(t, x, u), shape=(system.state_dim,))
            paid[t] = check_number("simulate", "value of a cost", each(t).value(x, u))
            x = system.A @ x + system.B @ u + w[t]
            began = time.perf_counter()
            controller.observe(each(t), x)
            seconds += time.perf_counter() - began
        except Exception as error:
            at = "" if system.period is None else f", {t * system.period:.4g} s after its start"
            error.add_note(f"In round {t} of the simulation, counted from 0{at}.")
            raise
        states[t + 1], inputs[t] = x, u
    return Simulation(
        states=states,
        inputs=inputs,
        costs=paid,
        disturbances=w,
        queries=getattr(controller, "queries", Queries()) - before,
        seconds=seconds,
        clipped=getattr(controller, "clipped", 0) - clipped,
        policies=kept,
    )


def _costs_of(costs: object, T: int, system: LinearSystem) -> Callable[[int], Cost]:
    """The cost of each round."""
    if isinstance(costs, Cost):
        check_costs("simulate", [costs], system)
        return lambda t: costs
    if not isinstance(costs, Sequence):
        raise InputError(
            f"simulate needs a cost with value(x, u) and gradients(x, u), or a list of them. Got {short_repr(costs)}."
        )
    each = check_costs("simulate", costs, system)
    if len(each) < T:
        raise InputError(
            f"simulate: there are {len(each)} costs for {T} rounds. Give one cost for all, or one for each."
        )
    return lambda t: each[t]
