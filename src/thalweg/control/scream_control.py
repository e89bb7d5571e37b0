"""Scream.Control: Zhao, Yan, Wang, Zhou (AISTATS 2022, Algorithm 2; JMLR 24, 2023, Algorithm 3).

The learner of the policy is `thalweg.algorithms.Scream` on the set of policies: N descents with step sizes

    eta_i = 2^{i-1} sqrt(D_f^2 / ((lambda G_f + G_f^2) T)),   N = ceil(log2(1 + T)/2) + 1

under weights that also charge a descent for moving. Dynamic regret O~(sqrt(T (1 + P_T))) against any changing policies
whose path has length P_T. N projections (N H singular value decompositions), 1 gradient a round.
"""

from thalweg.algorithms.scream import Scream
from thalweg.control.learned import LearnedController
from thalweg.learners.base import Learner

__all__ = ["ScreamControl"]


class ScreamControl(LearnedController):
    """Follow the best changing policy; every member of the ensemble is projected. See `LearnedController`.

    Algorithm 3 of the paper of `thalweg.Scream`.

    Notes
    -----
    The published controller plays H rounds before it learns. Disturbances before the start count as 0 here, so the loss
    has its memory from the first round on.
    """

    def _make_learner(self, gradient_bound: float, switching_cost: float) -> Learner:
        return Scream(
            self.domain, self.horizon, gradient_bound, switching_cost=switching_cost, on_violation=self._excess
        )
