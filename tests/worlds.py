"""What several test files share: every learner the common checks run on, and a set and a loss that count queries."""

from functools import partial

import numpy as np
import pytest
from hypothesis import settings

import thalweg as tw
from tests.twins.dynamic import Absolute, Linear, along, everything, make_stream
from thalweg._core.state import Block
from thalweg.cards import recipes
from thalweg.testing import STANDARD


def ball():
    return tw.domains.Ball(3, radius=2.0, center=[1.0, 0.0, -1.0])


def ellipsoid():
    return STANDARD.domain


def clip(y):
    return np.clip(y, -1.0, 2.0)


def slow_box():
    """A set that only Python can project onto."""
    return tw.domains.Custom(clip, 3, center=np.full(3, 0.5), radius=1.5 * np.sqrt(3))


def flat_polytope():
    """The slice of a box by a plane through its inside."""
    A, b = np.vstack([np.eye(3), -np.eye(3)]), [1.0, 1.0, 2.0, 1.0, 0.5, 1.0]
    return tw.domains.Polytope(A, b, A_eq=[[1.0, 2.0, -1.0]], b_eq=[0.5])


def tau_of(domain):
    """What is left of a gradient on a set in a flat: from the normals as these sets were built."""
    if isinstance(domain, tw.domains.Simplex):
        return along(np.ones((1, domain.dim)))
    if isinstance(domain, tw.domains.Polytope):
        return along(np.array([[1.0, 2.0, -1.0]]))
    return everything


def around(domain):
    """A ball that is not the smallest, so that every set leaves room outside."""
    return tw.domains.Ball(domain.dim, radius=1.3 * domain.radius, center=domain.center)


def smoothness(stream):
    """L, or 1 where the loss is not smooth: the learner still runs, only its guarantee is off."""
    return stream.smoothness or 1.0


def builtin(stream):
    """The losses of a stream of the twins as one of the problems that `play` has a compiled loop for."""
    losses = getattr(stream, "losses", stream)
    first = losses[0]
    if isinstance(first, Linear):
        return tw.problems.LinearLosses(np.array([f.slope for f in losses]), [f.offset for f in losses])
    make = tw.problems.AbsoluteRegression if isinstance(first, Absolute) else tw.problems.LinearRegression
    return make(np.array([f.features for f in losses]), [f.label for f in losses])


def stepped(learner, losses):
    """The decisions of rounds that are played by `step`."""
    decisions = []
    for f in losses:
        decisions.append(np.array(learner.decision))
        learner.step(f)
    return np.array(decisions)


def assert_plays(make, losses, expected, atol=1e-12):
    """Compiled runs, single rounds and runs of losses that nothing is known of end in these decisions."""
    unknown = tw.problems.FromLosses(losses, expected.shape[1:])
    runs = [tw.play(make(), problem, decisions=True).decisions for problem in (builtin(losses), unknown)]
    for decisions in (*runs, stepped(make(), losses)):
        np.testing.assert_allclose(decisions, expected, rtol=0, atol=atol)


def one_by_one(problem):
    """The same losses, as a problem that has no compiled loop."""
    return tw.problems.FromLosses([problem[t] for t in range(len(problem))])


def inner(learner):
    """The learner inside the reduction, or the learner itself."""
    found = getattr(learner, "inner", learner)
    return found if isinstance(found, tw.Learner) else learner


def on_flat(domain, rounds):
    """A set in a flat, and squared losses whose gradients have long parts across it."""
    x = {"simplex": lambda: tw.domains.Simplex(4, 2.0), "polytope": flat_polytope}[domain]()
    return x, make_stream("squared", x, rounds, np.random.default_rng(11), scale=2.0)


# Sets of the twins, and those of the theorems.
SETS = {
    "ball": lambda: tw.domains.Ball(3, radius=1.5),
    "off-centre ball": lambda: tw.domains.Ball(3, radius=0.7, center=[2.0, -1.0, 0.5]),
    "box": lambda: tw.domains.Box([-1.0, -0.5, 0.0], [0.5, 1.0, 2.0]),
    "ellipsoid": lambda: tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=2.0),
    "simplex": lambda: tw.domains.Simplex(4, 1.0),
    "custom, without its centre": lambda: tw.domains.Custom(
        tw.domains.Ball(2, radius=0.5, center=[1.0, 0.3]).project,
        2, center=[0.0, 0.0], radius=1.6, diameter=1.0, tolerance=1e-12,
    ),
}  # fmt: skip
THIN_SETS = {
    "ball": lambda: tw.domains.Ball(3),
    "off-centre ball": lambda: tw.domains.Ball(2, radius=2.5, center=[-4.0, 1.0]),
    "box": lambda: tw.domains.Box([-1.0, 0.0, -0.2], [2.0, 0.5, 0.2]),
    "ellipsoid": lambda: tw.domains.Ellipsoid([1.0, 3.0, 20.0], bound=1.5),
    "simplex": lambda: tw.domains.Simplex(5, 1.0),
    "interval": lambda: tw.domains.Box([-1.0], [1.0]),
}


def built(plan):
    """State and settings of a plan, all zeros."""
    block = Block(plan)
    return block.state, block.settings


def fixed(C):
    return partial(tw.algorithms.thresholds.fixed, C=C)


T, G, L, B = STANDARD.horizon, STANDARD.gradient_bound, STANDARD.smoothness, STANDARD.loss_bound

# Every learner with a card and its variants, and settings that break more easily. All shared checks run on them.
LEARNERS = {name: partial(recipe.build, STANDARD) for name, recipe in recipes().items()} | {
    "OGD fixed": lambda: tw.OGD(ball(), step_size=0.1),
    "OGD anytime, line": lambda: tw.OGD(tw.domains.Box([-1.0], [3.0]), gradient_bound=G),
    "OGD custom": lambda: tw.OGD(slow_box(), step_size=0.1),
    "SOGD simplex": lambda: tw.SOGD(tw.domains.Simplex(4)),
    "SOGD matrix": lambda: tw.SOGD(tw.domains.Ball((2, 3))),
    "Ader T=1": lambda: tw.Ader(ellipsoid(), 1, G),
    "Ader own, custom": lambda: tw.Ader(slow_box(), T, G, gradients="own"),
    "Sword custom": lambda: tw.Sword(slow_box(), T, G, L, gradients="own"),
    "SwordPP custom": lambda: tw.SwordPP(slow_box(), T, G, L),
    "SwordPP simplex": lambda: tw.SwordPP(tw.domains.Simplex(4), T, G, 0.1),
    "EfficientDynamic clip": lambda: tw.EfficientDynamic(ellipsoid(), T, G, L, on_violation="clip"),
    "EfficientDynamic simplex": lambda: tw.EfficientDynamic(tw.domains.Simplex(5, total=2.0), T, G),
    "EfficientDynamic line": lambda: tw.EfficientDynamic(tw.domains.Box([2.0], [3.0]), 1, G, L),
    "EfficientDynamic custom": lambda: tw.EfficientDynamic(slow_box(), T, G),
    "EfficientDynamic spectral": lambda: tw.EfficientDynamic(tw.domains.SpectralBalls((2, 2, 3), [1.0, 0.5]), T, G),
    "EfficientBandit simplex": lambda: tw.EfficientBandit(tw.domains.Simplex(4), T, G, 20.0, rng=1),
    "EfficientBandit custom": lambda: tw.EfficientBandit(
        slow_box(), T, G, points=2, interior=(np.full(3, 0.5), 1.5), rng=1
    ),
    "EfficientBandit line": lambda: tw.EfficientBandit(tw.domains.Box([2.0], [3.0]), 1, G, points=2, rng=1),
    "EfficientBandit spectral": lambda: tw.EfficientBandit(
        tw.domains.SpectralBalls((2, 2, 3), [1.0, 0.5]), T, G, points=2, rng=1
    ),
    "EfficientOptimistic clip": lambda: tw.EfficientOptimistic(ellipsoid(), T, G, L, on_violation="clip"),
    "EfficientOptimistic simplex": lambda: tw.EfficientOptimistic(tw.domains.Simplex(5, total=2.0), T, G),
    "EfficientOptimistic line": lambda: tw.EfficientOptimistic(tw.domains.Box([2.0], [3.0]), 1, G),
    "EfficientOptimistic custom": lambda: tw.EfficientOptimistic(slow_box(), T, G),
    "CBCE no horizon": lambda: tw.CBCE(ellipsoid(), gradient_bound=G, gradients="own"),
    "CBCE compact": lambda: tw.CBCE(ellipsoid(), gradient_bound=G, gradients="own", cover="compact", horizon=T),
    "CBCE custom": lambda: tw.CBCE(slow_box(), gradient_bound=G, gradients="own"),
    "EfficientCBCE simplex": lambda: tw.EfficientCBCE(tw.domains.Simplex(4), gradient_bound=G),
    "SACS many": lambda: tw.SACS(ellipsoid(), loss_bound=B, smoothness=L, gradients="own", threshold=5.0),
    "SACS shared": lambda: tw.SACS(ellipsoid(), loss_bound=B, smoothness=L, threshold=5.0),
    "SACS custom": lambda: tw.SACS(slow_box(), loss_bound=B, smoothness=L, gradients="own", threshold=5.0),
    "SAOL no horizon": lambda: tw.SAOL(ellipsoid(), gradient_bound=G, gradients="own"),
    "SAOL custom": lambda: tw.SAOL(slow_box(), gradient_bound=G),
    "AFLH custom": lambda: tw.AFLH(slow_box(), T, gradient_bound=G),
    "EfficientAdaptive many": lambda: tw.EfficientAdaptive(ellipsoid(), T, G, L, threshold=fixed(4.0)),
    "EfficientAdaptive current": lambda: tw.EfficientAdaptive(
        tw.domains.Box([2.0], [3.0]), 1, G, L, threshold=fixed(0.1), restart="current"
    ),
    "EfficientAdaptive observed": lambda: tw.EfficientAdaptive(
        slow_box(), T, G, L, threshold=fixed(4.0), feedback_range="observed"
    ),
    "AOA no horizon": lambda: tw.AOA(ellipsoid(), gradient_bound=G, gradients="own"),
    "AOA shared": lambda: tw.AOA(ellipsoid(), gradient_bound=G, horizon=T),
    "AOA custom": lambda: tw.AOA(slow_box(), gradient_bound=G, gradients="own", horizon=T),
    "EfficientIntervalDynamic many": lambda: tw.EfficientIntervalDynamic(ellipsoid(), T, G, L, threshold=fixed(4.0)),
    "EfficientIntervalDynamic line": lambda: tw.EfficientIntervalDynamic(tw.domains.Box([2.0], [3.0]), 1, G, L),
    "CutkoskyAdaptive ball": lambda: tw.CutkoskyAdaptive(ball(), T, G),
    "CutkoskyAdaptive custom": lambda: tw.CutkoskyAdaptive(slow_box(), T, G),
    "CutkoskyAdaptive line": lambda: tw.CutkoskyAdaptive(tw.domains.Box([-1.0], [3.0]), 1, G),
    "CutkoskyAdaptive matrix": lambda: tw.CutkoskyAdaptive(tw.domains.Ball((2, 3)), T, G, epsilon=0.1),
    "EfficientCutkosky custom": lambda: tw.EfficientCutkosky(slow_box(), T, G),
    "EfficientCutkosky line": lambda: tw.EfficientCutkosky(tw.domains.Box([2.0], [3.0]), 1, G),
    "EfficientCutkosky simplex": lambda: tw.EfficientCutkosky(
        tw.domains.Simplex(5, total=2.0), T, G, on_violation="clip"
    ),
    "CutkoskyPrintedVariant custom": lambda: tw.CutkoskyPrintedVariant(slow_box(), T, G),
    "CutkoskyPrintedVariant line": lambda: tw.CutkoskyPrintedVariant(tw.domains.Box([2.0], [3.0]), 1, G),
    "Scream line": lambda: tw.Scream(tw.domains.Box([2.0], [3.0]), 1, G, switching_cost=0.0, on_violation="clip"),
    "Scream custom": lambda: tw.Scream(slow_box(), T, G, switching_cost=0.0),
    "EfficientScream spectral": lambda: tw.EfficientScream(
        tw.domains.SpectralBalls((2, 2, 3), [1.0, 0.5]), T, G, switching_cost=5.0
    ),
    "Tracker custom": lambda: tw.Tracker(slow_box()),
    "Tracker line": lambda: tw.Tracker(tw.domains.Box([2.0], [3.0]), intervals=False, start=[3.0], loss_floor=-1e3),
    "Tracker simplex": lambda: tw.Tracker(tw.domains.Simplex(4), curvature=False),
    "OneProjection SOGD": lambda: tw.OneProjection(ellipsoid(), tw.SOGD),
    "OneProjection Ader": lambda: tw.OneProjection(ellipsoid(), partial(tw.Ader, horizon=T, gradient_bound=G)),
    "OneProjection levels": lambda: tw.OneProjection(
        ellipsoid(), lambda Y: tw.CutkoskyAdaptive(tw.domains.Box(-2.0, 2.0, shape=3), T, G)
    ),
    "OneProjection twice": lambda: tw.OneProjection(
        ellipsoid(), partial(tw.EfficientDynamic, horizon=T, gradient_bound=G)
    ),
    "Delayed Tracker": lambda: tw.Delayed(ellipsoid(), tw.Tracker, delay=3),
    "Delayed OGD custom": lambda: tw.Delayed(slow_box(), partial(tw.OGD, step_size=0.1), max_delay=2),
    "Delayed at once": lambda: tw.Delayed(tw.domains.Simplex(4), tw.SOGD, delay=0),
}


# ---------------------------------------------------------------------- queries are counted here, not by the learner


class CountedLoss:
    """A loss that counts how often it is asked."""

    def __init__(self, loss):
        self.loss, self.values, self.gradients = loss, 0, 0

    def value(self, x):
        self.values += 1
        return self.loss.value(x)

    def gradient(self, x):
        self.gradients += 1
        return self.loss.gradient(x)


class Distance:
    """curvature/2 ||x - target||^2."""

    def __init__(self, target, curvature=1.0):
        self.curvature, self.target, self.shape = curvature, target, target.shape

    def value(self, x):
        return float(self.curvature / 2 * np.sum((x - self.target) ** 2))

    def gradient(self, x):
        return self.curvature * (x - self.target)


class CountedSet:
    """A set whose projection counts its calls; learners get its `domain`."""

    def __init__(self, exact, **options):
        self.exact, self.calls = exact, 0
        self.domain = tw.domains.Custom(self.project, exact.shape, exact.center, exact.radius, **options)

    def project(self, y):
        self.calls += 1
        return self.exact.project(y)


# ---------------------------------------------------------------------------------------------------------- slow runs


def slow_where(slow, rows):
    """The rows as parameters of a test, those that `slow(*row)` holds for marked slow."""
    return [pytest.param(*row, marks=[pytest.mark.slow] if slow(*row) else []) for row in rows]


def examples(few, slow):
    """How many examples a test draws: few, and many if slow tests run too."""
    return slow if settings.get_current_profile_name() == "slow" else few
