"""Every learner keeps every promise, and the checks notice one that does not."""

import dataclasses
import pickle

import numpy as np
import pytest

import thalweg as tw
from tests.worlds import LEARNERS, ball
from thalweg.cards import recipes
from thalweg.errors import InputError
from thalweg.testing import LEARNER_CHECKS, STANDARD, check_learner


@pytest.mark.parametrize("check", LEARNER_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", LEARNERS)
def test_learner(name, check):
    check(LEARNERS[name])


@pytest.mark.parametrize("name", [name for name in LEARNERS if "custom" not in name and "observed" not in name])
def test_our_learners_can_be_pickled(name):
    """`check_copies` holds a pickled learner to the run of the first; here: all of ours on built-in sets do pickle."""
    assert pickle.loads(pickle.dumps(LEARNERS[name]())).queries == LEARNERS[name]().queries


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


class Plain(tw.Learner):
    """The smallest learner of one's own: it stays where it is."""

    def __init__(self):
        super().__init__(ball())
        self.x = np.array(self.domain.center)
        self._arrays["x"] = self.x

    def _restart(self):
        self.x[:] = self.domain.center

    def _propose(self):
        return self.x.copy()

    def _move(self, gradient, loss):
        self._clock[:3] += [1, 0, 1]


class Outside(Plain):
    def _move(self, gradient, loss):
        super()._move(gradient, loss)
        self.x += 10 * gradient


class Writable(Plain):
    @property
    def decision(self):
        return self.x


class Random(Plain):
    source = np.random.default_rng(0)

    def _move(self, gradient, loss):
        super()._move(gradient, loss)
        self.x[:] = self.domain.center + 0.1 * self.source.standard_normal(3)


class Keeper(Plain):
    """Keeps the caller's gradient, and moves along it a round late."""

    kept = None

    def update(self, gradient, loss=None):
        if self.kept is not None:
            self.x[:] = self.domain.project(self.x - 0.01 * np.asarray(self.kept))
        self.kept = gradient
        super().update(gradient, loss)


class Forgetful(Plain):
    """Its state leaves something out."""

    speed = 0.0

    def _move(self, gradient, loss):
        super()._move(gradient, loss)
        self.speed += 0.01
        self.x[:] = self.domain.project(self.x - self.speed * gradient)


class Shared(Plain):
    pool = np.zeros(3)

    def _move(self, gradient, loss):
        super()._move(gradient, loss)
        self.pool += gradient
        self.x[:] = self.domain.project(self.domain.center - 0.1 * self.pool)


class Hasty(Plain):
    """Moves before it looks."""

    def update(self, gradient, loss=None):
        self.x[0] += 1e-3
        super().update(gradient, loss)


class Hoarder(Plain):
    def __init__(self):
        super().__init__()
        self.history = []

    def _move(self, gradient, loss):
        super()._move(gradient, loss)
        self.history.append(np.zeros(1000))


class Uncounted(Plain):
    def _move(self, gradient, loss):
        self._clock[0] += 1


def test_a_plain_learner_passes():
    check_learner(Plain)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Outside, "check_feasible"),
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
