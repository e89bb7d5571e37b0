"""Every learner keeps every promise, and the checks notice one that does not."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import thalweg as tw
from tests.worlds import LEARNERS, ball
from thalweg._core.rules import counter_field, inside, magnitude
from thalweg._core.state import field
from thalweg._core.types import Floats, Ints
from thalweg.cards import recipes
from thalweg.errors import InputError
from thalweg.learners.in_python import InPython
from thalweg.testing import LEARNER_CHECKS, STANDARD, check_learner


@pytest.mark.parametrize("check", LEARNER_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", LEARNERS)
def test_learner(name, check):
    check(LEARNERS[name])


SMALL = {
    "ball": lambda c, R: (tw.domains.Ball(3, R, c), lambda x: np.linalg.norm(x - c) - R),
    "box": lambda c, R: (tw.domains.Box(c - R, c + R), lambda x: np.abs(x - c).max() - R),
}


@pytest.mark.parametrize(("radius", "away"), [(1e-8, 1e6), (1e-3, 1e8), (1e-14, 1.0)])
@pytest.mark.parametrize("shape", SMALL)
def test_decisions_stay_in_sets_that_are_small_against_their_distance(shape, radius, away):
    """To a few of the spacings that numbers have there, not to the tolerance of `contains`, which is many radii."""
    rng = np.random.default_rng(0)
    X, outside = SMALL[shape](np.full(3, away), radius)
    setting = dataclasses.replace(STANDARD, domain=X, horizon=80)
    g = rng.standard_normal((80, 3)) * (rng.random((80, 1)) < 0.3) + np.ones(3)
    g *= 0.99 * setting.gradient_bound / np.linalg.norm(g, axis=1, keepdims=True)
    for name, recipe in recipes().items():
        if recipe.kind.values_only and radius < 1e-11 * away:  # values so near to each other are noise
            with pytest.raises(InputError, match="has no interior"):
                recipe.build(setting)
            continue
        learner = recipe.build(setting)
        for row in g:
            assert outside(learner.decision) <= 16 * np.spacing(away), name
            learner.step(tw.losses.Linear(row, setting.loss_bound / 2 - row @ X.center))


class PlainState(NamedTuple):
    """A point."""

    x: Floats = field("d", inside("domain"))
    clock: Ints = counter_field()


class RulelessState(NamedTuple):
    """A point, anywhere."""

    x: Floats = field("d")
    clock: Ints = counter_field()


class NarrowState(NamedTuple):
    """A point, and a sum of gradients that is said to be small."""

    x: Floats = field("d", inside("domain"))
    sums: Floats = field("d", magnitude(1.0))
    clock: Ints = counter_field()


class Plain(tw.Learner):
    """The smallest learner of one's own: it stays where it is."""

    declared = PlainState

    def __init__(self):
        super().__init__(InPython(ball(), self.declared, self.learn, begin=self.begin, projections=0))

    def begin(self, s):
        s.x[:] = self.domain.center

    def learn(self, s, gradient, loss):
        """Stay."""


class Outside(Plain):
    def learn(self, s, gradient, loss):
        s.x[:] += 10 * gradient


class Drifting(Plain):
    """Its steps are so short that only a long way in one direction leads out of the set."""

    def learn(self, s, gradient, loss):
        s.x[:] -= 3e-2 * gradient


class Ruleless(Plain):
    declared = RulelessState


class Narrow(Plain):
    declared = NarrowState

    def learn(self, s, gradient, loss):
        s.sums[:] += gradient


class Writable(Plain):
    @property
    def decision(self):
        return self._memory.state.x


class Random(Plain):
    source = np.random.default_rng(0)

    def learn(self, s, gradient, loss):
        s.x[:] = self.domain.center + 0.1 * self.source.standard_normal(3)


class Keeper(Plain):
    """Keeps the caller's gradient, and moves along it a round late."""

    kept = None

    def update(self, gradient, loss=None):
        x = self._memory.state.x
        if self.kept is not None:
            x[:] = self.domain.project(x - 0.01 * np.asarray(self.kept))
        self.kept = gradient
        super().update(gradient, loss)


class Forgetful(Plain):
    """Its state leaves something out."""

    speed = 0.0

    def learn(self, s, gradient, loss):
        self.speed += 0.01
        s.x[:] = self.domain.project(s.x - self.speed * gradient)


class Shared(Plain):
    pool = np.zeros(3)

    def learn(self, s, gradient, loss):
        self.pool += gradient
        s.x[:] = self.domain.project(self.domain.center - 0.1 * self.pool)


class Hasty(Plain):
    """Moves before it looks."""

    def update(self, gradient, loss=None):
        self._memory.state.x[0] += 1e-3
        super().update(gradient, loss)


class Hoarder(Plain):
    def __init__(self):
        super().__init__()
        self.history = []

    def learn(self, s, gradient, loss):
        self.history.append(np.zeros(1000))


class Uncounted(Plain):
    @property
    def queries(self):
        return tw.Queries()


def test_a_plain_learner_passes():
    check_learner(Plain)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Outside, "check_feasible"),
        (Drifting, "check_feasible"),
        (Ruleless, "check_lasting: .* it needs a rule"),
        (Narrow, "check_lasting: .* could not be loaded"),
        (Writable, "check_read_only"),
        (Random, "check_deterministic"),
        (Shared, "check_deterministic"),
        (Forgetful, "check_reset"),
        (Hasty, "check_refusals"),
        (Hoarder, "check_bounded_memory"),
        (Uncounted, "check_queries"),
    ],
)
def test_a_broken_learner_is_caught(broken, check):
    with pytest.raises(AssertionError, match=check):
        check_learner(broken)


def test_a_kept_gradient_is_caught():
    checks = {check.__name__: check for check in LEARNER_CHECKS}
    with pytest.raises(AssertionError, match="keeps the caller's gradient"):
        checks["check_input_kept"](Keeper)


def test_a_state_that_leaves_something_out_is_caught():
    checks = {check.__name__: check for check in LEARNER_CHECKS}
    with pytest.raises(AssertionError, match="differs from the uninterrupted one"):
        checks["check_resume"](Forgetful)
