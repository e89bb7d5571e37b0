"""Parameter-free, dynamic and strongly adaptive at once: Cutkosky (ICML 2020), and with one projection a round.

With T <= 2^N, o a point of the set W, R its radius around o, and g_t the gradient divided by its bound G:

    x^(N) = Pi_W(w_N);   x^(i) = (1 - z_i) x^(i+1) + y_i,  i = N - 1..1;   x_t = o + R x^(1)             (1)
    (y_i, z_i) = Pi_V(w_i),   V = {(y, z) : (1 - z) x^(i+1) + y in W, 0 <= z <= 1}                       (2)
    l_N = g_t;   l_i = (g_t, -<g_t, x^(i+1)>)/sqrt(2)                                                    (3)
    h_i = l_i - min(0, <l_i, n_i>) n_i,   n_i from (y_i, z_i) to w_i, of length 1                        (4)
    w_i = v_i W_i u_i,   s = <h_i, u_i>                      coin betting in a direction                 (5)
    W_i -= s v_i W_i;  zeta = s/(1 - s v_i);  A_i += zeta^2;  v_i <- clip(v_i - 2/(2 - ln 3) zeta/A_i, -1/2, 1/2)   (6)
    u_i <- Pi_ball(u_i - sqrt(2) h_i/sqrt(sum ||h_i||^2))                                                (7)

Level i < N restarts every 2^i rounds with W_i = epsilon/ceil(T/2^i), v_i = 0, A_i = 1, u_i = 0; level N never does
and starts with W_N = epsilon. On every interval I and against every path in W of length P_I on it, regret is of order
sqrt((R^2 + R P_I) sum_I ||grad f_t||^2) up to logarithms; against o it is at most (1 + sqrt(2)(N - 1)) epsilon G R.

W = X is the published method: 1 gradient and 0 values a round, and (2) for N sets. Where X is a ball, V is a slanted
cylinder, and z is the root of one equation in one unknown; otherwise each look for z is a projection onto X.
Inside the reduction (`thalweg.learners.one_projection`) W is a ball: 1 projection, 1 gradient, 0 values a round.
"""

import math

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_positive
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.learners.base import bounded
from thalweg.learners.one_projection import OneProjection, check_surrogate
from thalweg.learners.residual import ResidualLevels
from thalweg.theorems import bounds
from thalweg.theorems._base import Theorem

__all__ = ["CutkoskyAdaptive", "CutkoskyPrintedVariant", "EfficientCutkosky", "LevelsTheorem"]

SHORTEST_INTERVAL = 8  # rounds: shorter intervals of a level are not worth a bound of their own
ORDER = "sqrt((D^2 + D P_I) sum_I ||g||^2), up to logarithms"


class CutkoskyAdaptive(ResidualLevels):
    """Small regret on every interval against every moving comparator, with no step size to choose.

    For a ball, or to compare with the published method: elsewhere `EfficientCutkosky` is as good and far cheaper.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int
        T. It sets the number of levels, ceil(log2 T) but one at least.
    gradient_bound, on_violation
        G, and the treatment of gradients above it, as for every `Learner`.
    epsilon : float
        Bound on the loss of a level in all its intervals together, in units of G R (times sqrt 2 for all levels but the
        first): small is cautious, and costs only logarithms elsewhere.

    Notes
    -----
    `queries.projections` counts every projection onto X: on a ball one for each level that bets, on other sets as many
    as the search for z takes, usually 1 for a point inside and 3 to 6 for one outside.

    Past the horizon the first level goes on and the others restart as before. Only the count of restarts behind
    epsilon is then exceeded: the bound on the loss of a level in all its intervals grows with them.

    The paper assumes gradients of length 1 and a set that holds the origin. Here points are (x - o)/R and gradients
    g/G, so the losses of (3) are no longer than 1 and a run does not depend on units. With u_1 = 0 and v_1 = 0 no
    level bets in its first two rounds; so the one with intervals of two rounds never does.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.CutkoskyAdaptive(tw.domains.Ball(2), horizon=1000, gradient_bound=4.0)
    >>> learner.levels
    10
    >>> for _ in range(60):
    ...     paid = learner.step(tw.losses.Squared([1.0, 0.0], 0.5))
    >>> bool(paid < 1e-3)
    True

    References
    ----------
    A. Cutkosky, Parameter-free, dynamic, and strongly-adaptive online learning, ICML 2020.
    A. Cutkosky, F. Orabona, Black-box reductions for parameter-free online learning in Banach spaces, COLT 2018.
    """

    card = Card(
        about="no step sizes: levels that correct each other",
        regret="interval dynamic",
        bound=ORDER,
        queries=("several n", "1", "0"),
        source="Cutkosky 2020",
    )

    def __init__(
        self, domain: Domain, horizon: int, gradient_bound: float, *, epsilon: float = 1.0, on_violation: str = "raise"
    ) -> None:
        super().__init__(domain, horizon, gradient_bound, epsilon=epsilon, on_violation=on_violation)


class LevelsTheorem(Theorem):
    r"""`EfficientCutkosky`: the levels of `thalweg.learners.residual`, in units of G R.

    On an interval J of level i, against a fixed point: sqrt(2) times the bound of its parameter-free learner (1 times
    for the first level), plus the wealth sqrt(2) psi_l that each level below may lose on each of its intervals in J.
    A path adds :math:`\sum_J \|u_t - \bar u_J\|`. A round costs at most its diameter. The best partition into intervals
    of levels is found by comparing each with its two halves.
    """

    name = "residual levels (Cutkosky 2020)"

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """See `Theorem.bound`."""
        points = (u - self.center) / self.R
        return self.G * self.R * self._best(int(self.inner.levels), 0, start, stop, points, start)

    def _best(self, level: int, begin: int, start: int, stop: int, points: Floats, offset: int) -> float:
        """The least bound on [begin, begin + 2^level), cut to [start, stop)."""
        end = min(begin + (1 << level), stop)
        if end <= start or begin >= stop:
            return 0.0
        rounds = end - max(begin, start)
        plain = rounds * self.D / self.R
        if level == 0 or rounds < SHORTEST_INTERVAL:
            return plain
        whole = math.inf
        if begin >= start:
            part = points[begin - offset : end - offset]
            middle = part.mean(axis=0)
            drift = float(np.linalg.norm(part - middle, axis=1).sum())
            whole = self._fixed(level, rounds, float(np.linalg.norm(middle))) + drift
            if drift <= 1e-9 * rounds:  # nothing moves: halves gain nothing
                return min(plain, whole)
        half = 1 << (level - 1)
        halves = self._best(level - 1, begin, start, stop, points, offset)
        halves += self._best(level - 1, begin + half, start, stop, points, offset)
        return min(plain, whole, halves)

    def _fixed(self, level: int, n: int, size: float) -> float:
        psi: list[float] = self.inner.first_wealth.tolist()  # longest level first
        K = len(psi)
        row = K - level
        if row == 0:
            own = bounds.parameter_free(round(size, 9) + 1e-9, psi[0], float(n))
        else:
            own = math.sqrt(2) * bounds.parameter_free(round(math.hypot(size, 1.0), 9) + 1e-9, psi[row], float(n))
        below = sum(math.ceil(n / (1 << (K - k))) * psi[k] for k in range(row + 1, K))
        return own + math.sqrt(2) * below


class EfficientCutkosky(OneProjection):
    """`CutkoskyAdaptive` on a ball inside the reduction: the same bounds with one projection a round.

    Parameters
    ----------
    domain, horizon, gradient_bound, epsilon, on_violation
        As for `CutkoskyAdaptive`.
    surrogate : Domain, optional
        Y; `domain.surrogate` when left out. Where it is no ball, the ball around it is used.

    Notes
    -----
    Not the variant that Zhao et al. (JMLR 2025) print in their appendix, which is `CutkoskyPrintedVariant`: here all
    levels live on Y and learn from the surrogate gradient, so the reduction's theorem carries every bound over.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.EfficientCutkosky(tw.domains.Simplex(3), horizon=100, gradient_bound=1.0)
    >>> for _ in range(60):
    ...     learner.update([0.6, 0.0, 0.6])
    >>> learner.queries
    Queries(projections=60, gradients=60, values=0)
    >>> learner.decision.round(2)
    array([0., 1., 0.])
    """

    card = Card(
        about="CutkoskyAdaptive with one projection",
        regret="interval dynamic",
        bound=ORDER,
        queries=("1", "1", "0"),
        source="Cutkosky 2020 in the reduction",
        theorem=LevelsTheorem,
    )

    inner: CutkoskyAdaptive

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        epsilon: float = 1.0,
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        T = check_count("EfficientCutkosky", "horizon", horizon)
        G = check_positive("EfficientCutkosky", "gradient_bound", gradient_bound)
        check_positive("EfficientCutkosky", "epsilon", epsilon)
        super().__init__(
            domain,
            lambda Y: CutkoskyAdaptive(_ball(Y), T, G, epsilon=epsilon),
            surrogate=surrogate,
            on_violation=on_violation,
        )

    @property
    def levels(self) -> int:
        """N, how many levels there are."""
        return self.inner.levels


class CutkoskyPrintedVariant(ResidualLevels):
    """The variant that the appendix of the paper of `EfficientDynamic` calls projection-efficient, to compare with.

    All levels but the last have W = Y, a ball around X; only the last has W = X, and every level learns from the
    gradient at x_t as it is. Use `EfficientCutkosky`.

    Parameters
    ----------
    domain, horizon, gradient_bound, epsilon, surrogate, on_violation
        As for `EfficientCutkosky`.

    Notes
    -----
    Its guarantee fails. The point x^(2) that the last level gets may lie outside X; then (0, 0) is not in the last V,
    so the last level is forced to move and nothing bounds the cost of that: the sum of <g, x^(1) - x^(2)> over an
    interval can exceed any multiple of the wealth it starts with. The levels on Y see no trace of it, since no
    surrogate gradient tells them that they have left X. And it still needs several projections onto X a round, to
    search for z.

    Measured on a box in its ball, quadratic losses with 8 targets in 1024 rounds, all outside the box (dimension 3, 5
    seeds): dynamic regret 50 to 91 against 22 to 52 for `EfficientCutkosky`. With targets inside the box both are the
    same.

    Examples
    --------
    >>> import thalweg as tw
    >>> box = tw.domains.Box(-1.0, 1.0, shape=2)
    >>> learner = tw.CutkoskyPrintedVariant(box, horizon=100, gradient_bound=1.0)
    >>> for _ in range(60):
    ...     learner.update([-1.0, 0.0])
    >>> learner.decision, learner.points[-2].round(2)
    (array([1., 0.]), array([1.41, 0.  ]))
    """

    card = Card(
        about="the variant of the paper's appendix, to compare with",
        regret="interval dynamic",
        bound="none (its guarantee fails)",
        queries=("several n", "1", "0"),
        source="Zhao et al. 2025, appendix",
    )

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        epsilon: float = 1.0,
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "CutkoskyPrintedVariant"
        bounded(name, domain)
        Y = domain.surrogate if surrogate is None else check_surrogate(name, domain, surrogate)
        self.surrogate = _ball(Y)
        super().__init__(
            domain,
            horizon,
            gradient_bound,
            epsilon=epsilon,
            ball=self.surrogate,
            flattens=surrogate is None,  # as in `OneProjection`: gradients stay as they are
            on_violation=on_violation,
        )


def _ball(Y: Domain) -> Ball:
    """Y itself, or the ball around it."""
    return Y if isinstance(Y, Ball) else Y._enclosing_ball()
