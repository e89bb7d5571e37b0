"""Dynamic regret from values alone, with one projection a round.

PBGD of Zhao, Wang, Zhang, Zhou (AISTATS 2020; JMLR 22, 2021) inside the reduction of `thalweg.learners.one_projection`.

X holds a ball of radius r around c in its affine hull, of k dimensions; no point of X is further than rho from c.
Decisions lie in the smaller set X_a = c + (1 - a)(X - c), a = delta/r: a ball of radius delta around each of its points
fits into X. With u_t uniform on the unit sphere of the hull's directions:

    one point:     ask v = f_t(x_t + delta u_t),                 g_t = k/delta v u_t                   (1)
    two points:    ask v, w = f_t(x_t + delta u_t), f_t(x_t - delta u_t),
                                                                 g_t = k/(2 delta) (v - w) u_t         (2)
    x_{t+1} = Pi_{X_a}(y_{t+1}),   y_{t+1} from the pool of Theorem 2 and h_t, which is g_t reduced    (3)

Pi_{X_a} is one projection onto X (`thalweg.domains._shrunk`). g_t is an unbiased gradient at x_t of the smoothed loss,
the mean of f_t over the ball of radius delta (Flaxman, Kalai, McMahan, SODA 2005). The loss paid is the mean
of the values asked. If every f_t is G-Lipschitz, then for all u_t in X with path length P_T, fixed beforehand,

    E sum_t paid_t - f_t(u_t) <= pool(M, P_T) + T G (delta + a rho)                                    (4)

with the bound of Theorem 2 for gradients of mean square M^2, and with R the radius of Y. The expectation is over the
directions u_t of (1) and (2). f_t may depend on those of earlier rounds; comparators may not depend on any.

    one point:     M = k B/delta where |f_t| <= B,   delta = sqrt(K k B R/(G (1 + rho/r))) T^{-1/4}    (5)
    two points:    M = k G/sqrt(k - 1) (on a line G),   delta = R/((1 + rho/r) sqrt(T))                (6)

That is O(T^{3/4} (1 + P_T)^{1/2}) and O((k T (1 + P_T))^{1/2}). K = 3/2 sqrt(5/2) balances the two sums of (4) for a
descent towards a fixed point. Why (4): on the sphere f_t costs at most G delta/(k+1) more than in the ball,
in the ball at most G delta k/(k+1) more than at its centre, and u_t, drawn into X_a, at most G a rho more. Why (6):
v - w is an odd function of u_t with slope at most 2 G delta, so by Poincare's inequality on the sphere its mean square
is at most (2 G delta)^2/(k - 1). That saves the sqrt(k) by which He, Jiang, Zhang (2025) improve on PBGD.
1 projection, 0 gradients, 1 or 2 values a round.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.rules import counter_field, within
from thalweg._core.state import Past, Plan, field, part
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import (
    check_array,
    check_count,
    check_nonnegative,
    check_positive,
    check_rng,
    real_array,
    short_repr,
    wrong,
)
from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.projections import PYTHON
from thalweg.algorithms.pools import worst_case_pool
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.domains._shrunk import Shrunk
from thalweg.errors import InputError
from thalweg.learners.base import Learner, Queries, bounded, read_start
from thalweg.learners.ensemble import Ensemble
from thalweg.learners.feedback import BOUND_SLACK
from thalweg.learners.machine import AnyMachine
from thalweg.learners.one_projection import Reduced, ReducedSettings, as_reduced
from thalweg.theorems._base import pool_bound

__all__ = ["Bandit", "BanditState", "EfficientBandit"]

# K of (5): the least of 5 R^2/(2 eta) + eta M^2 T/2 over the pool, in units of M R sqrt(T)
STILL = 1.5 * math.sqrt(2.5)
BLOCK = 4096  # numbers that are drawn at a time
NOISE = 64 * np.finfo(np.float64).eps  # rounding error of a value, relative to the largest number in it
TRIED = 64  # directions in which a ball that was given is looked at


@as_reduced
class BanditState(NamedTuple):
    """As `ReducedState`, and the seed of the directions."""

    inner: Any = part()
    x: Floats = field("d")  # the decision, where clock[FRESH] is 1
    clock: Ints = counter_field()
    seed: Ints = field("1", within(0, math.inf))


class Bandit(Reduced):
    """A machine that learns from estimates of gradients, projected onto a smaller set.

    Parameters
    ----------
    domain : Domain
        X.
    inner : Machine
        On a set that contains X.
    target : Shrunk
        The smaller set.
    steepest : float
        The largest estimate of a gradient.
    seed : int
        Of the directions.
    """

    one_gradient = False  # it takes values

    def __init__(self, domain: Domain, inner: AnyMachine, *, target: Shrunk, steepest: float, seed: int) -> None:
        super().__init__(domain, inner, target=target)
        self.limits = replace(self.limits, square=(steepest * (1 + BOUND_SLACK)) ** 2)
        self.seed = seed

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        reduced = super().plan(sizes)

        def begin(s: BanditState, c: ReducedSettings) -> None:
            reduced.begin(s, c)
            s.seed[0] = self.seed

        return replace(reduced, state=BanditState, begin=begin)

    def holds(self, s: Any, c: ReducedSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`: one estimate a round."""
        yield from super().holds(s, c, past)
        yield "counters", bool(s.clock[GRADIENTS] == s.clock[ROUNDS])


class EfficientBandit(Learner):
    """Follow any moving comparator when only the losses of the points tried are known, with one projection a round.

    A round: try the points `queries_at` and pass their losses to `update`. They lie around `decision`, the point to use
    where nothing is to be learned. The loss of the round is the mean loss of the points tried: `step` returns it and
    `play` records it.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int
        T.
    gradient_bound : float
        G, a Lipschitz constant of every loss. With two points, values that differ by more than it allows are refused.
    loss_bound : float, optional
        B >= |f_t|. Needed with one point, where regret grows with its root: subtract from the losses the part known
        in advance. A value beyond it is refused.
    points : {1, 2}
        How many values a round has. Two are worth much more than one: regret of order sqrt(T), not T^{3/4}.
    exploration : float, optional
        delta, how far from the decision to try; at most half the radius of the ball inside X. (5) or (6) when left out.
    interior : tuple of (array, float), optional
        A ball inside X: all points of its affine hull within the radius of the point. `domain.interior` when left out;
        a `Custom` set has none.
    start : array, optional
        A point of the domain to begin at.
    rng : Generator or int, optional
        Where the directions come from. They are a function of a seed and the round, and the seed is part of the state.

    Examples
    --------
    >>> import thalweg as tw
    >>> X = tw.domains.Box(0.0, [1.0, 2.0])
    >>> learner = tw.EfficientBandit(X, horizon=5000, gradient_bound=2.0, points=2, rng=0)
    >>> for _ in range(5000):
    ...     values = [abs(p - 0.9) + abs(q - 0.4) for p, q in learner.queries_at]
    ...     learner.update(values)
    >>> learner.queries, learner.decision.round(1)
    (Queries(projections=5000, gradients=0, values=10000), array([0.9, 0.4]))

    References
    ----------
    P. Zhao, G. Wang, L. Zhang, Z.-H. Zhou, Bandit convex optimization in non-stationary environments, JMLR 22, 2021.

    C. He, B. Jiang, S. Zhang, Non-stationary bandit convex optimization: an optimal algorithm with two-point feedback,
    arXiv:2508.04654, 2025.
    """

    card = Card(
        about="values only: one point tried a round, one projection",
        regret="dynamic",
        bound="T^{3/4} sqrt(1 + P_T)",
        queries=("1", "0", "1"),
        source="Zhao et al. 2021, reduced",
        arguments=lambda s: {
            "loss_bound": s.loss_bound if s.nonnegative else s.loss_bound + s.gradient_bound * s.domain.diameter,
            "rng": 0,
        },
        variants={
            "two-point": Variant(
                "values only: two points tried a round, one projection",
                options={"points": 2},
                bound="sqrt(k T (1 + P_T))",
                queries=("1", "0", "2"),
            )
        },
    )
    one_gradient = False
    values_only = True
    reduced = True  # one projection by the reduction

    inner: Ensemble
    rng: np.random.Generator | int | None
    gradient_bound: float

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        loss_bound: float | None = None,
        *,
        points: int = 1,
        exploration: float | None = None,
        interior: tuple[ArrayLike, float] | None = None,
        start: ArrayLike | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        name = "EfficientBandit"
        X, T = bounded(name, domain), check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        B = None if loss_bound is None else check_positive(name, "loss_bound", loss_bound)
        n = check_count(name, "points", points, most=2)
        one = n == 1
        if one and B is None:
            raise InputError(f"{name} with one point needs 'loss_bound', at least the size of any loss. Or points=2.")
        c, r = X.interior if interior is None else _read_interior(name, X, interior)
        seed = int(check_rng(name, rng).integers(2**63))

        Y = X.surrogate if X.surrogate.onto is not PYTHON else X._enclosing_ball()
        k, R, blur = X.freedom, Y.radius, X.tolerance * X._scale(X.center)
        rho = min(X.radius + float(np.linalg.norm(c - X.center)), X.diameter)
        most = r / 2 - blur  # half of X is left
        if not most > 0:
            raise InputError(
                f"{name}: the ball inside {X!r} has radius {r:g}, and points are known to {blur:g} only. Give a larger "
                "ball as 'interior', or a set with a more exact projection."
            )
        if exploration is not None:
            delta = check_positive(name, "exploration", exploration)
            if delta > most:
                raise InputError(
                    f"The 'exploration' parameter of {name} must be at most {most:g}, half the radius of the ball "
                    f"inside the domain. Got {short_repr(exploration)}."
                )
        elif one:
            assert B is not None
            delta = min(most, math.sqrt(STILL * k * B / G * R / (1 + rho / r)) / T**0.25)  # (5)
        else:
            delta = min(most, R / (1 + rho / r) / math.sqrt(T))  # (6)
        M = k * B / delta if one and B is not None else k * G / math.sqrt(max(1, k - 1))  # (5), (6)

        steps = worst_case_pool(T, M, R, X.diameter)  # Theorem 2
        rate = math.sqrt(math.log(steps.size) / (1 + M**2 * R**2 * T))
        home = None if start is None else read_start(name, X, start)
        self.surrogate, self.inner = Y, Ensemble(Y, steps, meta_rate=rate, start=home)
        # the error of the projection is subtracted as well, so the points asked lie in X exactly
        target, steepest = Shrunk(X, c, (delta + blur) / r), M if one else k * G
        machine = Bandit(X, self.inner.machine, target=target, steepest=steepest, seed=seed)
        super().__init__(machine, horizon=T, inside=(self.inner,))
        self.gradient_bound = G
        self.points, self.loss_bound = n, B
        self.exploration, self.interior = delta, (c, r)
        self._mean_square, self._rho, self._share = M**2, rho, target.share
        self._gain, self._steepest = k / delta / n, steepest
        self._widest = 2 * delta * G * (1 + BOUND_SLACK) + NOISE * G * X._scale(X.center)
        self._offsets = np.array([[delta], [-delta]][:n])
        self._drawn: tuple[tuple[int, int], Floats] = ((-1, -1), np.zeros((0, 0)))

    # ------------------------------------------------------------------ a round

    @property
    def queries_at(self) -> Floats:
        """The points to try in this round, (points, *shape), all in the domain: x + delta u, and x - delta u."""
        points = self.decision.ravel() + self._offsets * self._direction()
        return points.reshape(-1, *self.domain.shape)

    def update(self, values: ArrayLike) -> None:  # type: ignore[override]  # values are not gradients
        """Play one round from the losses of the points `queries_at`, in their order. A refused call changes nothing."""
        v, n = real_array(values), self.points
        if v is None or v.shape not in (((), (1,)) if n == 1 else ((2,),)):
            what = "one number" if n == 1 else "two numbers"
            raise InputError(f"{self._who()}: update takes {what}, the loss at `queries_at`. Got {short_repr(values)}.")
        self._take(v.reshape(n).tolist())

    def step(self, f: object) -> float:
        """Play one round: ask `f.value` at `queries_at`, move, and return the mean of the values."""
        if not hasattr(f, "value"):
            raise InputError(f"{self._who()}: step needs a loss with f.value(x). Got {short_repr(f)}.")
        values = [self._feedback.read_paid(f.value(point)) for point in self.queries_at]
        self._take(values)
        return math.fsum(values) / self.points

    def _take(self, values: list[float]) -> None:
        """One round from values that are checked here."""
        self._check_values(values)
        _ = self.decision  # the round is played with it, read or not
        slope = self._gain * (values[0] if self.points == 1 else values[0] - values[1])
        slope = min(max(slope, -self._steepest), self._steepest)  # a difference of rounding errors is no slope
        np.multiply(self._direction(), slope, out=self._feedback.g)  # (1), (2)
        self._play_round(None, 0)

    def _direction(self) -> Floats:
        """u_t, flat: a function of the seed and the round."""
        block, place = divmod(self.rounds, rows := max(1, BLOCK // self.domain.dim))
        key = (int(self._memory.state.seed[0]), block)
        if self._drawn[0] != key:
            generator = np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64)))
            u = self.domain._directions(self.domain._directions(generator.standard_normal((rows, self.domain.dim))))
            self._drawn = key, u / np.linalg.norm(u, axis=1, keepdims=True)
        direction: Floats = self._drawn[1][place]
        return direction

    def _check_values(self, values: list[float]) -> None:
        """Raise if the values violate the bounds."""
        size, gap = max(map(abs, values)), abs(values[0] - values[-1])
        if not (math.isfinite(size) and math.isfinite(gap)):
            raise InputError(f"{self._who()}: the values must be finite. Got {values}.")
        if self.loss_bound is not None and size > self.loss_bound * (1 + BOUND_SLACK):
            raise InputError(
                f"{self._who()}: a value has size {size:g}, above loss_bound = {self.loss_bound:g}. Give a larger one."
            )
        if gap > self._widest + NOISE * size:
            raise InputError(
                f"{self._who()}: the two values differ by {gap:g}; so near to each other, gradient_bound = "
                f"{self.gradient_bound:g} allows {self._widest:g}. Give a larger gradient_bound, or, where values have "
                "noise, a larger 'exploration'."
            )

    # ------------------------------------------------------------------ inspection

    @property
    def queries(self) -> Queries:
        """Projections onto the domain, gradients (none) and values so far."""
        return Queries(int(self._memory.state.clock[PROJECTIONS]), 0, self.points * self.rounds)

    def regret_bound(self, path_length: float = 0.0) -> float:
        """(4): the most expected regret after `horizon` rounds, against comparators that move so far in all.

        The expectation is over the learner's directions, on which comparators must not depend; a single run may exceed
        it.

        Examples
        --------
        >>> import thalweg as tw
        >>> learner = tw.EfficientBandit(tw.domains.Ball(2), horizon=10**6, gradient_bound=1.0, points=2)
        >>> round(learner.regret_bound() / 10**6, 4)
        0.0079
        """
        P = check_nonnegative("regret_bound", "path_length", path_length)
        Y, T, G = self.inner.domain, self.horizon, self.gradient_bound
        assert T is not None
        a, first = self._share, Y.radius + float(np.linalg.norm(self.inner.machine.origin - Y.center.ravel()))
        pool = pool_bound(self.inner.expert, Y.radius, math.sqrt(self._mean_square), 0.0, T, (1 - a) * P, first, 0.0)
        return pool + T * G * (self.exploration + a * self._rho)

    # ------------------------------------------------------------------ randomness, stop and resume

    def reset(self) -> None:
        """Return to the first round, with the same seed."""
        with self._memory.all_or_nothing():
            seed = int(self._memory.state.seed[0])
            super().reset()
            self._memory.state.seed[0] = seed

    def clone(self) -> Self:
        """Return a fresh one with the same arguments and the same seed, before its first round: it draws the same."""
        fresh = type(self)(**(self._given | {"rng": 0}))
        fresh._given, fresh.rng = self._given, self.rng
        fresh._memory.state.seed[:] = self._memory.state.seed
        return fresh

    def _arguments(self) -> dict[str, object]:
        given = super()._arguments()
        return given if isinstance(given.get("rng"), int) else given | {"rng": None}  # the seed is in the state

    def _restarted(self, rounds: int) -> dict[str, object]:
        seed = np.random.default_rng([int(self._memory.state.seed[0]), self.rounds]).integers(2**63)
        return super()._restarted(rounds) | {"rng": int(seed)}


def _read_interior(owner: str, X: Domain, interior: object) -> tuple[Floats, float]:
    """A ball inside, as far as that can be tried: along the axes and at random."""
    if not isinstance(interior, tuple | list) or len(interior) != 2:
        raise wrong(owner, "interior", "a point and a radius: (point, radius)", interior)
    c = check_array(owner, "interior", interior[0], shape=X.shape)
    r = check_positive(owner, "interior", interior[1])
    tried = np.random.default_rng(0).standard_normal((TRIED, X.dim))
    rows = X._directions(np.vstack([np.eye(X.dim)[:TRIED], tried]))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = (rows / np.maximum(lengths, 1e-300))[lengths[:, 0] > 1e-9]
    for row in (np.zeros(X.dim), *rows, *-rows):
        if not X.contains(c + r * row.reshape(X.shape), tol=max(1e-9, X.tolerance)):
            raise InputError(
                f"The 'interior' of {owner} must be a ball inside {X!r}. A point at distance {r * bool(row.any()):g} "
                "from the one given lies outside. Give a smaller radius, or a point further inside."
            )
    return c, r
