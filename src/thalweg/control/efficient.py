"""Online control with one projection a round: Algorithm 4 of Zhao, Xie, Zhang, Zhou (JMLR 26, 2025).

The set of policies is X = {M : ||M_i|| <= c_i} in operator norms. Scream runs on the product of Frobenius balls around
it,

    Y = {M : ||M_i||_F <= c_i sqrt(min(d_u, d_x))},

where projecting is a rescale of every block. With M'_t its decision and g_t = grad f_t(M_t):

    M_t = Pi_X(M'_t)                                       clip singular values, the only time       (1)
    V_t = (M'_t - M_t)/||M'_t - M_t||_F                    over all blocks together                  (2)
    h_t = g_t - min(0, <g_t, V_t>) V_t                     the gradient for Scream                   (3)

||M_t - M_{t-1}|| <= ||M'_t - M'_{t-1}||, so the price of moving is no higher on X, and the dynamic regret stays
O~(sqrt(T (1 + P_T))). 1 projection (H singular value decompositions), 1 gradient a round.
"""

from thalweg.algorithms.scream import EfficientScream
from thalweg.control.learned import LearnedController
from thalweg.learners.base import Learner

__all__ = ["EfficientControl"]


class EfficientControl(LearnedController):
    """Follow the best changing policy with one projection a round. See `LearnedController`.

    Algorithm 4 of the paper of `thalweg.EfficientDynamic`.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.control import EfficientControl, QuadraticCost, boeing_747, simulate, sinusoid
    >>> plane = boeing_747()
    >>> wind = sinusoid(500, [1.0, 1.0, 0.0, 0.0], bound=2.0, period=40)
    >>> controller = EfficientControl(plane, horizon=500, memory=6)
    >>> result = simulate(controller, plane, QuadraticCost([1, 1, 1, 1], [1, 1]), wind)
    >>> result.queries.projections, result.rounds
    (485, 500)

    The first 15 rounds measured the scales of the loss; since then, one projection a round.
    """

    def _make_learner(self, gradient_bound: float, switching_cost: float) -> Learner:
        return EfficientScream(
            self.domain, self.horizon, gradient_bound, switching_cost=switching_cost, on_violation=self._excess
        )
