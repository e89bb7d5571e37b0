"""GPC, the gradient perturbation controller: Agarwal, Bullins, Hazan, Kakade, Singh (ICML 2019), Algorithm 1.

    M_{t+1} = Pi(M_t - eta grad f_t(M_t)),   eta = D_f / sqrt(G_f (G_f + lambda) T)        (1)

One gradient descent on the truncated loss: static regret O~(sqrt T), against the best fixed policy. D_f is the diameter
of the set of policies; lambda is (H + 2)^2 L_f. 1 projection (H singular value decompositions) and 1 gradient a
round.
"""

import math

from numpy.typing import ArrayLike

from thalweg._core.validate import check_positive
from thalweg.algorithms.ogd import OGD
from thalweg.control.constants import Constants
from thalweg.control.learned import LearnedController
from thalweg.control.system import LinearSystem
from thalweg.learners.base import Learner

__all__ = ["GPC"]


class GPC(LearnedController):
    """Learn one policy by gradient descent.

    Parameters
    ----------
    system, horizon, gain, Q, R, memory, constants, disturbance_bound, on_violation
        As for `LearnedController`.
    step_size : float, optional
        eta; (1) when left out.

    Examples
    --------
    >>> from thalweg.control import GPC, double_integrator
    >>> GPC(double_integrator(), horizon=1000, memory=5).act([1.0, 0.0]).round(3)
    array([-0.841])

    References
    ----------
    N. Agarwal, B. Bullins, E. Hazan, S. Kakade, K. Singh, Online control with adversarial disturbances, ICML 2019.
    """

    def __init__(
        self,
        system: LinearSystem,
        horizon: int,
        *,
        step_size: float | None = None,
        gain: ArrayLike | None = None,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        memory: int | None = None,
        constants: Constants | None = None,
        disturbance_bound: float | None = None,
        on_violation: str = "rescale",
    ) -> None:
        self.step_size = None if step_size is None else check_positive("GPC", "step_size", step_size)
        super().__init__(
            system,
            horizon,
            gain=gain,
            Q=Q,
            R=R,
            memory=memory,
            constants=constants,
            disturbance_bound=disturbance_bound,
            on_violation=on_violation,
        )

    def _make_learner(self, gradient_bound: float, switching_cost: float) -> Learner:
        G, D = gradient_bound, self.domain.diameter
        eta = self.step_size or D / math.sqrt(G * (G + switching_cost) * self.horizon)  # (1)
        return OGD(self.domain, step_size=eta, horizon=self.horizon, gradient_bound=G, on_violation=self._excess)
