"""Comparators in hindsight against an independent solver (Clarabel), brute force on a line, and their definitions."""

import itertools
from fractions import Fraction

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import thalweg as tw
from tests.domains.test_projections_solvers import triangle
from tests.regret.cases import DISC, ENDLESS, FINE, KINDS, wrapped
from tests.worlds import examples
from thalweg import domains, problems
from thalweg.errors import InputError
from thalweg.regret import Comparator, best_fixed, best_path, best_per_round, path_length
from thalweg.regret.windows import Windows

DELTA, TAU = 0.3, 0.8
OTHERS = {
    "huber": lambda a, b: problems.HuberRegression(a, b, DELTA),
    "pinball": lambda a, b: problems.QuantileRegression(a, b, TAU),
    "hinge": problems.HingeClassification,
}
EVERY = KINDS | OTHERS
kinds = pytest.mark.parametrize("kind", KINDS)


# ------------------------------------------------------------------------------------------ the independent solver


class Program:
    """min q'x + x'Px/2 with b - A x in a cone, block by block."""

    def __init__(self):
        self.size, self.offset, self.costs, self.squared, self.blocks = 0, 0.0, [], [], []

    def new(self, count):
        self.size += count
        return np.arange(self.size - count, self.size)

    def within(self, cone, b, *terms):
        """b - the sum of M x[index] lies in the cone, for terms (M, index)."""
        self.blocks.append((cone, np.atleast_1d(b), [(np.atleast_2d(M), index) for M, index in terms]))

    def equal(self, b, *terms):
        self.within(clarabel.ZeroConeT(np.size(b)), b, *terms)

    def at_most(self, b, *terms):
        self.within(clarabel.NonnegativeConeT(np.size(b)), b, *terms)

    def norm_at_most(self, r, M, x, shift):
        """||M x - shift|| <= r, a number or the index of a variable."""
        A = np.vstack([np.zeros((1, M.shape[1])), -M])
        if isinstance(r, float):
            self.within(clarabel.SecondOrderConeT(len(A)), [r, *-shift], (A, x))
        else:
            self.within(clarabel.SecondOrderConeT(len(A)), [0.0, *-shift], (A, x), (-np.eye(len(A), 1), r))

    def solve(self):
        A = np.zeros((sum(len(b) for _, b, _ in self.blocks), self.size))
        row = 0
        for _, b, terms in self.blocks:
            for M, index in terms:
                A[row : row + len(b), index] += M
            row += len(b)
        q = np.zeros(self.size)
        for index, cost in self.costs:
            q[index] += cost
        P = sparse.csc_matrix((np.ones(len(self.squared)), (self.squared, self.squared)), shape=(self.size, self.size))
        options = clarabel.DefaultSettings()
        options.verbose = False
        options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
        b = np.concatenate([b for _, b, _ in self.blocks])
        answer = clarabel.DefaultSolver(P, q, sparse.csc_matrix(A), b, [c for c, _, _ in self.blocks], options).solve()
        assert str(answer.status) in ("Solved", "AlmostSolved", "InsufficientProgress"), answer.status
        return answer.obj_val + self.offset


def pay(program, kind, a, b, x):
    """Add f(x) = phi(<a, x>, b) to the objective."""
    if kind == "linear":
        program.costs.append((x, a))
        program.offset += b
        return
    e = program.new(1)
    if kind == "squared":
        program.equal(b, (a, x), (-1.0, e))
        program.squared.append(e[0])
        return
    if kind == "huber":  # u^2/2 + DELTA |z - b - u|, the least over u: e = u, s >= |z - b - u|
        s = program.new(1)
        program.squared.append(e[0])
        program.costs.append((s, DELTA))
        rows = np.array([a, -a])
        program.at_most([b, -b], (rows, x), ([[-1.0], [1.0]], e), ([[-1.0], [-1.0]], s))
        return
    program.costs.append((e, 1.0))
    exponential = clarabel.ExponentialConeT()  # (x, y, z) with y exp(x / y) <= z
    if kind == "absolute":
        program.at_most([b, -b], (np.array([a, -a]), x), ([[-1.0], [-1.0]], e))
    elif kind == "pinball":
        program.at_most([(1 - TAU) * b, -TAU * b], (np.array([(1 - TAU) * a, -TAU * a]), x), ([[-1.0], [-1.0]], e))
    elif kind == "hinge":
        program.at_most([-1.0, 0.0], (np.array([-b * a, 0 * a]), x), ([[-1.0], [-1.0]], e))
    elif kind == "log":  # exp(-e) <= <a, x>
        program.within(exponential, [0, 1, 0], ([[1.0], [0], [0]], e), (np.array([0 * a, 0 * a, -a]), x))
    else:  # log(1 + exp(-b z)) <= e: exp(-b z - e) + exp(-e) <= 1
        p = program.new(2)
        zero = np.zeros_like(a)
        first, second = [[0, 0], [0, 0], [-1.0, 0]], [[0, 0], [0, 0], [0, -1.0]]
        program.within(exponential, [0, 1, 0], ([[1.0], [0], [0]], e), (np.array([b * a, zero, zero]), x), (first, p))
        program.within(exponential, [0, 1, 0], ([[1.0], [0], [0]], e), (second, p))
        program.at_most(1.0, ([1.0, 1.0], p))


def optimum(kind, a, b, member, *, fixed=False, price=None, budget=None):
    """min over x_t in the set of sum phi(<a_t, x_t>, b_t), plus price times path length, or within a budget for it."""
    program = Program()
    T, d = a.shape
    points = [program.new(d) for _ in range(1 if fixed else T)]
    for x in points:
        member(program, x)
    points = points * T if fixed else points
    for t in range(T):
        pay(program, kind, a[t], b[t], points[t])
    if price is not None or budget is not None:
        n = program.new(T - 1)
        difference = np.hstack([-np.eye(d), np.eye(d)])
        for t in range(T - 1):
            program.norm_at_most(n[t : t + 1], difference, np.r_[points[t], points[t + 1]], np.zeros(d))
        if budget is None:
            program.costs.append((n, price))
        else:
            program.at_most(budget, (np.ones(T - 1), n))
    return program.solve()


# ------------------------------------------------------------------------------------------------------------ the sets

C = np.array([1.5, -0.5, 1.0])
TOP = C + np.array([0.5, 1.0, 2.0])
SIDES = np.vstack([np.eye(3), -np.eye(3), np.ones((1, 3))])
REACH = SIDES @ C + np.array([1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.5])


def in_ball(p, x):
    p.norm_at_most(1.0, np.eye(3), x, C)


def in_box(p, x):
    p.at_most(TOP, (np.eye(3), x))
    p.at_most(1.0 - C, (-np.eye(3), x))


def in_simplex(p, x):
    p.equal(1.0, (np.ones(len(x)), x))
    p.at_most(np.zeros(len(x)), (-np.eye(len(x)), x))


def in_l1_ball(p, x):
    s = p.new(3)  # |x - c| <= s, sum s <= 1
    p.at_most(C, (np.eye(3), x), (-np.eye(3), s))
    p.at_most(-C, (-np.eye(3), x), (-np.eye(3), s))
    p.at_most(1.0, (np.ones(3), s))


def in_ellipsoid(p, x):
    M = np.diag([1.0, 2.0, 3.0])
    p.norm_at_most(1.0, M, x, M @ C)


def in_product(p, x):
    p.norm_at_most(1.0, np.eye(1), x[:1], C[:1])
    p.norm_at_most(2.0, np.eye(2), x[1:], C[1:])


def in_polytope(p, x):
    p.at_most(REACH, (SIDES, x))


def in_cut_ball(p, x):
    p.norm_at_most(1.0, np.eye(3), x, np.zeros(3))
    p.at_most(0.2, (np.ones(3), x))


def in_spectral_balls(p, x):
    """[[c I, M], [M', c I]] is positive semi-definite for both blocks M."""
    place = np.zeros((16, 4))
    for k, (i, j) in enumerate([(0, 2), (0, 3), (1, 2), (1, 3)]):
        place[4 * i + j, k] = 1.0
    for block, cap in ((x[:4], 1.0), (x[4:], 0.5)):
        p.within(clarabel.PSDTriangleConeT(4), triangle(4) @ (cap * np.eye(4)).ravel(), (-triangle(4) @ place, block))


def cut_ball(s):
    return domains.Intersection(domains.Ball(3, s), domains.HalfSpace(np.ones(3), 0.2 * s))


# name: the set at scale s, and what the solver is told about the one at scale 1
COMPILED = {
    "ball": (lambda s: domains.Ball(3, s, s * C), in_ball),
    "box": (lambda s: domains.Box(s * (C - 1.0), s * TOP), in_box),
    "simplex": (lambda s: domains.Simplex(4, s), in_simplex),
    "l1 ball": (lambda s: domains.L1Ball(3, s, s * C), in_l1_ball),
    "ellipsoid": (lambda s: domains.Ellipsoid([1.0, 4.0, 9.0], s**2, s * C), in_ellipsoid),
    "product of balls": (lambda s: domains.ProductOfBalls(3, [s, 2 * s], s * C, sizes=[1, 2]), in_product),
}
PYTHON = {
    "custom": (lambda s: wrapped(domains.Ball(3, s, s * C)), in_ball),
    "polytope": (lambda s: domains.Polytope(SIDES, s * REACH), in_polytope),
    "intersection": (cut_ball, in_cut_ball),
    "spectral balls": (lambda s: domains.SpectralBalls((2, 2, 2), [s, 0.5 * s]), in_spectral_balls),
}
SETS = COMPILED | PYTHON


# -------------------------------------------------------------------------------------------------------- the problems


PHI = {
    "squared": lambda z, b: (z - b) ** 2 / 2,
    "absolute": lambda z, b: np.abs(z - b),
    "linear": lambda z, b: z + b,
    "logistic": lambda z, b: np.logaddexp(0.0, -b * z),
    "huber": lambda z, b: np.where(np.abs(z - b) <= DELTA, (z - b) ** 2 / 2, DELTA * (np.abs(z - b) - DELTA / 2)),
    "pinball": lambda z, b: np.maximum(TAU * (b - z), (1 - TAU) * (z - b)),
    "hinge": lambda z, b: np.maximum(0.0, 1.0 - b * z),
}  # the losses, from their definitions


def data(kind, domain, T, seed):
    """Features and labels: some rounds pull to a point inside the set, some beyond it."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((T, *domain.shape))
    a = a.reshape(T, -1)
    targets = domain.center.ravel() + 1.5 * domain.radius * rng.uniform(-1, 1, (T, domain.dim))
    b = rng.choice([-1.0, 1.0], T) if kind in ("logistic", "hinge") else np.einsum("td,td->t", a, targets)
    return a, b


def spread(kind, a, b, domain):
    """How much the losses of all rounds differ at most on the ball around the set."""
    middle, reach = a @ domain.center.ravel(), np.linalg.norm(a, axis=1) * domain.radius
    ends = np.array([PHI[kind](middle + sign * reach, b) for sign in (-1, 1)])
    least = ends.min(0) if kind in ("linear", "logistic") else PHI[kind](np.clip(b, middle - reach, middle + reach), b)
    return float((ends.max(0) - least).sum())


def objective(found):
    return found.loss + found.price * found.path_length


def agrees(found, best, unit, width):
    """Not below the optimum; and the optimum is not below what the gap allows; and the gap is small."""
    ours = objective(found)
    assert best - 1e-7 * unit <= ours
    assert ours - found.gap <= best + 1e-7 * unit
    assert 0 <= found.gap <= width


def feasible(found, domain, rounds, budget=None):
    assert found.decisions.shape == (rounds, *domain.shape)
    assert found.losses.shape == (rounds,)
    assert all(domain.contains(x) for x in found.decisions)
    if budget is not None:  # up to the rounding of coordinates
        assert found.path_length <= budget + 8 * rounds * np.finfo(float).eps * np.abs(found.decisions).max()


def compare(kind, name, scale, T, seed, *, features="matched", path=True, fit=1e-9, **options):
    """All comparators of a set at a scale against the solver, which only sees scale 1.

    Features that shrink as the set grows leave all losses as they are. Raw ones make losses as large as the set.
    """
    make, member = SETS[name]
    domain, unit_domain = make(scale), make(1.0)
    a, b = data(kind, unit_domain, T, seed)
    shape = (T, *domain.shape)
    if features == "matched":
        factor, problem = 1.0, EVERY[kind]((a / scale).reshape(shape), b)
    else:
        factor, problem = scale ** (2 if kind == "squared" else 1), EVERY[kind](a.reshape(shape), scale * b)
    unit = factor * spread(kind, a, b, unit_domain)
    fixed, free = best_fixed(problem, domain, tol=fit), best_per_round(problem, domain, tol=fit)
    feasible(fixed, domain, T)
    feasible(free, domain, T)
    assert fixed.path_length == 0
    worst, least = (factor * optimum(kind, a, b, member, fixed=f) for f in (True, False))
    agrees(fixed, worst, unit, max(3e-6, 2 * fit) * unit)
    agrees(free, least, unit, max(3e-6, 2 * fit) * unit)
    if not path:
        return
    width = 10 * options.get("tol", 1e-4) * (worst - least) + 1e-9 * unit
    price, budget = (worst - least) / (8 * unit_domain.radius), 0.7 * unit_domain.radius
    priced = best_path(problem, domain, price=price / scale, **options)
    feasible(priced, domain, T)
    agrees(priced, factor * optimum(kind, a, b, member, price=price / factor), unit, width)
    bounded = best_path(problem, domain, budget=scale * budget, **options)
    feasible(bounded, domain, T, scale * budget)
    agrees(bounded, factor * optimum(kind, a, b, member, budget=budget), unit, width)


# -------------------------------------------------------------------------------------------------- against the solver


def everything(problem, domain, price, budget, **options):
    """Comparators of all kinds, each with what the solver is asked for it."""
    yield best_fixed(problem, domain), {"fixed": True}
    yield best_per_round(problem, domain), {}
    yield best_path(problem, domain, price=price, **options), {"price": price}
    yield best_path(problem, domain, budget=budget, **options), {"budget": budget}


def slow_unless(fast, rows):
    """The rows as parameters of a test, all but the fast ones marked slow."""
    return [row if row in fast else pytest.param(*row, marks=pytest.mark.slow) for row in rows]


@kinds
@pytest.mark.parametrize("name", COMPILED)
def test_agrees_with_an_independent_solver(name, kind):
    if kind == "absolute":
        compare(kind, name, 1.0, 6, seed=1, path=False, fit=1e-6)
    else:
        compare(kind, name, 1.0, 12, seed=len(name))


@pytest.mark.parametrize(
    ("name", "kind"),
    slow_unless([("ball", "huber"), ("simplex", "pinball"), ("box", "hinge")], itertools.product(COMPILED, OTHERS)),
)
def test_losses_with_parameters_agree_with_the_solver(name, kind):
    compare(kind, name, 1.0, 6, seed=5)


@pytest.mark.parametrize(
    ("name", "kind"),
    slow_unless(
        [("simplex", k) for k in ("squared", "linear", "logistic")],
        [(n, k) for n in ("ball", "simplex") for k in KINDS],
    ),
)
def test_agrees_on_more_rounds(name, kind):
    compare(kind, name, 1.0, 25, seed=3)


@pytest.mark.parametrize(
    ("name", "rounds"), slow_unless([("ball", 3)], [("ball", 3), *((name, 8) for name in COMPILED)])
)
def test_agrees_on_paths_of_absolute_losses(name, rounds):
    compare("absolute", name, 1.0, rounds, seed=len(name))


@pytest.mark.parametrize(
    ("name", "kind"),
    slow_unless(
        [(n, k) for n in PYTHON for k in KINDS if k != "absolute" or n in ("custom", "polytope")]
        + [("custom", k) for k in OTHERS],
        [(n, k) for n in PYTHON for k in EVERY],
    ),
)
def test_agrees_where_only_a_projection_is_known(name, kind):
    compare(kind, name, 1.0, 3, seed=len(name), path=False, fit=1e-4)


@pytest.mark.parametrize(
    ("name", "kind", "rounds"),
    slow_unless(
        [("custom", "squared", 2), ("custom", "linear", 3), ("custom", "logistic", 3)],
        [("custom", "squared", 2), *((n, k, 3) for n in PYTHON for k in KINDS)],
    ),
)
def test_agrees_on_paths_where_only_a_projection_is_known(name, kind, rounds):
    compare(kind, name, 1.0, rounds, seed=5, fit=1e-4, tol=0.02, steps=40)


@pytest.mark.parametrize(
    ("kind", "features"), [(k, f) for k in KINDS for f in ("matched", "raw") if (k, f) != ("logistic", "raw")]
)
@pytest.mark.parametrize("scale", [1e-8, 1e6])
@pytest.mark.parametrize("name", ["ball", "box", "simplex"])
def test_agrees_at_every_scale(name, scale, kind, features):
    """A logistic loss of raw features is not homogeneous, so that the solver could not be asked at scale 1."""
    kinked = kind == "absolute"
    path = not kinked or name == "ball"
    compare(kind, name, scale, 5, 11, features=features, fit=1e-6 if kinked else 1e-9, path=path)


# --------------------------------------------------------------------------------------------- brute force on a line

LINE = np.linspace(-0.5, 1.0, 151)
STEP = LINE[1] - LINE[0]


def on_the_line(kind, seed, T=8):
    """A problem on [-0.5, 1], the losses of all grid points, and what rounding a path to the grid costs a round."""
    domain = domains.Box([-0.5], [1.0])
    a, b = data(kind, domain, T, seed)
    slopes = np.abs(np.gradient(PHI[kind](a * LINE, b[:, None]), STEP, axis=1)).max() + np.abs(a).max() ** 2 * STEP
    return KINDS[kind](a, b), domain, PHI[kind](a * LINE, b[:, None]), slopes * STEP / 2


def between(found, low, high):
    assert low <= objective(found)
    assert objective(found) - found.gap <= high


@kinds
@pytest.mark.parametrize("seed", range(3))
def test_one_decision_by_brute_force(kind, seed):
    problem, domain, values, loss = on_the_line(kind, seed)
    between(best_per_round(problem, domain), values.min(axis=1).sum() - 8 * loss, values.min(axis=1).sum() + 1e-9)
    for r, s in ((0, 8), (0, 1), (3, 5), (2, 8)):
        least = values[r:s].sum(axis=0).min()
        between(best_fixed(problem, domain, r, s, tol=1e-7), least - (s - r) * loss, least + 1e-9)


@kinds
@pytest.mark.parametrize("price", [0.03, 0.3, 1.0])
def test_priced_paths_by_brute_force(kind, price):
    """Dynamic programming over the grid: the least cost of a path that stands at x after round t."""
    problem, domain, values, loss = on_the_line(kind, 4)
    cost = values[0]
    for now in values[1:]:
        cost = (cost[:, None] + price * np.abs(LINE[:, None] - LINE)).min(axis=0) + now
    found = best_path(problem, domain, price=price)
    between(found, cost.min() - 8 * (loss + price * STEP), cost.min() + 1e-9)
    assert found.gap <= 0.01 * np.ptp(values, axis=1).sum()


def cheapest(values, moves):
    """The least loss of a path of so many moves between neighbours on the grid: dynamic programming over both."""
    n = values.shape[1]
    cost = np.repeat(values[0][:, None], moves + 1, axis=1)  # by place and moves left to spend
    for now in values[1:]:
        best = cost.copy()
        for k in range(1, min(moves, n - 1) + 1):
            best[k:, : moves + 1 - k] = np.minimum(best[k:, : moves + 1 - k], cost[:-k, k:])
            best[:-k, : moves + 1 - k] = np.minimum(best[:-k, : moves + 1 - k], cost[k:, k:])
        cost = best + now[:, None]
    return cost.min()


@kinds
@pytest.mark.parametrize("moves", [3, 20, 90])
def test_budgeted_paths_by_brute_force(kind, moves):
    problem, domain, values, loss = on_the_line(kind, 5)
    found = best_path(problem, domain, budget=moves * STEP)
    assert found.path_length <= moves * STEP * (1 + 1e-9)
    # a path rounded to the grid is longer by a step a round at most
    between(found, cheapest(values, moves + 8) - 8 * loss, cheapest(values, moves) + 1e-9)
    assert found.gap <= 0.01 * np.ptp(values, axis=1).sum()


# -------------------------------------------------------------------------------------------------- limits, identities


def example(kind, name="ball", T=10, seed=7):
    domain = SETS[name][0](1.0)
    a, b = data(kind, domain, T, seed)
    return KINDS[kind](a.reshape(T, *domain.shape), b), domain, spread(kind, a, b, domain)


SMOOTH = ("squared", "logistic", "linear")


@pytest.mark.parametrize("kind", SMOOTH)
def test_limits_of_price_and_budget(kind):
    problem, domain, unit = example(kind)
    fixed, free = best_fixed(problem, domain), best_per_round(problem, domain)
    save = fixed.loss - free.loss
    for same in (best_path(problem, domain, price=0.0), best_path(problem, domain, budget=1e6)):
        assert abs(same.loss - free.loss) <= same.gap + free.gap + 1e-12 * unit
        assert same.gap <= 1e-4 * save
    for same in (
        best_path(problem, domain, budget=0.0),
        best_path(problem, domain, budget=1e-300),
        best_path(problem, domain, price=1e6),
        best_path(problem, domain, price=1e300),
    ):
        assert abs(objective(same) - fixed.loss) <= same.gap + fixed.gap + 1e-12 * unit
        assert same.gap <= 1e-3 * save
        assert same.path_length <= 1e-6
    assert fixed.price == free.price == 0


@pytest.mark.parametrize("kind", SMOOTH)
def test_a_larger_budget_pays_less_and_less(kind):
    """The least loss is a convex function of the budget that falls."""
    problem, domain, unit = example(kind)
    budgets = np.array([0.0, 0.4, 0.8, 1.6, 3.2])
    found = [best_path(problem, domain, budget=B) for B in budgets]
    rounding = 1e-12 * unit
    for less, more in itertools.pairwise(found):
        assert more.loss - more.gap <= less.loss + rounding
    for k in range(1, 4):
        share = (budgets[k + 1] - budgets[k]) / (budgets[k + 1] - budgets[k - 1])
        chord = share * found[k - 1].loss + (1 - share) * found[k + 1].loss
        assert found[k].loss - found[k].gap <= chord + rounding
    assert found[0].loss - found[-1].loss > 0.1 * unit / 10


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("name", ["ball", "simplex"])
def test_price_and_budget_are_two_views_of_one_problem(name, kind):
    problem, domain, unit = example(kind, name)
    free, fixed = best_per_round(problem, domain), best_fixed(problem, domain)
    prices = (fixed.loss - free.loss) / domain.radius * np.array([0.01, 0.05, 0.15])
    priced = [best_path(problem, domain, price=p) for p in prices]
    for cheap, dear in itertools.pairwise(priced):
        assert objective(cheap) - cheap.gap <= objective(dear) + 1e-12 * unit
        # each is at least as good as the other at its own price
        for one, other in ((cheap, dear), (dear, cheap)):
            assert objective(one) - one.gap <= other.loss + one.price * other.path_length + 1e-12 * unit
    assert priced[0].path_length > 0.1 * domain.radius
    for p in priced:
        bounded = best_path(problem, domain, budget=p.path_length)
        assert bounded.path_length <= p.path_length * (1 + 1e-9)
        assert bounded.loss >= p.loss - p.gap - 1e-9 * unit
        assert bounded.loss - bounded.gap <= p.loss + 1e-9 * unit


@pytest.mark.parametrize(
    ("kind", "seed"), slow_unless([(k, 4) for k in KINDS], [(k, seed) for k in KINDS for seed in (2, 4)])
)
def test_the_objective_only_depends_on_the_losses(kind, seed):
    """The same losses as features and labels, as a list, as functions, and turned or shifted with the set."""
    domain = domains.Ball(2, 1.5, [0.3, -0.2])
    a, b = data(kind, domain, 3, seed)
    problem = KINDS[kind](a, b)
    unit = spread(kind, a, b, domain)
    turn, shift = np.array([[0.6, -0.8], [0.8, 0.6]]), np.array([5.0, -3.0])
    moved_domain = domains.Ball(2, 1.5, turn @ domain.center + shift)
    others = [
        (list(problem), domain),
        (problems.FromLosses(list(problem)), domain),
        (problems.FromFunctions(lambda t, x: problem[t].value(x), lambda t, x: problem[t].gradient(x), 2, 3), domain),
    ]
    if kind != "logistic":
        sign = -1 if kind == "linear" else 1
        others.append((KINDS[kind](a @ turn.T, b + sign * a @ turn.T @ shift), moved_domain))
    for rounds, where in others:
        for best in (best_fixed, best_per_round):
            first, second = best(problem, domain, tol=1e-4), best(rounds, where, tol=1e-4)
            assert abs(first.loss - second.loss) <= first.gap + second.gap + 1e-12 * unit
            assert second.gap <= 0.05 * unit


# ------------------------------------------------------------------------------------------------- losses of the user


class Growth:
    """-log <p, x>: what a portfolio x loses in a period of price ratios p. Defined on the simplex only."""

    def __init__(self, p):
        self.p = np.asarray(p, dtype=float)

    def value(self, x):
        assert x.min() >= -1e-12
        assert abs(x.sum() - 1) <= 1e-9
        z = float(self.p @ x)
        return -np.log(z) if z > 0 else np.inf

    def gradient(self, x):
        z = float(self.p @ x)
        return -self.p / z if z > 0 else np.where(self.p > 0, -1e12, 0.0)


@pytest.mark.parametrize("rounds", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_losses_that_exist_on_the_set_only(rounds):
    """Portfolios: the value is undefined outside the simplex, and must not be asked for there."""
    p = np.random.default_rng(0).uniform(0.2, 2.0, (rounds, 3))
    losses, domain = [Growth(row) for row in p], domains.Simplex(3)
    for found, asked in everything(losses, domain, 0.05, 0.3, steps=100):
        agrees(found, optimum("log", p, np.zeros(rounds), in_simplex, **asked), 1.0, 1e-3)
        feasible(found, domain, rounds, asked.get("budget"))


@pytest.mark.parametrize(
    ("n", "d"), [(n, d) for n in (1, 10, 30, 40) for d in (2, 3)] + slow_unless([(300, 2)], [(300, 2), (300, 3)])
)
def test_losses_that_are_infinite_on_the_boundary(n, d):
    """-log x_1 once and -log x_2 n times: the best shares are 1 and n of n + 1. A vertex pays an infinite loss."""
    losses = [Growth(np.eye(d)[0])] + [Growth(np.eye(d)[1])] * n
    found = best_fixed(losses, domains.Simplex(d))
    best = np.log(n + 1) - n * np.log(n / (n + 1))
    assert best - 1e-9 <= found.loss
    assert found.loss - found.gap <= best + 1e-9
    assert found.gap <= 1e-3


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 3, 4, 5))])
def test_kinks_of_the_user_leave_an_honest_gap(seed):
    """Nothing is known about kinks in a list of losses: the answer may be poor, but the gap must know."""
    rng = np.random.default_rng(seed)
    domain = domains.Box([-1.0, -1.0], [1.0, 1.0])
    a, u = rng.integers(-3, 4, (2, 2)).astype(float), rng.uniform(-0.8, 0.8, 2)
    losses = [tw.losses.Absolute(row, row @ u) for row in a]
    found = best_fixed(losses, domain)  # u pays nothing
    assert found.loss - found.gap <= 1e-12
    found = best_per_round(losses, domain)
    assert found.loss - found.gap <= 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_portfolios_agree_with_the_solver(seed):
    rng = np.random.default_rng(seed)
    returns = rng.uniform(0.3, 2.0, (6, 4))
    if seed % 2:
        returns[rng.uniform(size=returns.shape) < 0.3] = 0.0  # lost at a corner
        returns[:, seed] += 0.1
    domain, problem = domains.Simplex(4), problems.Portfolio(returns)
    for found, asked in everything(problem, domain, 0.05, 0.5):
        best = optimum("log", returns, np.zeros(6), in_simplex, **asked)
        agrees(found, best, 6.0, 6e-3 if "price" in asked or "budget" in asked else 6e-5)
        feasible(found, domain, 6, asked.get("budget"))


def test_portfolios_where_only_a_projection_is_known():
    rng = np.random.default_rng(1)
    returns = rng.uniform(0.3, 2.0, (4, 3))
    domain, problem = wrapped(domains.Simplex(3)), problems.Portfolio(returns)
    agrees(best_fixed(problem, domain), optimum("log", returns, np.zeros(4), in_simplex, fixed=True), 4.0, 1e-5)
    agrees(best_per_round(problem, domain), -np.log(returns.max(axis=1)).sum(), 4.0, 1e-3)


def test_a_log_loss_that_is_infinite_everywhere_is_refused():
    problem = tw.problems.LinearModel([[1.0, 1.0], [-1.0, -1.0]], [0.0, 0.0], "log")
    for compare in (best_fixed, best_per_round, lambda p, X: best_path(p, X, price=1.0)):
        with pytest.raises(InputError, match=r"log loss of round 1 is infinite on all of Simplex\(2\)"):
            compare(problem, domains.Simplex(2))
    with pytest.raises(InputError, match="add up to inf at the centre"):  # each round is finite somewhere
        best_fixed(tw.problems.LinearModel([[1.0], [-1.0]], [0.0, 0.0], "log"), domains.Ball(1))


# ------------------------------------------------------------------------------------------------------------ edges


@kinds
@pytest.mark.parametrize("name", ["ball", "simplex", "custom"])
def test_features_of_zero(name, kind):
    """Losses that do not depend on the decision: everything is optimal, nothing is left to gain."""
    domain = SETS[name][0](1.0)
    b = np.array([1.0, -1.0, 1.0])
    problem = KINDS[kind](np.zeros((3, domain.dim)), b)
    paid = PHI[kind](0.0, b).sum()
    whole = [found for found, _ in everything(problem, domain, 1.0, 0.0, steps=2 if name == "custom" else 4000)]
    for found in (*whole, best_fixed(problem, domain, 1, 2)):
        feasible(found, domain, len(found.losses))
        assert found.loss == pytest.approx(paid if len(found.losses) == 3 else PHI[kind](0.0, b[1]))
        assert 0 <= found.gap <= 1e-12


@pytest.mark.parametrize("price", [0.5, 5.0, 1e300])
def test_nothing_to_move_for(price):
    """One decision is perfect in every round: no path does better, whatever moving costs."""
    problem = problems.LinearRegression(np.ones((4, 1)), np.zeros(4))
    for found in (best_path(problem, domains.Ball(1), price=price), best_path(problem, domains.Ball(1), budget=price)):
        assert objective(found) == pytest.approx(0.0, abs=1e-12)
        assert found.gap <= 1e-12


@kinds
def test_some_features_of_zero(kind):
    a, b = data(kind, domains.Ball(3, 1.0, C), 6, 1)
    a[[0, 3]] = 0.0
    problem, domain = KINDS[kind](a, b), domains.Ball(3, 1.0, C)
    unit = spread(kind, a, b, domain)
    agrees(best_fixed(problem, domain, tol=1e-6), optimum(kind, a, b, in_ball, fixed=True), unit, 1e-5 * unit)
    agrees(best_per_round(problem, domain), optimum(kind, a, b, in_ball), unit, 1e-6 * unit)
    price = 0.02 * unit
    agrees(best_path(problem, domain, price=price), optimum(kind, a, b, in_ball, price=price), unit, 0.01 * unit)


@kinds
def test_one_round(kind):
    problem, domain, unit = example(kind, T=1)
    per_round = best_per_round(problem, domain)
    for found, _ in (*everything(problem, domain, 0.3, 0.3), *everything(problem, domain, 0.0, 0.0)):
        assert found.path_length == 0
        assert abs(found.loss - per_round.loss) <= found.gap + per_round.gap + 1e-12 * unit
        assert found.gap <= 1e-6 * unit
    assert best_path(problem, domain, price=0.3).price == 0.3


@kinds
def test_duplicated_rounds(kind):
    """Twice the same rounds: twice the loss, the same best decision on every copy, and no wish to move within one."""
    domain = SETS["ball"][0](1.0)
    a, b = data(kind, domain, 2, 3)
    unit = spread(kind, a, b, domain)
    once, twice = KINDS[kind](a, b), KINDS[kind](np.repeat(a, 2, axis=0), np.repeat(b, 2))
    for best in (best_fixed, best_per_round):
        one, two = best(once, domain, tol=1e-6), best(twice, domain, tol=1e-6)
        assert abs(two.loss - 2 * one.loss) <= 2 * one.gap + two.gap + 1e-9 * unit
    same = KINDS[kind](np.repeat(a[:1], 5, axis=0), np.repeat(b[:1], 5))
    path = best_path(same, domain, price=1e-3)
    assert objective(path) - path.gap <= 5 * best_per_round(same[:1], domain).loss + 1e-9 * unit
    assert path.path_length <= 1e-6


@pytest.mark.parametrize("name", COMPILED)
def test_windows_shorter_than_the_dimension(name):
    """The quadratic of a short window is flat in some directions: any of its minimisers will do."""
    make, member = SETS[name]
    domain = make(1.0)
    a, b = data("squared", domain, 8, 5)
    problem, unit = problems.LinearRegression(a, b), spread("squared", a, b, domain)
    for r, s in ((0, 1), (3, 5), (6, 8), (7, 8)):
        agrees(
            best_fixed(problem, domain, r, s), optimum("squared", a[r:s], b[r:s], member, fixed=True), unit, 1e-7 * unit
        )


@kinds
def test_sets_of_one_point(kind):
    point = np.array([0.5, -2.0])
    a, b = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([1.0, -1.0])
    problem = KINDS[kind](a, b)
    for found, _ in everything(problem, domains.Box(point, point), 0.1, 0.1):
        np.testing.assert_array_equal(found.decisions, [point, point])
        assert found.loss == pytest.approx(PHI[kind](a @ point, b).sum())
        assert 0 <= found.gap <= 1e-9
    assert best_fixed(KINDS[kind](a[:, :1], b), domains.Simplex(1, 3.0)).decisions == pytest.approx(3.0)


@kinds
@pytest.mark.parametrize("name", ["ball", "box", "ellipsoid"])
def test_a_tiny_set_far_away(name, kind):
    if kind == "absolute":  # kinks take long
        tiny_set_far_away(name, kind, tol=1e-2, path=False)
    else:
        tiny_set_far_away(name, kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ball", "box", "ellipsoid"])
def test_paths_of_absolute_losses_in_a_tiny_set_far_away(name):
    tiny_set_far_away(name, "absolute")


def tiny_set_far_away(name, kind, *, tol=1e-6, path=True):
    """Radius 1e-8 around a centre of size 1: only rounding is left to tell decisions apart, and the gap knows."""
    domain = {
        "ball": domains.Ball(3, 1e-8, C),
        "box": domains.Box(C - 1e-8, C + 1e-8),
        "ellipsoid": domains.Ellipsoid([1.0, 4.0, 9.0], 1e-16, C),
    }[name]
    a, b = data(kind, domain, 5, 3)
    problem = KINDS[kind](a, b)
    size = np.abs(PHI[kind](a @ C, b)).sum() + (0.5 * (a @ C) ** 2).sum() * (kind == "squared")
    unit = spread(kind, a, b, domain) + 1e-13 * size
    rng = np.random.default_rng(0)
    points = [domain.project(C + 1e-8 * rng.standard_normal(3)) for _ in range(50)]
    fixed, free = best_fixed(problem, domain, tol=tol), best_per_round(problem, domain)
    still = [(fixed, None)]  # at least as good as every fixed decision
    if path:
        still.append((best_path(problem, domain, budget=1e-8), 1e-8))
    losses = np.array([PHI[kind](a @ x, b) for x in points])
    for found, _ in still:
        assert found.loss - found.gap <= losses.sum(axis=1).min() + 1e-15 * size
    for found, budget in [*still, (free, None)]:
        feasible(found, domain, 5, budget)
        assert 0 <= found.gap <= 1.0 * unit
    assert free.loss - free.gap <= losses.min(axis=0).sum() + 1e-15 * size


def test_large_features_on_a_large_set():
    """The best vertex of a ball, however large the ball and the slopes are."""
    costs = np.array([[1e6, 0.0], [0.0, -1e6]])
    found = best_per_round(problems.LinearLosses(costs), domains.Ball(2, 1e6))
    assert found.loss == pytest.approx(-2e12)
    assert found.gap <= 1e-6 * 2e12
    found = best_per_round(problems.AbsoluteRegression(costs, [1e12, 1e12]), domains.Ball(2, 1e6))
    assert found.loss - found.gap <= 1e-6 * 1e12
    assert found.gap <= 1e-6 * 1e12


def test_a_window_after_a_round_that_dwarfs_it():
    problem = problems.LinearRegression([[1e16], [1.0]], [1.0, 1.0])
    found = best_fixed(problem, domains.Ball(1, 2.0), 1, 2)
    assert found.loss - found.gap <= 0.0  # u = 1 pays nothing
    assert found.loss == pytest.approx(0.0, abs=1e-14)
    assert found.gap <= 1e-12


@pytest.mark.parametrize("scale", [1e6, 1e8, 1e12])
def test_windows_beside_rounds_of_another_size(scale):
    """The same decision and gap as for the window's rounds alone."""
    rng = np.random.default_rng(0)
    a, y = rng.standard_normal((90, 3)), rng.standard_normal(90)
    a[20:40] *= scale
    y[20:40] *= scale
    problem, domain = problems.LinearRegression(a, y), domains.Ball(3, 0.3)
    sums = Windows(problem, domain, 1e-9)
    for r, s in ((40, 90), (0, 20), (47, 81), (41, 42), (40, 48), (3, 19)):
        alone = best_fixed(problems.LinearRegression(a[r:s], y[r:s]), domain)
        found = best_fixed(problem, domain, r, s)
        w, loss, gap = sums.fit(r, s)
        for decision, value, least in ((found.decisions[0], found.loss, found.gap), (w, loss, gap)):
            assert decision == pytest.approx(alone.decisions[0], abs=1e-4)
            assert value == pytest.approx(alone.loss, abs=1e-7)
            assert least <= 1e-7


@pytest.mark.parametrize(("a", "y"), [(0.3, 1.0), (1 / 3, 0.7), (1.1, 1.3)])
def test_the_gap_covers_the_rounding_of_long_sums(a, y):
    """The same round 20000 times: in exact arithmetic the best fixed decision of every window is known."""
    T, R = 20_000, 1.0
    problem, domain = problems.LinearRegression(np.full((T, 1), a), np.full(T, y)), domains.Ball(1, R)
    u = min(Fraction(y) / Fraction(a), Fraction(R))
    best = (Fraction(a) * u - Fraction(y)) ** 2 / 2
    for r, s in ((0, T), (0, 1000), (5000, 6000), (15_000, 16_000), (19_000, T), (T - 1, T)):
        found = best_fixed(problem, domain, r, s)
        assert found.loss - found.gap <= float((s - r) * best) * (1 + 1e-15)


# ------------------------------------------------------------------------------------------------ drawn at random


def drawn(seed, names=tuple(COMPILED)):
    """A random problem of any kind on any set at a random scale."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-3, 3)
    domain = SETS[names[rng.integers(len(names))]][0](scale)
    kind = list(KINDS)[rng.integers(len(KINDS))]
    T = int(rng.integers(1, 9))
    a, b = data(kind, domain, T, int(rng.integers(2**31)))
    if rng.random() < 0.3:
        a[rng.integers(T)] = 0.0
    if rng.random() < 0.3:
        a[-1], b[-1] = a[0], b[0]
    size = 1 / scale if kind == "logistic" else 1.0
    return rng, kind, KINDS[kind]((size * a).reshape(T, *domain.shape), b), domain, a * size, b


def somewhere(domain, rng):
    """A random point of the set: on its boundary, inside, or a corner."""
    far = domain.radius * rng.standard_normal(domain.shape) * rng.choice([0.3, 1.0, 30.0])
    return domain.project(domain.center + far)


def near(domain, x, rng):
    return domain.project(x + domain.radius * 10.0 ** rng.uniform(-9, 0) * rng.standard_normal(x.shape))


def sizes(kind, a, b, domain):
    """How large the numbers are that a loss is computed from: rounding is relative to that."""
    reach = np.linalg.norm(a, axis=1) * (np.linalg.norm(domain.center) + domain.radius)
    return float(((reach + np.abs(b)) ** (2 if kind == "squared" else 1)).sum()) + len(b)


@settings(max_examples=examples(15, slow=60))
@given(seed=st.integers(0, 2**32 - 1))
def test_no_decision_beats_the_best_by_more_than_the_gap(seed):
    rng, kind, problem, domain, a, b = drawn(seed)
    rounding = 1e-13 * sizes(kind, a, b, domain)
    r = int(rng.integers(len(problem)))
    s = int(rng.integers(r, len(problem))) + 1
    fixed = best_fixed(problem, domain, r, s, tol=10.0 ** rng.uniform(-6, 0))
    tight = best_fixed(problem, domain, r, s, tol=1e-6)
    free = best_per_round(problem, domain)
    assert fixed.gap >= 0
    assert tight.loss >= fixed.loss - fixed.gap - rounding
    assert fixed.loss >= tight.loss - tight.gap - rounding
    assert free.gap >= 0
    feasible(fixed, domain, s - r)
    feasible(free, domain, len(problem))
    for _ in range(20):
        for u in (somewhere(domain, rng), near(domain, fixed.decisions[0], rng)):
            assert problem[r:s].losses_of(u).sum() >= fixed.loss - fixed.gap - rounding
        t = rng.integers(len(problem))
        for u in (somewhere(domain, rng), near(domain, free.decisions[t], rng)):
            assert problem[t].value(u) >= free.losses[t] - free.gap - rounding


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_path_beats_the_best_by_more_than_the_gap(seed):
    rng, kind, problem, domain, a, b = drawn(seed)
    if kind == "absolute" and len(problem) > 2:  # the best fixed decision takes long
        problem, a, b = problem[:2], a[:2], b[:2]
    T = len(problem)
    unit = spread(kind, a, b, domain)
    price, budget = rng.uniform(0, 0.3) * unit / domain.radius, rng.uniform(0, 3) * domain.radius
    rounding = 1e-13 * sizes(kind, a, b, domain)
    options = {"tol": 10.0 ** rng.uniform(-3, 0), "steps": 200}
    hard = best_path(problem, domain, price=price, steps=400)
    tight = best_path(problem, domain, budget=budget, steps=400)
    priced = best_path(problem, domain, price=price, **options)
    bounded = best_path(problem, domain, budget=budget, **options)
    assert priced.gap >= 0
    assert bounded.gap >= 0
    feasible(priced, domain, T)
    feasible(bounded, domain, T, budget)
    assert objective(hard) >= objective(priced) - priced.gap - rounding
    assert tight.loss >= bounded.loss - bounded.gap - rounding
    start = somewhere(domain, rng)
    for _ in range(10):
        anywhere = np.array([somewhere(domain, rng) for _ in range(T)])
        for path in (
            anywhere,
            priced.decisions + rng.uniform() * (anywhere - priced.decisions),
            bounded.decisions + rng.uniform() * (anywhere - bounded.decisions),
            np.array([near(domain, x, rng) for x in priced.decisions]),
            np.array([near(domain, x, rng) for x in bounded.decisions]),
            bounded.decisions[::-1],
        ):
            losses, length = problem.losses_of(path).sum(), path_length(path)
            assert losses + price * length >= objective(priced) - priced.gap - rounding
            share = min(1.0, budget / length) if length > 0 else 1.0  # pulled to a point until it is within the budget
            within = problem.losses_of(start + share * (path - start)).sum()
            assert within >= bounded.loss - bounded.gap - rounding


@settings(max_examples=examples(10, slow=25))
@given(seed=st.integers(0, 2**32 - 1))
def test_a_set_known_by_its_projection_gives_the_same(seed):
    """Prefix sums against a direct minimisation, a search for one multiplier against gradient steps."""
    rng, kind, problem, domain, a, b = drawn(seed)
    rounding = 1e-13 * sizes(kind, a, b, domain)
    r = int(rng.integers(len(problem)))
    s = min(int(rng.integers(r, len(problem))) + 1, r + 3)
    slow = wrapped(domain)
    first, second = best_fixed(problem, domain, r, s, tol=1e-5), best_fixed(problem[r:s], slow, tol=1e-5)
    assert abs(first.loss - second.loss) <= max(first.gap, second.gap) + rounding
    first, second = best_per_round(problem[r:s], domain), best_per_round(problem[r:s], slow, tol=1e-5)
    assert abs(first.loss - second.loss) <= max(first.gap, second.gap) + rounding


@settings(max_examples=examples(10, slow=25))
@given(seed=st.integers(0, 2**32 - 1))
def test_windows_are_problems_of_their_own(seed):
    """Prefix sums of the whole problem or of the window alone, and the window as a list of losses."""
    rng, kind, problem, domain, a, b = drawn(seed)
    rounding = 1e-13 * sizes(kind, a, b, domain)
    r = int(rng.integers(len(problem)))
    s = int(rng.integers(r, len(problem))) + 1
    found = [
        best_fixed(problem, domain, r, s, tol=1e-5),
        best_fixed(problem[r:s], domain, tol=1e-5),
        best_fixed(list(problem)[r:s], domain, tol=1e-5),
    ]
    for other in found[1:]:
        assert abs(other.loss - found[0].loss) <= max(other.gap, found[0].gap) + rounding
    whole = best_fixed(problem, domain, tol=1e-5)  # split rounds are easier to please
    parts = sum(c.loss - c.gap for c in (best_fixed(problem, domain, t, t + 1, tol=1e-5) for t in range(len(problem))))
    assert parts <= whole.loss + rounding


# ------------------------------------------------------------------------------------------------- what comes back


def test_a_comparator_tells_what_it_is():
    problem, domain, _ = example("squared")
    found = best_path(problem, domain, price=0.25)
    assert isinstance(found, Comparator)
    assert found.price == 0.25
    assert found.loss == pytest.approx(found.losses.sum())
    np.testing.assert_allclose(found.losses, problem.losses_of(found.decisions))
    assert found.path_length == pytest.approx(np.linalg.norm(np.diff(found.decisions, axis=0), axis=1).sum())
    text = repr(found)
    assert text.startswith("Comparator(10 rounds, loss ")
    assert "price 0.25" in text
    assert "price" not in repr(best_fixed(problem, domain))


def test_a_shorter_tolerance_gives_a_smaller_gap():
    problem, domain, _ = example("logistic", "ellipsoid")
    loose, tight = best_fixed(problem, domain, tol=0.5), best_fixed(problem, domain, tol=1e-10)
    assert tight.gap < loose.gap
    assert tight.loss - 1e-12 <= loose.loss <= tight.loss + loose.gap
    loose, tight = (best_path(problem, domain, budget=0.5, tol=tol) for tol in (0.5, 1e-6))
    assert tight.gap < loose.gap
    few, many = (best_path(problem, domain, budget=0.5, tol=1e-6, steps=steps) for steps in (1, 4000))
    assert many.gap < few.gap


def test_a_rough_answer_knows_how_rough_it_is():
    """A long flat valley whose end is out of reach: gradient steps are short, and all of the gap is real."""
    problem, domain = problems.LinearRegression([[1.0, 0.0], [0.0, 0.01]], [0.0, 1.0]), domains.Ball(2)
    best = (0.01 - 1.0) ** 2 / 2  # at (0, 1)
    found = best_fixed(problem, domain, tol=0.99)
    assert found.loss >= best + 1e-3
    assert found.loss - found.gap <= best + 1e-12
    assert best_fixed(problem, domain).loss == pytest.approx(best, abs=1e-9)


def test_path_lengths():
    assert path_length([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [3.0, 3.0]]) == 6.0
    assert path_length(np.ones((1, 3))) == 0.0
    matrices = np.arange(24.0).reshape(4, 2, 3)  # every step moves all six entries by 6
    assert path_length(matrices) == pytest.approx(3 * np.sqrt(6 * 36))


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: best_fixed(FINE, domains.Ball(3)),
            r"best_fixed: the problem has decisions of shape \(2,\), .* \(3,\)",
        ),
        (lambda: best_fixed(FINE, domains.Ball((2, 1))), r"shape \(2,\), the domain \(2, 1\)"),
        (lambda: best_fixed(FINE, domains.HalfSpace([1.0, 0.0], 1.0)), "best_fixed needs a bounded domain"),
        (lambda: best_fixed(FINE, None), "must be a thalweg Domain. Got None"),
        (lambda: best_fixed(DISC, FINE), "must be a thalweg Domain"),
        (lambda: best_fixed(None, DISC), "needs a thalweg problem or a list of losses. Got None"),
        (lambda: best_fixed([], DISC), "at least one loss"),
        (lambda: best_fixed([1, 2], DISC), r"methods value\(x\) and gradient\(x\). Got 1"),
        (lambda: best_fixed([tw.losses.Squared([1.0], 1.0)], DISC), "another shape"),
        (lambda: best_fixed(ENDLESS, DISC), "best_fixed needs a problem that ends"),
        (lambda: best_fixed(FINE, DISC, 3, 3), "0 <= start < stop <= 6. Got start=3, stop=3"),
        (lambda: best_fixed(FINE, DISC, 4, 2), "start < stop"),
        (lambda: best_fixed(FINE, DISC, -1), "start=-1"),
        (lambda: best_fixed(FINE, DISC, 6), "start=6"),
        (lambda: best_fixed(FINE, DISC, 0, 7), "stop=7"),
        (lambda: best_fixed(FINE, DISC, 0.5, 3), "start=0.5"),
        (lambda: best_fixed(FINE, DISC, "a"), "start='a'"),
        (lambda: best_fixed(FINE, DISC, tol=0.0), "'tol' parameter of best_fixed must be a finite number > 0. Got 0.0"),
        (lambda: best_per_round(FINE, DISC, tol="tight"), "'tol' parameter of best_per_round"),
        (lambda: best_per_round(ENDLESS, DISC), "best_per_round needs a problem that ends"),
        (lambda: best_per_round(FINE, domains.Ball(3)), "best_per_round: the problem has decisions of shape"),
        (lambda: best_path(ENDLESS, DISC, price=1.0), "best_path needs a problem that ends"),
        (lambda: best_path(FINE, domains.Ball(3), price=1.0), "best_path: the problem has decisions of shape"),
        (lambda: best_path(FINE, DISC), "a price on movement or a budget for it, exactly one"),
        (lambda: best_path(FINE, DISC, price=1.0, budget=1.0), "exactly one"),
        (lambda: best_path(FINE, DISC, price=-1.0), "'price' parameter of best_path must be a finite number >= 0"),
        (lambda: best_path(FINE, DISC, budget=-1e-9), "'budget' parameter of best_path must be a finite number >= 0"),
        (lambda: best_path(FINE, DISC, price=1.0, tol=0.0), "'tol' parameter of best_path"),
        (lambda: best_path(FINE, DISC, price=1.0, steps=0), "'steps' parameter of best_path"),
        (lambda: path_length([1.0, 2.0]), r"one decision a row, .* Got shape \(2,\)"),
        (lambda: path_length([[1.0, np.nan]]), "must be finite"),
        (lambda: path_length([[1.0], [1.0, 2.0]]), "array of real numbers"),
        (lambda: path_length(np.zeros((0, 2))), "path_length"),
    ],
)
def test_bad_input_is_told(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_whole_numbers_may_be_floats():
    assert best_path(FINE, DISC, price=0.5, steps=20.0).loss == best_path(FINE, DISC, price=0.5, steps=20).loss
    assert best_fixed(FINE, DISC, np.int64(1), np.int32(3)).loss == best_fixed(FINE, DISC, 1, 3).loss
