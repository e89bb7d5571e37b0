"""The best path in hindsight where moving costs something."""

import numpy as np

from thalweg._core.progress import progress_bar
from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_nonnegative, check_positive
from thalweg.domains._base import Domain
from thalweg.domains.simplex import Simplex
from thalweg.errors import InputError
from thalweg.problems._base import Problem
from thalweg.regret._rounds import check_problem
from thalweg.regret.comparators import Comparator, ProximalRounds, best_fixed, best_per_round, path_length

__all__ = ["best_path"]

RELAX = 1.6  # over-relaxation of the multiplier method
LARGEST_PRICE = 1e300  # of a price: the best path is constant long before
SHORTEST_MOVE = 1e-30  # of the radius: a shorter move changes no digit of a loss
LOOK = 20  # steps between two looks at the gap


def best_path(
    problem: Problem,
    domain: Domain,
    *,
    price: float | None = None,
    budget: float | None = None,
    tol: float = 1e-4,
    steps: int = 4_000,
    progress: bool = False,
) -> Comparator:
    r"""The best moving decisions where moving has a price, or a budget.

    .. math:: \min_{u_t \in X} \sum_t f_t(u_t) + \lambda P(u) \quad\text{or}\quad
              \min_{u_t \in X,\; P(u) \le B} \sum_t f_t(u_t), \qquad P(u) = \sum_{t \ge 2} \|u_t - u_{t-1}\|.

    Parameters
    ----------
    problem, domain
        As for `best_fixed`.
    price : float
        lambda >= 0, or
    budget : float
        B >= 0: exactly one of the two.
    tol : float
        Stop when the gap is at most `tol` times the possible saving of a path: the loss of the best fixed decision
        minus the sum of the least losses of the rounds.
    steps : int
        The largest number of steps; then the best path found, with its gap.
    progress : bool
        Show a progress bar (extra `lab`).

    Returns
    -------
    Comparator
        `decisions` lie in X and within the budget. `gap` bounds the objective, with the price of the path.

    Notes
    -----
    The alternating direction method of multipliers with z_t = u_t in X (a proximal step of each round) and
    d_t = u_{t+1} - u_t (shrunk, or projected onto a ball of sums of norms); u from one tridiagonal system. With
    multipliers p_t of the moves, ||p_t|| <= lambda, and q_t = p_t - p_{t-1},

    .. math:: \sum_t \min_{z \in X} \left( f_t(z) + \langle q_t, z \rangle \right) \;\bigl[ - B \max_t \|p_t\| \bigr]

    is a lower bound on the objective, which gives the gap.

    Examples
    --------
    >>> import numpy as np, thalweg as tw
    >>> problem = tw.problems.LinearRegression(np.ones((20, 1)), np.repeat([0.0, 1.0], 10))
    >>> path = tw.regret.best_path(problem, tw.domains.Ball(1, radius=2.0), budget=0.5)
    >>> path.decisions.ravel().round(2)[[0, 9, 10, 19]], round(path.path_length, 6)
    (array([0.25, 0.25, 0.75, 0.75]), 0.5)
    """
    problem = check_problem("best_path", problem, domain)
    if (price is None) == (budget is None):
        raise InputError("best_path needs a price on movement or a budget for it, exactly one of the two.")
    name = "budget" if price is None else "price"
    amount = check_nonnegative("best_path", name, budget if price is None else price, LARGEST_PRICE)
    check_positive("best_path", "tol", tol)
    steps = check_count("best_path", "steps", steps)
    fixed = best_fixed(problem, domain)
    if len(problem) == 1 or (name == "budget" and amount <= SHORTEST_MOVE * domain.radius):
        return Comparator(fixed.decisions, fixed.losses, fixed.gap, price or 0.0)
    free = best_per_round(problem, domain)
    if name == "price" and amount == 0:
        return free
    return _Path(problem, domain, name == "price", amount, fixed, free).solve(tol, steps, progress)


class _Path:
    """The method behind `best_path`: see its notes."""

    def __init__(
        self, problem: Problem, domain: Domain, priced: bool, amount: float, fixed: Comparator, free: Comparator
    ) -> None:
        self.problem, self.domain, self.priced, self.amount = problem, domain, priced, amount
        self.rounds = ProximalRounds(problem, domain, 1e-10)
        self.best, self.objective = fixed, fixed.loss
        self.bound = free.loss - free.gap  # a lower bound on every objective
        self.save = max(fixed.loss - self.bound, 0.0)
        if not priced and free.path_length <= amount:
            self.best, self.objective = free, free.loss

    def solve(self, tol: float, steps: int, progress: bool) -> Comparator:
        """Step until the gap is small."""
        from scipy.linalg import cho_solve_banded  # here, as it takes a third of the time of `import thalweg`

        T, d = len(self.problem), self.domain.dim
        u = self.best.decisions.reshape(T, d).copy()
        z, moves = u.copy(), np.zeros((T - 1, d))
        w, s = np.zeros((T, d)), np.zeros((T - 1, d))
        rho = sigma = float(np.median(self.rounds.curvature)) / 10
        factor = _factor(T, rho, sigma)
        with progress_bar("best_path", steps, progress, "step") as tick:
            for k in range(steps):
                z, _ = self.rounds.proximal(np.zeros((T, d)), u - w, np.full(T, rho))
                step = np.diff(u, axis=0)
                moves = self._shrink(step - s, sigma)
                z_far, far = RELAX * z + (1 - RELAX) * u, RELAX * moves + (1 - RELAX) * step
                before = u
                u = cho_solve_banded(
                    (factor, False), rho * (z_far + w) + sigma * _fold(far + s), overwrite_b=True, check_finite=False
                )
                w += z_far - u
                s += far - np.diff(u, axis=0)
                tick(1)
                if k % LOOK == LOOK - 1:
                    self._offer(z, moves)
                    self._bound(sigma * s, z)
                    if self.objective - self.bound <= tol * self.save:
                        break
                    if k < steps // 2:  # weights that change for ever need not converge
                        a = _balance(z - u, u - before)
                        b = _balance(moves - np.diff(u, axis=0), np.diff(u - before, axis=0))
                        rho, sigma, w, s = rho * a, sigma * b, w / a, s / b
                        factor = _factor(T, rho, sigma)
        gap = max(0.0, self.objective - self.bound)
        return Comparator(self.best.decisions, self.best.losses, gap, self.amount if self.priced else 0.0)

    def _shrink(self, moves: Floats, sigma: float) -> Floats:
        """The proximal step of the price, or the projection onto the budget: shorten every move."""
        norms = np.linalg.norm(moves, axis=1)
        if self.priced:
            kept = np.maximum(0.0, norms - self.amount / sigma)
        elif norms.sum() > self.amount:
            kept = Simplex(norms.size, total=self.amount)._project_flat(norms)
        else:
            kept = norms
        ratios: Floats = np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)
        return moves * ratios[:, None]

    def _offer(self, z: Floats, moves: Floats) -> None:
        """Two paths to choose from: z itself, and its mean on every stretch where nothing moves."""
        starts = np.r_[0, 1 + np.flatnonzero(moves.any(axis=1))]
        lengths = np.diff(np.r_[starts, len(z)])
        means = np.add.reduceat(z, starts, axis=0) / lengths[:, None]
        for path in (z, np.repeat(means, lengths, axis=0)):
            length = path_length(path)
            if not self.priced and length > self.amount:
                middle = path.mean(axis=0)
                path = middle + (self.amount / length) * (1 - 1e-12) * (path - middle)
                length = self.amount
            losses = self.problem.losses_of(path)
            objective = float(losses.sum()) + (self.amount * length if self.priced else 0.0)
            if objective < self.objective:
                decisions = path.reshape(len(z), *self.domain.shape).copy()
                self.best, self.objective = Comparator(decisions, losses, 0.0), objective

    def _bound(self, p: Floats, z: Floats) -> None:
        """The lower bound from multipliers of the moves."""
        norms = np.linalg.norm(p, axis=1)
        if self.priced:
            p = p * np.divide(self.amount, norms, out=np.ones_like(norms), where=norms > self.amount)[:, None]
        _, lower = self.rounds.minimise(-_fold(p), z)
        bound = float(lower.sum()) - (0.0 if self.priced else self.amount * float(norms.max()))
        self.bound = max(self.bound, bound)


def _fold(p: Floats) -> Floats:
    """The transpose of taking differences: row t is p_{t-1} - p_t."""
    return -np.diff(p, axis=0, prepend=0.0, append=0.0)


def _factor(T: int, rho: float, sigma: float) -> Floats:
    """The Cholesky factor of rho I + sigma D'D, D the differences: tridiagonal."""
    from scipy.linalg import cholesky_banded

    bands = np.full((2, T), -sigma)
    bands[1] = rho + 2 * sigma
    bands[1, [0, -1]] = rho + sigma
    factor: Floats = cholesky_banded(bands, check_finite=False)
    return factor


def _balance(violation: Floats, change: Floats) -> float:
    """Weigh a constraint more that is violated more than its side moves, and the other way round."""
    apart, moved = np.linalg.norm(violation), np.linalg.norm(change)
    return 2.0 if apart > 5 * moved else 0.5 if moved > 5 * apart else 1.0
