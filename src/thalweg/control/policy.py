"""Disturbance-action policies (DAC) and their truncated loss: Agarwal, Bullins, Hazan, Kakade, Singh (ICML 2019).

    u_t = -K x_t + sum_{i=1..H} M_i w_{t-i}                                                (1)

with a fixed stabilising K and matrices M = (M_1..M_H). The disturbances of the past are known: w_t = x_{t+1} - A x_t -
B u_t. State and action are linear in M, so costs are convex in it. The distant past is forgotten: had M been in
force for the last H + 1 rounds, starting at rest, state and action would be, with F = A - B K,

    y_t(M) = sum_{j=0..H} F^j (w_{t-1-j} + B sum_{i=1..H} M_i w_{t-1-j-i})                 (2)
    v_t(M) = -K y_t(M) + sum_{i=1..H} M_i w_{t-i}                                          (3)
    f_t(M) = c_t(y_t(M), v_t(M))                                                           (4)

f_t is the loss for a learner of M. With c_x, c_u the gradients of c_t at (y_t, v_t) and q = c_x - K'c_u, its gradient
is

    df_t/dM_i = sum_{j=0..H} B'(F^j)'q w_{t-1-j-i}' + c_u w_{t-i}'                         (5)

in H (H + 1) d_u d_x multiplications, with the F^j B computed once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count, check_entries, short_repr, wrong
from thalweg.control import _kernels as kernels
from thalweg.control.costs import Cost, check_costs
from thalweg.control.gains import check_gain, closed_loop
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = ["DAC", "TruncatedLoss"]


class DAC:
    """The policies (1) for a system, a gain and a memory: their inputs, states and losses.

    Parameters
    ----------
    system : LinearSystem
        A and B.
    gain : array (d_u, d_x), optional
        K; the LQR gain with identity weights when left out.
    memory : int
        H.

    Attributes
    ----------
    shape : tuple of int
        Shape of M, (H, d_u, d_x).
    powers, responses : array
        F^j and F^j B for j = 0..H.
    zero : array
        M = 0, the linear controller.

    Notes
    -----
    Methods take the past as an array (2H + 1, d_x), newest first: w_{t-1}, w_{t-2}, ..; zeros before the start.

    Examples
    --------
    >>> from thalweg.control import DAC, double_integrator
    >>> policy = DAC(double_integrator(), memory=3)
    >>> M = np.zeros(policy.shape)
    >>> M[0] = [[0.0, -1.0]]
    >>> past = policy.past_of(np.array([[0.0, 0.5]]), 1)
    >>> policy.action(M, np.zeros(2), past)
    array([-0.5])
    """

    def __init__(self, system: LinearSystem, *, gain: ArrayLike | None = None, memory: int = 10) -> None:
        self.gain = check_gain("DAC", system, gain)
        self.gain.flags.writeable = False
        self.system = system
        self.memory = H = check_count("DAC", "memory", memory)
        check_entries("DAC", "memory", memory, (H + 1) * system.state_dim * (system.state_dim + system.input_dim))
        self.shape = (H, system.input_dim, system.state_dim)
        loop = closed_loop(system, self.gain)
        self.powers = np.empty((H + 1, *loop.shape))
        self.powers[0] = np.eye(system.state_dim)
        for j in range(H):
            self.powers[j + 1] = loop @ self.powers[j]
        self.responses = np.ascontiguousarray(self.powers @ system.B)
        self.response = kernels.Response(self.powers, self.responses, self.gain)  # for compiled code
        self.zero = np.zeros(self.shape)
        self.zero.flags.writeable = False

    def past_of(self, disturbances: ArrayLike, t: int) -> Floats:
        """The past of round t, counted from 0, out of all disturbances: w_{t-1}, w_{t-2}, .., 2H + 1 of them."""
        w = check_array("DAC.past_of", "disturbances", disturbances, ndim=2)
        check_array("DAC.past_of", "disturbances", w, shape=(len(w), self.system.state_dim))
        now = check_count("DAC.past_of", "t", t, least=0)
        past = np.zeros((2 * self.memory + 1, self.system.state_dim))
        known = w[max(0, now - len(past)) : now][::-1]
        past[: len(known)] = known
        return past

    def action(self, M: ArrayLike, state: ArrayLike, past: ArrayLike) -> Floats:
        """(1)."""
        m, w = self._read(M, past)
        x = check_array("DAC.action", "state", state, shape=(self.system.state_dim,))
        u = np.empty(self.system.input_dim)
        kernels.action(m, w, self.gain, x, u)
        return u

    def truncated(self, M: ArrayLike, past: ArrayLike) -> tuple[Floats, Floats]:
        """(2) and (3): the state y and the action v."""
        m, w = self._read(M, past)
        y, v = np.empty(self.system.state_dim), np.empty(self.system.input_dim)
        kernels.truncate(m, w, self.response, y, v)
        return y, v

    def loss(self, cost: Cost, past: ArrayLike) -> TruncatedLoss:
        """(4) as a loss for any learner on matrices of shape `shape`."""
        return TruncatedLoss(self, cost, past)

    def _read(self, M: ArrayLike, past: ArrayLike) -> tuple[Floats, Floats]:
        w = check_array("DAC", "past", past, shape=(2 * self.memory + 1, self.system.state_dim))
        m = check_array("DAC", "M", M, shape=self.shape)
        m.flags.writeable = False  # as decisions are: one compiled version of each kernel
        return m, w

    def __repr__(self) -> str:
        return f"DAC({self.system!r}, memory={self.memory})"


class TruncatedLoss:
    """f_t(M) = c_t(y_t(M), v_t(M)), (4): a convex loss of the policy, with value and gradient (5).

    Parameters
    ----------
    policy : DAC
        System, gain and memory.
    cost : Cost
        c_t, with `value` and `gradients`.
    past : array (2H + 1, d_x)
        The disturbances, newest first.
    """

    def __init__(self, policy: DAC, cost: Cost, past: ArrayLike) -> None:
        if not isinstance(policy, DAC):
            raise wrong("TruncatedLoss", "policy", "a DAC", policy)
        check_costs("TruncatedLoss", [cost], policy.system)
        self.policy, self.cost = policy, cost
        self.past = check_array("TruncatedLoss", "past", past, shape=(2 * policy.memory + 1, policy.system.state_dim))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a policy."""
        return self.policy.shape

    def value(self, M: ArrayLike) -> float:
        """f_t(M)."""
        return float(self.cost.value(*self.policy.truncated(M, self.past)))

    def gradient(self, M: ArrayLike) -> Floats:
        """(5), as a new array."""
        y, v = self.policy.truncated(M, self.past)
        policy, G = self.policy, np.empty(self.shape)
        c_x, c_u = read_gradients("TruncatedLoss", policy.system, self.cost.gradients(y, v))
        q, r = np.empty_like(y), np.empty((policy.memory + 1, v.size))  # working memory
        kernels.gradient(self.past, policy.response, c_x, c_u, q, r, G)
        return G


def read_gradients(owner: str, system: LinearSystem, gradients: Any) -> tuple[Floats, Floats]:
    """The two gradients of a cost, checked."""
    try:
        c_x, c_u = gradients
    except Exception:
        raise InputError(
            f"{owner}: gradients(x, u) of a cost must return two arrays. Got {short_repr(gradients)}."
        ) from None
    return (
        check_array(owner, "gradient in x", c_x, shape=(system.state_dim,)),
        check_array(owner, "gradient in u", c_u, shape=(system.input_dim,)),
    )
